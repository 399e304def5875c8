// Search: a term of the glossary comes first, for the code of a warning the page of warnings; names in Python come last. The other figures are those of Sphinx.
var Scorer = {
  score: ([page, , anchor, , score]) => {
    const code = /^[a-z]+(-[a-z]+)+$/.test(new URLSearchParams(location.search).get("q") || "");
    const first = (page === "concepts/glossary" && anchor) || (page === "reference/warnings" && code);
    return score + (first ? 100 : 0) - (page.startsWith("reference/api/") ? 1000 : 0);
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
