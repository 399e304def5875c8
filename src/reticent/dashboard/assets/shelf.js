// Named settings, kept in this browser and nowhere else. An entry is the part of the address after the question mark.
(function () {
  "use strict";
  const PLACE = "reticent-shelf", MOST = 40;
  function read() {
    try {
      const found = JSON.parse(localStorage.getItem(PLACE) || "[]");
      return Array.isArray(found) ? found.filter((one) => typeof one.name === "string" && typeof one.query === "string") : [];
    } catch (damaged) { return []; }
  }
  function button(text, label, act) {
    const made = document.createElement("button");
    made.textContent = text; made.type = "button"; made.addEventListener("click", act);
    if (label) made.setAttribute("aria-label", label);
    return made;
  }
  function write(entries) {
    try { localStorage.setItem(PLACE, JSON.stringify(entries.slice(0, MOST))); } catch (full) { /* shown as it is */ }
    show();
  }
  function show() {
    const list = document.getElementById("shelf");
    if (!list) return;
    list.replaceChildren(...read().map((one) => {
      const row = document.createElement("li");
      row.append(button(one.name, "", () => take(one.query)), button("\u00d7", "Forget " + one.name, () => write(read().filter((other) => other.name !== one.name))));
      return row;
    }));
  }
  // As if somebody went back to that address: the page's script reads it.
  function take(query) {
    window.history.pushState(null, "", query ? "?" + query : window.location.pathname);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }
  function keep() {
    const field = document.getElementById("shelf-name"), name = field.value.trim();
    if (!name) { field.focus(); return; }
    write([{ name, query: window.location.search.slice(1) }, ...read().filter((one) => one.name !== name)]);
  }
  document.addEventListener("click", (event) => { if (event.target.closest("#shelf-keep")) keep(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.id === "shelf-name") keep(); });
  const waiting = new MutationObserver(() => { if (document.getElementById("shelf")) { waiting.disconnect(); show(); } });
  waiting.observe(document.documentElement, { subtree: true, childList: true });
})();
