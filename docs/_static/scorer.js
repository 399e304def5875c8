// Search: a term of the glossary comes first. The other figures are those of Sphinx.
var Scorer = {
  score: ([page, , anchor, , score]) => score + (page === "concepts/glossary" && anchor ? 100 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
