"""What somebody who moves a slider waits for, in headless Chromium: ``python -m benchmarks.dashboard``.

Needs the ``browser`` extra, and Chromium as ``$RETICENT_CHROMIUM`` or on the path; without them there are no rows. The
server is a process of its own. The page takes the times: from the input event of a slider to the picture after the
headline that answers it. A jump every 400 ms comes into the proof of the one before. A ratio is the goal over the time:
above 1 it is kept. *All attackers* are those that can be drawn at screen accuracy.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks._rows import Row, main, spread

CHROMIUM = os.environ.get("RETICENT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
ALL = "attackers=relaxed,mixed,membership"
JUMPS = 25
SCRIPT = """
const pictured = (act) => requestAnimationFrame(() => setTimeout(act));
const rest = (ms) => new Promise((next) => setTimeout(next, ms));
const watching = (look) => {
  const watch = new MutationObserver(() => look(watch));
  watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  return watch;
};
window.first = new Promise((seen) => watching((watch) => {
  if (!document.getElementById("headline")?.dataset.turn) return;
  watch.disconnect();
  pictured(() => seen(performance.now()));
}));
window.bench = {
  // From one end of what is ordinary to the other, and back.
  next: { "noise_multiplier-slider": (x) => 60 + (x + 137) % 280, "sample_rate-slider": (x) => 240 + (x + 37) % 90 },
  // Jumps of a slider, `pause` ms apart, or each after the answer before it; for each the ms to its own.
  jumps: async function (slider, jumps, pause, answered) {
    const range = document.getElementById(slider), found = [], asked = [];
    const watch = watching(() => asked.forEach((one, k) => {
      if (found[k] !== undefined || !answered(k, one)) return;
      found[k] = 0;
      pictured(() => { found[k] = performance.now() - one.at; });
    }));
    for (let k = 0; k < jumps; k++) {
      asked.push({ at: performance.now(), before: this.lines() });
      range.value = this.next[slider](Number(range.value));
      range.dispatchEvent(new Event("input", { bubbles: true }));
      if (pause) await rest(pause);
      for (let n = 0; !pause && !found[k] && n < 4000; n++) await rest(5);
      if (!pause) await rest(700);
    }
    for (let n = 0; n < 200 && found.filter(Boolean).length < jumps; n++) await rest(100);
    watch.disconnect();
    return asked.map((_, k) => found[k] || 20000);
  },
  lines: () => ["calibrated", "compared"].map((name) => document.getElementById(name).textContent),
  // The headline of Explore names the question that it answers: questions are counted.
  explored: function (slider, jumps, pause) {
    const line = document.getElementById("headline").dataset, first = Number(line.turn) + 1;
    return this.jumps(slider, jumps, pause, (k) => Number(line.turn) >= first + k && line.follows !== "attackers");
  },
  // The headline of another panel is another; with `whole` no attacker of the table is waited for.
  other: function (slider, jumps, panel, whole) {
    const other = (one) => this.lines()[panel] && this.lines()[panel] !== one.before[panel];
    const waits = () => whole && document.querySelector("#calibrate-table td[colspan]");
    return this.jumps(slider, jumps, 0, (_, one) => other(one) && !waits());
  },
};
"""
SERVE = """
from reticent.dashboard.server import Server
server = Server("127.0.0.1", 0)
print(server.address, flush=True)
server.serve()
"""


@contextmanager
def server() -> Iterator[str]:
    """A dashboard in a process of its own; its address."""
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


@contextmanager
def page(browser: Any, address: str, query: str, width: int = 1280) -> Iterator[Any]:
    """A page that nobody has opened before, once it rests."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.add_init_script(SCRIPT)
    shown = context.new_page()
    shown.goto(f"{address}&{query}")
    shown.wait_for_selector("body[data-panel]")
    if "panel=" in query:
        shown.wait_for_selector(f"#{re.findall('panel=(.*?)&', query)[0]}d:not(:empty)")
    else:
        shown.wait_for_selector("#headline[data-follows=nothing]")
    shown.wait_for_timeout(700)
    yield shown
    context.close()


def row(work: str, goal: str, times: Sequence[float], limits: tuple[float, float]) -> Row:
    """Median and 95th percentile against their goals, in milliseconds."""
    middle, slow = statistics.median(times), sorted(times)[int(0.95 * (len(times) - 1))]
    return Row(
        work=work,
        peer=f"the goal: {goal}",
        ratio=spread([limits[0] / time for time in times]),
        error=None,
        goal=f"{goal} (here {middle:.0f} and {slow:.0f} ms)",
        met=middle <= limits[0] and slow <= limits[1],
        notes={"milliseconds": [round(time, 1) for time in times], "median": middle, "95th percentile": slow},
    )


def rows() -> Iterator[Row]:
    """The first headline, jumps, and the other panels."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if CHROMIUM is None:
        return
    with sync_playwright() as engine, server() as address:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS, chromium_sandbox=False)
        yield from measured(browser, address)
        browser.close()


def measured(browser: Any, address: str) -> Iterator[Row]:
    """Each row, in pages of its own."""
    first = []
    for k in range(6):
        with page(browser, address, f"{ALL}&noise_multiplier={1.1 + 0.01 * k}") as shown:
            first.append(shown.evaluate("window.first"))
    yield row("first headline", "median at most 1 s, 95th percentile 1 s", first[1:], (1000.0, 1000.0))
    goal = "median at most 100 ms, 95th percentile 250 ms"
    for name, query in (("the worst case alone", "attackers="), ("all attackers", ALL)):
        with page(browser, address, query) as shown:
            times = shown.evaluate(f"bench.explored('noise_multiplier-slider', {JUMPS}, 400)")
        yield row(f"a jump every 400 ms, {name}", goal, times, (100.0, 250.0))
    with page(browser, address, ALL) as shown:
        times = shown.evaluate(f"bench.explored('noise_multiplier-slider', {JUMPS}, 200)")
    yield row("a jump every 200 ms, all attackers", goal, times, (100.0, 250.0))
    goal = "median at most 300 ms, 95th percentile 600 ms"
    for work, panel, whole in (
        ("any attacker", 0, False),
        ("the relaxed attacker too", 0, True),
        ("Compare", 1, False),
    ):
        query = "panel=compare&pinned=noise_multiplier%3D2" if panel else "panel=calibrate&attackers=relaxed"
        with page(browser, address, query) as shown:
            times = shown.evaluate(f"bench.other('sample_rate-slider', 8, {panel}, {str(whole).lower()})")
        yield row(work if panel else f"Calibrate, {work}", goal, times, (300.0, 600.0))


if __name__ == "__main__":
    main(rows, __doc__ or "")
