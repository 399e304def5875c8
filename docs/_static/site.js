// What scrolls sideways can be reached by keyboard, and landmarks have names.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight > pre")) {
    box.tabIndex = 0;
    if (box.matches(".table-wrapper")) {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "table");
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  }
  for (const [kind, label] of [["sidebar-drawer", "pages"], ["toc-drawer", "on this page"]]) {
    document.querySelector(`aside.${kind}`)?.setAttribute("aria-label", label);
  }
  // A search shows guides first, then names of functions (scorer.js puts them below), each under a heading.
  const found = document.getElementById("search-results");
  if (!found) return;
  const head = (list, row, words) => {
    if (!row || list.querySelector(`[data-group="${words}"]`)) return;
    const line = Object.assign(document.createElement("li"), { className: "group", textContent: words });
    line.dataset.group = words;
    row.before(line);
  };
  new MutationObserver(() => {
    const list = found.querySelector("ul.search");
    if (!list) return;
    const python = 'a[href*="reference/api/"]';
    head(list, list.querySelector(`li:not(.group):not(:has(${python}))`), "Pages");
    head(list, list.querySelector(`li:has(${python})`), "Names in Python");
  }).observe(found, { childList: true, subtree: true });
});
