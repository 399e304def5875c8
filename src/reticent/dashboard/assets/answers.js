// Asks the server and shows what comes back: pieces of the page, pictures, files. Computes nothing about privacy.
(function () {
  "use strict";
  const PAUSES = { proof: 250 };  // milliseconds without a change before more is asked; the rest follows at once
  const PLOTLY = "_dash-component-suites/plotly/package_data/plotly.min.js";
  const ATTRIBUTES = { className: "class", colSpan: "colspan", tabIndex: "tabindex", htmlFor: "for" };
  const KEPT = ["title", "scope", "id", "href", "value", "max", "type", "open"];
  const shown = {}, undrawn = {}, listeners = [];
  let newest = null, running = null, later = 0, drawing = 0;

  // A component of the server as an element; texts stay texts.
  function made(part) {
    const all = document.createDocumentFragment();
    for (const piece of [part].flat(Infinity)) {
      if (piece === null || piece === undefined) continue;
      if (typeof piece !== "object") { all.append(String(piece)); continue; }
      const element = document.createElement(piece.type.toLowerCase());
      for (const [name, value] of Object.entries(piece.props)) {
        const called = ATTRIBUTES[name] || (KEPT.includes(name) || /^(aria|data)-/.test(name) ? name : null);
        if (called) element.setAttribute(called, value);
      }
      element.append(made(piece.props.children));
      all.append(element);
    }
    return all;
  }
  function write(parts) {
    for (const [name, part] of Object.entries(parts)) {
      const text = JSON.stringify(part), place = document.getElementById(name);
      if (!place || (shown[name] === text && place.hasChildNodes())) continue;
      shown[name] = text;
      place.replaceChildren(made(part));
    }
  }
  // Who is waited for keeps the last line, faint, until the new one is there.
  function withGhosts(place, figure, waiting) {
    const ghosts = (place.data || []).filter((line) => line.meta && waiting.includes(line.meta))
      .map((line) => ({ ...line, opacity: 0.25, hoverinfo: "skip", hovertemplate: null, name: line.meta + " (computing)" }));
    return [...figure.data.slice(0, 1), ...ghosts, ...figure.data.slice(1)];
  }
  // What draws is megabytes: it is read once words are there. Until then the newest picture of each place waits.
  function draw() {
    clearTimeout(drawing);
    if (!window.Plotly && !document.getElementById("plotly")) document.head.append(Object.assign(document.createElement("script"), { id: "plotly", src: PLOTLY }));
    for (const [name, { figure, waiting }] of Object.entries(undrawn)) {
      const place = document.getElementById(name);
      if (!window.Plotly || !place) { drawing = setTimeout(draw, 30); continue; }
      delete undrawn[name];
      const first = !place.data, dragged = { edits: { shapePosition: Boolean(figure.layout?.meta?.drag) } };
      place.toggleAttribute("data-nothing", !figure.data.length);
      window.Plotly.react(place, withGhosts(place, figure, waiting), figure.layout, { displayModeBar: false, doubleClick: "reset", ...dragged });
      if (!first) continue;
      new ResizeObserver(() => { if (place.offsetParent) window.Plotly.Plots.resize(place); }).observe(place);
      for (const [kind, listener] of listeners) place.on(kind, (event) => listener(place, event));
    }
  }
  function save(name, text) {
    const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(new Blob([text])) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  // The sentence of a panel says which question it answers, and what still follows: more attackers, the proof, or nothing.
  function marked(question, answer) {
    const line = document.querySelector(`.p-${question.settings.panel || "explore"} .answer`);
    window.reticent.arrived(question.turn);
    if (line) Object.assign(line.dataset, { turn: question.turn, follows: answer.waiting.length ? "attackers" : answer.next || "nothing" });
  }
  const theme = () => window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  async function answered(question, stage, signal) {
    const sent = JSON.stringify({ ...question, stage, theme: theme() });
    try {
      const response = await fetch("answer", { method: "POST", headers: { "Content-Type": "application/json" }, body: sent, signal });
      return response.ok ? await response.json() : { parts: { message: await response.text() } };
    } catch (stopped) {
      return signal?.aborted ? null : { stale: true, parts: { message: "The server does not answer. Start reticent dashboard again.", accuracy: "The numbers below are of earlier settings." } };
    }
  }
  function show(answer) {
    write(answer.parts || {});  // words first: the first picture waits for what draws it
    for (const [name, figure] of Object.entries(answer.figures || {})) undrawn[name] = { figure, waiting: answer.waiting };
    draw();
    if (answer.file) save(...answer.file);
    if (answer.address) window.reticent.set(answer.address);
  }
  // What the address asks is asked before the page is built; later the browser reads megabytes that draw, and answers nothing.
  const opened = Object.fromEntries(new URLSearchParams(window.location.search));
  const before = { settings: opened, session: crypto.getRandomValues(new Uint32Array(2)).join(), turn: 0 };
  let early = (opened.panel || "explore") === "explore" ? answered(before, "explore") : null;
  async function ask(question, stage) {
    const stop = new AbortController(), mine = { first: stage === question.settings.panel, stop }, known = early;
    running = mine;
    early = null;
    const answer = await (known || answered(question, stage, stop.signal));
    if (running !== mine) return;
    running = null;
    document.body.classList.toggle("stale", Boolean(answer.stale));
    document.body.classList.toggle("unproven", answer.next === "proof");
    if (answer.parts && "field" in answer && answer.next !== "plan" && stage !== "plan") {
      window.reticent.wrong(answer.field);
      document.querySelectorAll(".take-away button").forEach((button) => { button.disabled = Boolean(answer.parts.message); });
    }
    if (answer.numbers) window.reticent.placed(question.settings, answer.numbers);
    show(answer);
    if (answer.figures) marked(question, answer);
    if (newest !== question) { if (newest) ask(newest, newest.settings.panel); }
    else if (answer.next) later = setTimeout(ask, PAUSES[answer.next] || 0, question, answer.next);
  }

  window.reticent = {
    write,
    on: (kind, listener) => listeners.push([kind, listener]),
    // A new question of the panel that is seen: the short first stage is let finish, what takes longer is given up.
    ask: function (question) {
      newest = question;
      clearTimeout(later);
      if (running && running.first) return;
      if (running) running.stop.abort();
      running = null;
      if (newest) ask(newest, newest.settings.panel);
    },
    // Something that no change of the settings asks: a file to read, a file to write.
    once: async function (question, stage, more) {
      const answer = await answered({ ...question, ...more }, stage);
      show(answer.parts ? answer : { parts: { told: "The settings changed meanwhile: ask again." } });
      return answer.next ? PAUSES[answer.next] : 0;
    },
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (newest) window.reticent.ask({ ...newest }); });
})();
