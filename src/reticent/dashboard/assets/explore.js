// The panel that explores: asks for each stage in turn and draws what comes back. Computes nothing about privacy.
(function () {
  "use strict";
  const QUIET = 250;  // milliseconds without a change before the proof is asked for
  const ATTRIBUTES = { className: "class", title: "title", scope: "scope", colSpan: "colspan", "aria-hidden": "aria-hidden", id: "id", href: "href" };
  const shown = {};
  let newest = null, running = null, later = 0, last = null;

  // A component of the server as an element; texts stay texts.
  function made(part) {
    const all = document.createDocumentFragment();
    for (const piece of [part].flat(Infinity)) {
      if (piece === null || piece === undefined) continue;
      if (typeof piece !== "object") { all.append(String(piece)); continue; }
      const element = document.createElement(piece.type);
      for (const [name, value] of Object.entries(piece.props)) if (name in ATTRIBUTES) element.setAttribute(ATTRIBUTES[name], value);
      element.append(made(piece.props.children));
      all.append(element);
    }
    return all;
  }
  function write(parts) {
    for (const [name, part] of Object.entries(parts)) {
      const text = JSON.stringify(part), place = document.getElementById(name);
      if (!place || shown[name] === text) continue;
      shown[name] = text;
      place.replaceChildren(made(part));
    }
  }
  // Who is waited for keeps the last line, faint, until the new one is there.
  function withGhosts(figure, waiting) {
    const old = document.getElementById("figure").data || [];
    const ghosts = old.filter((line) => line.meta && waiting.includes(line.meta))
      .map((line) => ({ ...line, opacity: 0.25, hoverinfo: "skip", hovertemplate: null, name: line.meta + " (computing)" }));
    return [figure.data[0], ...ghosts, ...figure.data.slice(1)];
  }
  function draw(answer) {
    const place = document.getElementById("figure");
    if (!window.Plotly || !place) { setTimeout(() => { if (last === answer) draw(answer); }, 30); return; }
    const first = !place.data;
    window.Plotly.react(place, withGhosts(answer.figure, answer.waiting), answer.figure.layout, { displayModeBar: false, doubleClick: "reset" });
    if (first) new ResizeObserver(() => { if (place.offsetParent) window.Plotly.Plots.resize(place); }).observe(place);
  }
  // The headline says which question it answers, and what still follows: more attackers, the proof, or nothing.
  function marked(question, answer) {
    const line = document.getElementById("headline");
    window.reticent.arrived(question.turn);
    if (line) Object.assign(line.dataset, { turn: question.turn, follows: answer.waiting?.length ? "attackers" : answer.next || "nothing" });
  }
  const theme = () => window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  async function answered(question, stage, signal) {
    const sent = JSON.stringify({ ...question, stage, theme: theme() });
    try {
      const response = await fetch("explore", { method: "POST", headers: { "Content-Type": "application/json" }, body: sent, signal });
      return response.ok ? await response.json() : { parts: { message: await response.text() } };
    } catch (stopped) {
      return signal.aborted ? null : { stale: true, parts: { message: "The server does not answer. Start reticent dashboard again.", accuracy: "The numbers below are of earlier settings." } };
    }
  }
  // What the address asks is asked before the page is built; later the browser reads megabytes that draw, and answers nothing.
  const opened = Object.fromEntries(new URLSearchParams(window.location.search)), before = { settings: opened, session: crypto.getRandomValues(new Uint32Array(2)).join(), turn: 0 };
  let early = (opened.panel || "explore") === "explore" ? answered(before, "first", new AbortController().signal) : null;
  async function ask(stage) {
    const question = newest, stop = new AbortController(), mine = { stage, stop };
    running = mine;
    const known = early;
    early = null;
    const answer = await (known || answered(question, stage, stop.signal));
    if (running !== mine) return;
    running = null;
    document.body.classList.toggle("stale", Boolean(answer.stale));
    document.body.classList.toggle("unproven", Boolean(answer.next));
    if (answer.parts) write(answer.parts);  // words first: the first picture waits for what draws it
    if (answer.parts && "headline" in answer.parts) marked(question, answer);
    if (answer.figure) { last = answer; draw(answer); }
    if (newest !== question) ask("first");
    else if (answer.next) later = setTimeout(ask, QUIET, answer.next);
  }

  window.reticent = {
    theme,
    // A new question: the short first stage is let finish, what takes longer is given up.
    explore: function (question) {
      newest = question;
      clearTimeout(later);
      if (running && running.stage === "first") return;
      if (running) running.stop.abort();
      ask("first");
    },
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (newest) window.reticent.explore({ ...newest }); });
})();
