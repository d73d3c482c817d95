// How the search ranks: index entries, which guides give in the words of readers, come first; then guides; then the
// reference, theory and errata. The changelog and the evidence mention everything, and come last.
var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => {
    if (page === "changelog" || /^(evidence|studies)\//.test(page)) return score - 1000;
    if (/^(theory|errata)\//.test(page) || /^(house|contributing|genindex)$/.test(page)) return score / 4;
    if (page.startsWith("generated/") && kind !== "object") return score / 4;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
