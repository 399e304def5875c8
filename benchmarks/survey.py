"""How wide the default numbers of random runs are: ``python -m benchmarks.survey FIRST COUNT > runs.jsonl``.

Run k is drawn with the seed k: a release of DP-SGD (eight in ten sampled by Poisson, one by random allocation, one
in batches of a fixed size), a relation and an attacker (nine in ten the worst case, one the relaxed one). Noise .3 to
30, rate 1e-7 to 1, 1 to 1e6 steps, all on the log scale. Each line says the release, the widths that miss the goal,
and the processor time. ``python -m benchmarks.survey --read runs.jsonl ...`` sums them up.

A number should be as narrow as 1e-6 of itself above 1e-15, and 1e-2 below.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reticent.adversaries import Relaxed
from reticent.adversaries.report import Number, measures
from reticent.kernel.adversaries import Adversary, Method, WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from reticent.kernel.samplers import Poisson
from reticent.samplers import FixedSize, RandomAllocation

NOISES, RATES, STEPS = (0.3, 30.0), (1e-7, 1.0), (1.0, 1e6)
GOAL, SMALL, GOAL_BELOW = 1e-6, 1e-15, 1e-2
LEAST, NOTHING, CERTAIN = 1e-290, 1e-20, 1e-6


def drawn(seed: int) -> tuple[DPSGD, Neighbouring, Adversary]:
    """The run of a seed."""
    rng = np.random.default_rng(seed)

    def between(ends: tuple[float, float]) -> float:
        return float(np.exp(rng.uniform(*np.log(ends))))

    noise, rate, steps = between(NOISES), between(RATES), int(between(STEPS))
    relation = tuple(Neighbouring)[rng.integers(3)]
    sampler, who = rng.integers(10, size=2)
    adversary = Relaxed() if who == 0 and sampler > 1 else WorstCase()
    if sampler == 0:
        bins = max(round(1.0 / rate), 2)
        return (
            DPSGD(noise, 1.0 / bins, bins * max(steps // bins, 1), sampler=RandomAllocation()),
            relation,
            adversary,
        )
    chosen = FixedSize() if sampler == 1 else Poisson()
    return DPSGD(noise, rate, steps, sampler=chosen), relation, adversary


def numbers(found: Any, name: str = "") -> Iterator[tuple[str, Number]]:
    """Every number of a report, by its place."""
    if isinstance(found, Number):
        yield name, found
    elif isinstance(found, dict):
        for key, one in found.items():
            yield from numbers(one, f"{name} {key}".strip())


def width(number: Number) -> float:
    """Relative; infinite where nothing is known from above."""
    if number.upper is None:
        return 0.0 if number.lower is None else math.inf
    if number.upper <= LEAST:
        return 0.0
    return (number.upper - (number.lower or 0.0)) / number.upper


def looked_at(seed: int) -> dict[str, Any]:
    """One run."""
    release, relation, adversary = drawn(seed)
    line: dict[str, Any] = {"seed": seed, "run": str(release), "relation": relation.value, "attacker": adversary.name}
    start = time.process_time()
    try:
        report = measures(adversary.assess(release, relation, Method.EXACT), Questions())
    except Exception as error:  # a run that is refused is one of the findings
        return {**line, "refused": f"{type(error).__name__}: {error}", "seconds": time.process_time() - start}
    found = {name: (one.lower, one.upper, width(one)) for name, one in numbers(report)}
    line["seconds"] = time.process_time() - start
    line["misses"] = {
        name: [low, high, wide]
        for name, (low, high, wide) in found.items()
        if wide > (GOAL if high is None or high > SMALL else GOAL_BELOW)
    }
    return line


REASONS = {
    "left out": "a probability below 1e-20: what all grids leave out is its bound",
    "the tail": "the smallest mu down to rates of 1e-9 is decided there, where only the polygon's tail is known",
    "allocation": "random allocation: little noise, few steps, and tails: log-normals on grids, 1e-4 by design",
    "two theorems": "fixed-size batches: the ends are a bound and what some data set attains",
    "one sign": "the relaxed attacker: lattices in two dimensions",
    "disclosed": "nearly all is disclosed: what is left of 1 is bounded by moments",
    "atoms": "nearly all steps show nothing, or rare large losses do: a lattice in place of contours",
}
"""Why a number may be wider than the goal."""


def reason(line: dict[str, Any], name: str, high: float | None) -> str:
    """A key of ``REASONS``, for one number that misses."""
    if high is not None and high < NOTHING:
        return "left out"
    if line["attacker"] != "worst-case":
        return "one sign"
    if "RANDOM_ALLOCATION" in line["run"]:
        return "allocation"
    if "FIXED_SIZE" in line["run"]:
        return "two theorems"
    if name.startswith("mu"):
        return "the tail"
    known = line["misses"].get("bayes_security")
    return "disclosed" if high is None or (known and (known[1] or 1.0) < CERTAIN) else "atoms"


def summary(lines: list[dict[str, Any]]) -> str:
    """How many numbers and runs miss, and how far, by reason; then what was refused."""
    groups: dict[str, list[tuple[float, int]]] = {key: [] for key in REASONS}
    seconds, refused, missed = [line["seconds"] for line in lines], [line for line in lines if "refused" in line], 0
    for line in lines:
        missed += bool(line.get("misses"))
        for name, (_, high, wide) in line.get("misses", {}).items():
            groups[reason(line, name, high)].append((wide, line["seed"]))
    text = [
        f"{len(lines)} runs, {missed} with a number that misses, {len(refused)} refused; CPU seconds: median "
        f"{statistics.median(seconds):.2f}, largest {max(seconds):.2f}",
        "",
        "| why | numbers | runs | median width | widest | its seed |",
        "|---|---|---|---|---|---|",
    ]
    for key, found in groups.items():
        if found:
            middle, (widest, seed) = statistics.median(wide for wide, _ in found), max(found)
            runs = len({one for _, one in found})
            text.append(f"| {REASONS[key]} | {len(found)} | {runs} | {middle:.1e} | {widest:.1e} | {seed} |")
    return "\n".join(text + [f"seed {line['seed']}: {line['refused']}" for line in refused])


NUMBERS = {
    "advantage": "advantage",
    "bayes_security": "Bayes security",
    "success_at_prior 0.5": "success at prior .5",
    "tpr_at_fpr 0.001": "power at .001",
    "tpr_at_fpr 0.01": "power at .01",
    "ppv_at_prior_and_fpr 0.5 0.001": "predictive value at .001",
    "ppv_at_prior_and_fpr 0.5 0.01": "predictive value at .01",
    "epsilon_at_delta 1e-05": "epsilon at 1e-5",
    "delta_at_epsilon 1.0": "delta at 1",
    "mu": "mu",
    "mu_at_rates_above 1e-09": "mu at rates from 1e-9 on",
}
"""Names in a report, and in the table."""


def by_number(lines: list[dict[str, Any]]) -> str:
    """Of the runs sampled by Poisson against the worst case: how often each number meets the goal."""
    usual = [line for line in lines if "Sampler" not in line["run"] and line["attacker"] == "worst-case"]
    misses = [{name: high for name, (_, high, _) in line["misses"].items()} for line in usual if "misses" in line]
    text = ["| number | meets the goal | or is below 1e-20 |", "|---|---|---|"]
    for key, name in NUMBERS.items():
        missed = [found[key] for found in misses if key in found]
        tiny = sum(high is not None and high < NOTHING for high in missed)
        text.append(f"| {name} | {1.0 - len(missed) / len(usual):.1%} | {tiny / len(usual):.1%} |")
    beside = ("mu_at_rates_above 1e-09",)
    all_else = sum(
        all(name in beside or (high is not None and high < NOTHING) for name, high in found.items()) for found in misses
    )
    text += ["", f"{len(usual)} runs; in {all_else / len(usual):.0%} every number meets the goal but these two."]
    return "\n".join(text)


def main() -> None:
    """Lines of runs, or their summary."""
    if sys.argv[1] == "--read":
        texts = [line for path in sys.argv[2:] for line in Path(path).read_text().splitlines()]
        lines = [json.loads(text) for text in texts]
        print(summary(lines), by_number(lines), sep="\n\n")
        return
    first, count = map(int, sys.argv[1:])
    for seed in range(first, first + count):
        print(json.dumps(looked_at(seed)), flush=True)


if __name__ == "__main__":
    main()
