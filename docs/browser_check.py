"""Open pages in Chromium at 390 and 1,280 px and say what a reader would trip over.

    npm install axe-core
    python docs/browser_check.py --axe node_modules/axe-core/axe.min.js       # the reports of the tutorials
    python docs/browser_check.py --docs HTML_FOLDER index.html api.html      # built pages, light and dark

Of each page: errors on the console or while loading, text that is wider than the page, headings out of order,
pictures without a text, words broken inside a table's cell, and with --axe violations of WCAG 2.1 A and AA.
Ends with 1 if there are any. Needs `chromium` on the path; nothing leaves the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
WIDTHS = (390, 1280)
_CELL = re.compile(r"^```\{code-cell\} python\n(?:---\n.*?^---\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
_LONGEST = 300
_KINDS = ("console", "wide", "headings", "no_alt", "broken_words", "axe")

_LISTEN = """<script>window.found = [];
addEventListener("error", (e) => found.push(e.message || "not loaded: " + (e.target.src || e.target.href)),
  true);
for (const name of ["error", "warn"]) { const old = console[name];
  console[name] = (...told) => { found.push(told.join(" ")); old(...told); }; }</script>"""

_WRAPPER = """<!DOCTYPE html><title>check</title><body><script>
const wait = (t) => new Promise((done) => setTimeout(done, t));
const scrolls = (e) => { for (; e; e = e.parentElement) {
  const x = e.ownerDocument.defaultView.getComputedStyle(e).overflowX;
  if (x === "auto" || x === "scroll" || x === "hidden") return true; } return false; };
function look(page, width) {
  const told = {console: page.found.slice(), wide: [], headings: [], no_alt: [], broken_words: []};
  const root = page.document;
  if (root.documentElement.scrollWidth > width) told.wide.push("page: " + root.documentElement.scrollWidth);
  const texts = "p, li, dd, h1, h2, h3, img, figure".split(", ").map((tag) => "main " + tag).join(", ");
  for (const e of root.querySelectorAll(texts)) {
    const out = e.getBoundingClientRect().right > width + 1 && !scrolls(e);
    if (out) told.wide.push(e.textContent.slice(0, 60));
  }
  for (const e of root.querySelectorAll("main p, main li, article p, article li"))
    if (e.scrollWidth > e.clientWidth + 1 && page.getComputedStyle(e).overflowX === "auto")
      told.wide.push("scrolls: " + e.textContent.slice(0, 60));
  let last = 0; const levels = [...root.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((h) => +h.tagName[1]);
  if (levels.filter((n) => n === 1).length !== 1) told.headings.push("not one h1");
  for (const level of levels) {
    if (level > last + 1) told.headings.push(last + " to " + level);
    last = level;
  }
  for (const e of root.querySelectorAll("img, svg[role=img]"))
    if (!(e.getAttribute("alt") || e.getAttribute("aria-label") || "").trim() && e.getAttribute("alt") !== "")
      told.no_alt.push(e.src || "svg");
  for (const cell of root.querySelectorAll("td, th")) {
    const walker = root.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) for (const word of node.data.matchAll(/[\\p{L}]{3,}/gu)) {
      const range = root.createRange(); range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
      if (lines.size > 1) told.broken_words.push(word[0] + " in " + node.data.slice(0, 80));
    }
  }
  const bottom = (mark) => { const e = root.querySelector(mark);
    return e === null ? null : Math.round(e.getBoundingClientRect().bottom + page.scrollY); };
  told.first = {sentence: bottom(".lead"), picture: bottom(".forest")};
  return told;
}
(async () => {
  const jobs = await (await fetch("/jobs")).json(), all = [];
  for (const job of jobs) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "border:0;height:900px;width:" + job.width + "px";
    document.body.append(frame);
    await new Promise((done) => { frame.onload = done; frame.src = job.url; });
    const page = frame.contentWindow;
    if (job.theme) page.document.body.dataset.theme = job.theme;
    await wait(400);
    const told = look(page, job.width);
    told.axe = []; told.rules = 0;
    if (job.axe) {
    const script = page.document.createElement("script");
    script.src = "/axe.min.js";
    await new Promise((done) => { script.onload = done; page.document.head.append(script); });
    const asked = {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"]};
    const axe = await page.axe.run(page.document, asked);
    told.axe = axe.violations.flatMap(
      (v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.html.slice(0, 90)));
    told.rules = axe.passes.length + axe.violations.length;
    }
    all.push({...job, ...told});
    frame.remove();
  }
  await fetch("/result", {method: "POST", body: JSON.stringify(all)});
})().catch((e) => fetch("/result", {method: "POST", body: JSON.stringify({error: String(e.stack || e)})}));
</script></body>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the pages with something that listens for errors, the list of jobs, and takes the result."""

    jobs: list[dict[str, Any]]
    axe: Path | None
    results: queue.Queue[Any]

    def do_GET(self) -> None:
        """Pages, and what the check itself needs."""
        if self.path == "/":
            self._send(_WRAPPER.encode(), "text/html; charset=utf-8")
        elif self.path == "/jobs":
            self._send(json.dumps(self.jobs).encode(), "application/json")
        elif self.path == "/axe.min.js" and self.axe is not None:
            self._send(self.axe.read_bytes(), "text/javascript")
        elif self.path.endswith(".html"):
            text = Path(self.translate_path(self.path)).read_text(encoding="utf-8")
            self._send(text.replace("<head>", f"<head>{_LISTEN}", 1).encode(), "text/html; charset=utf-8")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """The result of all jobs."""
        self.results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send(b"", "text/plain")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: Any) -> None:
        """Say nothing."""


def reports(folder: Path) -> list[str]:
    """Run the tutorials, and name the reports that they wrote."""
    found = []
    for page in sorted(TUTORIALS.glob("*.md")):
        own = folder / page.stem
        own.mkdir()
        names: dict[str, Any] = {}
        with contextlib.chdir(own), contextlib.redirect_stdout(io.StringIO()):
            for cell in _CELL.findall(page.read_text(encoding="utf-8")):
                exec(compile(cell, str(page), "exec"), names)
        found += [f"{page.stem}/{file.name}" for file in sorted(own.glob("*.html"))]
    return found


@contextlib.contextmanager
def browser(address: str, dark: bool = False) -> Iterator[None]:
    """Chromium at an address, with a profile of its own, for somebody who prefers a dark screen or not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        options += [f"--user-data-dir={profile}", "--window-size=1400,1000"]
        options += ["--blink-settings=preferredColorScheme=0"] if dark else []
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(["chromium", *options, address], **quiet)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def check(
    folder: Path, pages: list[str], axe: Path | None, themes: tuple[str, ...], dark: bool = False
) -> list[dict[str, Any]]:
    """What is found on every page, at each width and theme; of a report also where its answer ends."""
    jobs = [
        {"url": f"/{page}", "page": page, "width": width, "theme": theme, "axe": axe is not None}
        for page in pages
        for width in WIDTHS
        for theme in themes
    ]
    kept: queue.Queue[Any] = queue.Queue()
    kind = type("Own", (Handler,), {"jobs": jobs, "axe": axe, "results": kept})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with browser(f"http://127.0.0.1:{server.server_port}/", dark):
            found = kept.get(timeout=_LONGEST)
        server.shutdown()
    if isinstance(found, dict):
        raise SystemExit(found["error"])
    return list(found)


def main() -> int:
    """Print a row for every page and width; 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--docs", type=Path, help="folder of built pages; by default the reports are checked")
    parser.add_argument("pages", nargs="*", help="pages below --docs")
    options = parser.parse_args()
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as scratch:
        if options.docs is None:
            folder, themes = Path(scratch), ("",)
            pages = reports(folder)
        else:
            folder, pages, themes = options.docs, options.pages, ("light", "dark")
        found = check(folder, pages, options.axe and options.axe.resolve(), themes)
    print(f"| page | px | theme | {' | '.join(kind.replace('_', ' ') for kind in _KINDS)} | axe rules |")
    print(f"| --- | ---: | --- | {' | '.join(['---:'] * (len(_KINDS) + 1))} |")
    for row in found:
        counts = " | ".join(str(len(row[kind])) for kind in _KINDS)
        print(f"| {row['page']} | {row['width']:,} | {row['theme'] or '-'} | {counts} | {row['rules']} |")
    told = [
        f"{row['page']} at {row['width']} px {row['theme']}: {kind}: {what}"
        for row in found
        for kind in _KINDS
        for what in dict.fromkeys(row[kind])
    ]
    print("\n".join(told), file=sys.stderr)
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())
