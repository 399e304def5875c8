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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reticent.adversaries import Adversary, Relaxed, WorstCase
from reticent.adversaries.report import measures
from reticent.mechanisms import DPSGD, Neighbouring, Sampler
from reticent.risk.report import Number, Questions

NOISES, RATES, STEPS = (0.3, 30.0), (1e-7, 1.0), (1.0, 1e6)
GOAL, SMALL, GOAL_BELOW = 1e-6, 1e-15, 1e-2
LEAST = 1e-290


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
            DPSGD(noise, 1.0 / bins, bins * max(steps // bins, 1), sampler=Sampler.RANDOM_ALLOCATION),
            relation,
            adversary,
        )
    chosen = Sampler.FIXED_SIZE if sampler == 1 else Sampler.POISSON
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
        report = measures(adversary.assess(release, relation), Questions())
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


def summary(lines: list[dict[str, Any]]) -> str:
    """Counts of what misses, the widest of each number, and the times."""
    missed = [line for line in lines if line.get("misses")]
    refused = [line for line in lines if "refused" in line]
    seconds = [line["seconds"] for line in lines]
    text = [
        f"{len(lines)} runs, {len(missed)} with a number that misses, {len(refused)} refused; CPU seconds: median "
        f"{statistics.median(seconds):.2f}, largest {max(seconds):.2f}"
    ]
    count: Counter[tuple[str, str]] = Counter()
    widest: dict[tuple[str, str], float] = {}
    for line in missed:
        for name, (_, _, wide) in line["misses"].items():
            key = (line["attacker"], name)
            count[key] += 1
            widest[key] = max(widest.get(key, 0.0), wide)
    text += [f"{who}, {name}: {n} miss, widest {widest[who, name]:.1e}" for (who, name), n in count.most_common()]
    return "\n".join(text + [f"seed {line['seed']}: {line['refused']}" for line in refused])


def main() -> None:
    """Lines of runs, or their summary."""
    if sys.argv[1] == "--read":
        texts = [line for path in sys.argv[2:] for line in Path(path).read_text().splitlines()]
        print(summary([json.loads(text) for text in texts]))
        return
    first, count = map(int, sys.argv[1:])
    for seed in range(first, first + count):
        print(json.dumps(looked_at(seed)), flush=True)


if __name__ == "__main__":
    main()
