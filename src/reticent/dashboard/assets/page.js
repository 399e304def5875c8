// Keeps the settings: fields, sliders, address and history say the same. Computes nothing about privacy.
(function () {
  "use strict";
  const session = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
  const SETTLED = 200;  // milliseconds without a change before the address follows: the picture comes first
  const past = [];
  const typing = {};  // fields whose text is not taken over yet
  let turn = 0, now = null, known = null, asked = null, handing = null, changedBy = null, changedAt = 0, settling = 0, waiting = 0, fresh = false, back = false, looking = 0;

  const shortest = (x, whole) => whole ? String(Math.round(x)) : String(Number(x.toPrecision(3)));
  function fromSlider(place, fact) {
    const share = place / fact.steps;
    const x = fact.log ? fact.low * Math.pow(fact.high / fact.low, share) : fact.low + (fact.high - fact.low) * share;
    return shortest(x, fact.whole);
  }
  // Where the slider lies; the server reads what is typed.
  function toSlider(x, fact) {
    if (fact.log && x <= 0) return 0;
    const share = fact.log ? Math.log(x / fact.low) / Math.log(fact.high / fact.low) : (x - fact.low) / (fact.high - fact.low);
    return Math.round(fact.steps * Math.min(1, Math.max(0, share)));
  }
  function placed(settings, numbers) {
    for (const name of known.sliders) {
      const range = document.getElementById(name + "-slider");
      if (!range || (settings[name] ?? known.defaults[name]) !== now[name]) continue;  // it was moved since
      const place = now[name] === "" ? 0 : name in numbers ? toSlider(numbers[name], known.fields[name]) : null;
      if (place !== null && place !== Number(range.value)) range.value = place;
    }
  }
  const asText = (value) => Array.isArray(value) ? value.filter((v) => v !== "worst-case").join(",") : String(value ?? "");
  const asValue = (name, text) => name === "attackers" ? ["worst-case", ...text.split(",").filter((v) => v && v !== "worst-case")] : text;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function remember(before, by) {
    const soon = by === changedBy && Date.now() - changedAt < 900;
    changedBy = by; changedAt = Date.now();
    if (!soon && before) { fresh = true; past.push(before); if (past.length > 100) past.shift(); }
  }
  function address(settings, defaults) {
    const query = new URLSearchParams();
    for (const name of Object.keys(defaults)) if (settings[name] !== defaults[name]) query.set(name, settings[name]);
    return query.toString();
  }
  function plain(settings) {
    const rest = new URLSearchParams();
    for (const name of known.pinned) rest.set(name, settings[name]);
    return rest.toString();
  }
  function mark(settings) {
    const data = document.body.dataset;
    for (const name of ["panel", "mechanism", "by", "view", "target", "sampler", "selection"]) data[name] = settings[name];
    if (settings.policy) data.policy = "yes"; else delete data.policy;
    data.attackers = settings.attackers.split(",").join(" ");
    for (const name of known.sliders) {
      const range = document.getElementById(name + "-slider"), field = document.getElementById(name), text = settings[name];
      if (!typing[name] && field.value !== text) field.value = text;
      if (!range) continue;
      range.setAttribute("aria-valuetext", text === "" ? "empty" : text);
    }
    if (known.folded.some((name) => settings[name] !== known.defaults[name])) document.getElementById("more").open = true;
    const goal = document.getElementById("goal-label"), place = document.getElementById("place-label");
    if (goal) goal.textContent = settings.target === "bayes-security" ? "at least" : "at most";
    if (place) place.textContent = "at " + (known.at[settings.target] || "");
  }
  function told(text) {
    const place = document.getElementById("told");
    if (place) { place.textContent = text; setTimeout(() => { if (place.textContent === text) place.textContent = ""; }, 2500); }
  }
  async function copied(text, what) {
    if (!text) { told("There is nothing to copy yet"); return; }
    try { await navigator.clipboard.writeText(text); told(what + " copied"); }
    catch (refused) {
      const area = document.createElement("textarea");
      area.value = text; document.body.append(area); area.select();
      const done = document.execCommand("copy"); area.remove();
      told(done ? what + " copied" : "Copying is not allowed here: select the text below");
    }
  }
  function picture(kind) {
    const panel = document.body.dataset.panel;
    const name = { explore: "figure", calibrate: "calibrate-figure", compare: "compare-figure", open: "open-figure" }[panel];
    const plot = document.querySelector("#" + name + ".js-plotly-plot, #" + name + " .js-plotly-plot");
    if (!plot || !plot.data || !plot.data.length) { told("There is no picture yet"); return; }
    const ground = getComputedStyle(document.body).backgroundColor;
    const layout = Object.assign({}, plot.layout, { paper_bgcolor: ground });
    window.Plotly.downloadImage({ data: plot.data, layout }, { format: kind, width: 1000, height: 640, filename: "reticent-" + panel });
  }

  // Fields and sliders of parameters are the page's own: what they say reaches the figure without a detour.
  function addFields() {
    document.querySelectorAll(".place:empty").forEach((place) => {
      const name = place.dataset.name, field = document.createElement("input"), range = document.createElement("input");
      const words = known.fields[name].text;
      Object.assign(field, { type: "text", id: name, inputMode: words ? "text" : "decimal", maxLength: 40, autocomplete: "off", spellcheck: false });
      Object.assign(range, { type: "range", id: name + "-slider", min: 0, max: known.fields[name].steps, step: 1 });
      const take = () => { clearTimeout(typing[name]); delete typing[name]; change(name, field.value.trim(), name); };
      field.addEventListener("input", () => { clearTimeout(typing[name]); typing[name] = setTimeout(take, 500); });
      field.addEventListener("change", take);
      range.addEventListener("input", () => change(name, fromSlider(Number(range.value), known.fields[name]), range.id));
      place.append(field, ...(words ? [] : [range]));
    });
  }
  function change(name, text, by) {
    if (text === now[name]) return;
    remember(now, by);
    const jump = !settling;
    adopt({ ...now, [name]: text }, now.panel === "explore" || jump);  // Explore asks at each place; the others at once, and where a drag ends
    clearTimeout(settling);
    settling = setTimeout(() => { settling = 0; handed(); if (now.panel !== "explore" && asked !== now) ask(); }, SETTLED);
  }
  // Dash hears of settings that its own controls did not change.
  function set(settings) {
    handing = typeof settings === "string" ? Object.fromEntries(new URLSearchParams(settings)) : settings;
    window.dash_clientside.set_props("shared", { data: Date.now() });
  }
  // From here on these are the settings; the panel that is seen asks now.
  function adopt(next, at_once = true) {
    if (next.panel !== now?.panel) window.reticent.write({ told: "", message: "", "ledger-said": "", "policy-said": "", python: "", command: "" });
    now = next;
    turn += 1;
    addFields();
    mark(now);
    if (at_once) ask();
    clearTimeout(waiting);
    if (now.panel !== "open") waiting = setTimeout(() => document.body.classList.add("asking"), 300);
    else document.body.classList.remove("asking");
  }
  const question = () => ({ settings: now, session, turn });
  function ask() {
    asked = now;
    window.reticent.ask(now.panel === "open" ? null : question());
  }
  // The address follows the settings.
  function handed() {
    const query = address(now, known.defaults);
    window.history[fresh ? "pushState" : "replaceState"](null, "", query ? "?" + query : window.location.pathname);
    fresh = false;
    document.getElementById("undo").disabled = past.length === 0;
  }
  // A file or a folder; an audit that runs is looked at again.
  async function open(more) {
    clearTimeout(looking);
    const pause = await window.reticent.once(question(), "open", more);
    if (pause) looking = setTimeout(() => { if (now.panel === "open") open(more); }, pause);
  }
  // On a phone the settings lie below the picture, which stays in view.
  function drawer(open) {
    document.body.classList.toggle("drawer", open);
    document.getElementById("to-settings").setAttribute("aria-expanded", String(open));
    if (open) document.querySelector(`.p-${now.panel} .frame`)?.scrollIntoView({ block: "start" });
    document.getElementById(open ? "close-settings" : "to-settings").focus({ preventScroll: true });
  }
  // A field that is wrong is marked where it is.
  function wrong(name) {
    document.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
    const field = document.getElementById(name || "none");
    field?.setAttribute("aria-invalid", "true");
    field?.closest("details")?.setAttribute("open", "");
  }

  // What is shown answers this question: until then it is of earlier settings, and looks so.
  function arrived(number) {
    if (number !== turn) return;
    clearTimeout(waiting);
    document.body.classList.remove("asking");
  }
  Object.assign(window.reticent, { arrived, placed, set, wrong });
  const plainFetch = window.fetch;
  window.fetch = async (...given) => {
    try {
      const response = await plainFetch(...given);
      document.body.classList.remove("gone");
      return response;
    } catch (stopped) {
      if (stopped.name !== "AbortError") document.body.classList.add("gone");
      throw stopped;
    }
  };

  // Dash writes lists of options that hold radio buttons; screen readers need groups.
  function mend() {
    document.querySelectorAll(".dash-options-list[role=listbox]").forEach((list) => {
      list.setAttribute("role", list.classList.contains("dash-checklist") ? "group" : "radiogroup");
      list.setAttribute("aria-label", list.closest("fieldset").querySelector("legend").textContent);
    });
    document.querySelectorAll(".dash-options-list label").forEach((label) => {
      for (const name of ["role", "aria-selected"]) if (label.hasAttribute(name)) label.removeAttribute(name);
    });
    document.querySelectorAll("input[type=file]:not([aria-label])").forEach((file) => file.setAttribute("aria-label", "Choose a file"));
  }
  let mending = 0;
  new MutationObserver(() => {
    if (!mending) mending = setTimeout(() => { mending = 0; mend(); }, 30);
  }).observe(document.documentElement, { subtree: true, childList: true, attributes: true, attributeFilter: ["aria-selected"] });

  window.dash_clientside = Object.assign({}, window.dash_clientside, { reticent: {
    // [controls...] in, the same out.
    keep: function (...given) {
      known = given.pop();
      given.splice(-4);  // undo, pin, swap, shared: only that they were touched matters
      const { controls, defaults } = known;
      const keep = window.dash_clientside.no_update;
      const by = window.dash_clientside.callback_context.triggered.map((t) => t.prop_id.split(".")[0]);
      const mine = (set, names) => Object.fromEntries(Object.entries(set).filter(([k]) => names.includes(k)));
      let next = now ? Object.assign({}, now) : null;
      if (!next) {
        next = located();
      } else if (by.includes("undo")) {
        if (past.length) next = past.pop();
        changedBy = null;
      } else {
        if (by.includes("swap") && !next.pinned) told("Keep settings as A first");
        for (const name of by) {
          if (name === "pin") next.pinned = plain(next);
          else if (name === "swap" && next.pinned) {
            const other = Object.fromEntries(new URLSearchParams(next.pinned));
            next.pinned = plain(next);
            Object.assign(next, mine(other, known.pinned));
          } else if (name === "shared") {
            Object.assign(next, mine(handing || {}, Object.keys(defaults)));
            handing = null;
          } else if (controls.includes(name)) next[name] = asText(given[controls.indexOf(name)]);
        }
        if (by.includes("target") && next.target !== now.target) { next.goal = known.goals[next.target]; next.place = known.places[next.target] || ""; }
        if (!same(next, now) && !by.includes("undo") && !back) remember(now, by.join());
        back = false;
      }
      if (!same(next, now)) { adopt(next); handed(); }
      return controls.map((name, k) => { const v = asValue(name, now[name]); return same(given[k], v) ? keep : v; });
    },
    chosen: function (contents, names) {
      const upload = window.dash_clientside.callback_context.triggered[0]?.prop_id.split(".")[0];
      if (!contents) return;
      const files = [contents].flat().map((content, k) => [content, [names].flat()[k]]);
      if (upload === "upload") open({ files });
      else window.reticent.once(question(), known.reads[upload], { files });
    },
  } });
  function located() {
    const query = Object.fromEntries([...new URLSearchParams(window.location.search)].filter(([k]) => k in known.defaults));
    const found = Object.assign({}, known.defaults, query);
    if (!found.place) found.place = known.places[found.target] || "";
    return found;
  }

  // A place on the map becomes noise and rate.
  window.reticent.on("plotly_click", (place, click) => {
    const point = click?.points?.[0];
    if (place.id === "map" && point) set({ mechanism: "dpsgd", by: "rate", noise_multiplier: shortest(point.y, false), sample_rate: shortest(point.x, false) });
  });
  // A dragged target line becomes the field.
  window.reticent.on("plotly_relayout", (place, moved) => {
    const kind = place.layout?.meta?.drag;
    if (!kind || !("shapes[0].x0" in moved || "shapes[0].y0" in moved)) return;
    const line = place.layout.shapes[0], sum = (line.x0 + line.y0 + line.x1 + line.y1) / 2;
    const value = { advantage: 1 - sum, "bayes-security": sum, epsilon: line.x0, tpr: line.y0, success: line.y0 + place.layout.meta.blind }[kind];
    if (Number.isFinite(value)) set({ goal: shortest(value, false) });
  });
  document.addEventListener("click", (event) => {
    const id = event.target.closest("button, a")?.id;
    const text = (name) => document.getElementById(name)?.textContent || "";
    if (id === "copy-python") copied(text("python"), "Python");
    if (id === "copy-command") copied(text("command"), "Command");
    if (id === "link") copied(window.location.href, "Link");
    if (id === "png" || id === "svg") picture(id);
    const why = event.target.closest("a[href^='#why-']");
    if (why) {
      event.preventDefault();
      document.getElementById("why").open = true;
      document.getElementById(why.getAttribute("href").slice(1))?.scrollIntoView({ block: "start" });
    }
    const changes = event.target.closest("[data-settings]");
    if (changes) set(changes.dataset.settings);
    if (["csv", "certificate", "sheet"].includes(id)) window.reticent.once(question(), id);
    if (id === "to-settings" || id === "close-settings") drawer(id === "to-settings" && !document.body.classList.contains("drawer"));
    if (id === "open-path") open({ path: document.getElementById("path").value });
  });
  // Back and forward go through the settings; the address holds them all.
  window.addEventListener("popstate", () => {
    if (!known) return;
    back = true;
    set(located());
  });
  // A sheet of paper is narrower than most windows.
  const pictures = () => [...document.querySelectorAll(".js-plotly-plot")].filter((plot) => plot.offsetParent);
  window.addEventListener("beforeprint", () => pictures().forEach((plot) => window.Plotly.relayout(plot, { width: Math.min(plot.clientWidth, 660), autosize: false })));
  window.addEventListener("afterprint", () => pictures().forEach((plot) => window.Plotly.relayout(plot, { width: null, autosize: true })));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=text], textarea");
    if (event.key === "Enter" && event.target.id === "path") open({ path: event.target.value });
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.shiftKey && !typing) {
      event.preventDefault();
      document.getElementById("undo")?.click();
    }
  });
})();
