// What scrolls sideways can be reached by keyboard, and landmarks have names.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight > pre")) {
    box.tabIndex = 0;
    if (box.matches(".table-wrapper")) {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "table");
    }
  }
  for (const [kind, label] of [["sidebar-drawer", "pages"], ["toc-drawer", "on this page"]]) {
    document.querySelector(`aside.${kind}`)?.setAttribute("aria-label", label);
  }
});
