// What the search of built pages answers: node search.js HTML_FOLDER QUERY... prints a list of [page, anchor] a query.
// The scripts are those that a browser loads.
const fs = require("fs"), path = require("path"), vm = require("vm");

const [folder, ...queries] = process.argv.slice(2);
const none = { textContent: "", firstChild: null, lastChild: null, dataset: {} };
const page = {
  addEventListener: () => {}, getElementById: () => none, querySelectorAll: () => [], querySelector: () => none,
  documentElement: none, readyState: "loading",
};
const browser = { document: page, console, SPHINX_HIGHLIGHT_ENABLED: false, _ready: () => {}, _: (text) => text };
browser.window = browser;
vm.createContext(browser);
const scripts = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"];
// classes and constants of a script live as long as the script: all of them are one
const question = `;(${JSON.stringify(queries)}).map((query) => Search._performSearch(...Search._parseQuery(query)).reverse()
  .map((found) => [found[0], found[2]]))`;
const text = scripts.map((name) => fs.readFileSync(path.join(folder, name), "utf8")).join("\n;\n");
console.log(JSON.stringify(vm.runInContext(text + question, browser)));
