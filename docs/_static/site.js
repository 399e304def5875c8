// What scrolls sideways can be reached by keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight > pre")) {
    box.tabIndex = 0;
    if (box.matches(".table-wrapper")) {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "table");
    }
  }
});
