"""CPU time of a verb's answer after start-up, over a grid of releases: ``python -m benchmarks.verbs``.

The grid is noise .05 to 1e3, rate 1e-8 to 1, 1 to 1e8 steps; 60 of its points are drawn with a fixed seed (20 for the
relaxed adversary). Each is assessed once, and all numbers that ``reticent risk`` prints by default are read off. What
is timed is the processor time of this process, so another program beside it does not count. A ratio is the budget
over the time: above 1 it is kept.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from benchmarks._rows import Row, forget, main, spread
from reticent.adversaries import Relaxed
from reticent.adversaries.report import measures
from reticent.calibration import Advantage, EpsilonAtDelta, NoiseMultiplier, calibrate
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.adversaries import Adversary, Method, WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions

NOISES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0, 100.0, 1e3)
RATES = (1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0)
STEPS = (1, 100, 10**4, 10**6, 10**8)
RELEASES = 60
T = TypeVar("T")
RELATION = Neighbouring.ADD_REMOVE


def grid(count: int = RELEASES, seed: int = 1) -> list[DPSGD]:
    """``count`` points of the grid, in an order that the seed fixes."""
    points = list(itertools.product(NOISES, RATES, STEPS))
    order = np.random.default_rng(seed).permutation(len(points))
    return [DPSGD(*points[k]) for k in order[:count]]


def answer(adversary: Adversary, release: DPSGD) -> float:
    """Assess ``release``, read all default numbers; the width of the advantage's enclosure."""
    advantage = measures(adversary.assess(release, RELATION, Method.EXACT), Questions())["advantage"]
    return float(advantage.upper - advantage.lower)


def risk_rows(adversary: Adversary, releases: list[DPSGD], median: float, most: float) -> Iterator[Row]:
    """One row for the median and one for the largest time, in seconds of CPU."""
    answer(adversary, DPSGD(1.0, 0.02, 50))  # imports and tables
    taken = [_timed(lambda release=release: answer(adversary, release)) for release in releases]  # type: ignore[misc]
    seconds, widths = [t for t, _ in taken], [w for _, w in taken]
    slowest = releases[seconds.index(max(seconds))]
    named = f"risk dpsgd, {adversary.name}, {len(releases)} releases"
    for what, value, budget in (("median", statistics.median(seconds), median), ("largest", max(seconds), most)):
        yield Row(
            work=f"{named}: {what}",
            peer=f"the budget, {budget:g} s of CPU",
            ratio=spread([budget / value]),
            error=statistics.median(widths) if what == "median" else max(widths),
            goal=f"{budget:g} s of CPU after start-up; error: width of the advantage",
            met=value <= budget,
            notes={"seconds": value, "slowest": str(slowest) if what == "largest" else None},
        )


def single_rows() -> Iterator[Row]:
    """One number asked, and a calibration: ordinary runs."""
    run = (1.0, 0.01, 1000)
    works: list[tuple[str, Callable[[], object], float]] = [
        ("certified advantage", lambda: certified_advantage(*run, RELATION), 0.001),
        ("calibrate noise to an advantage", lambda: _calibrated(Advantage(0.1)), 0.01),
        ("calibrate noise to an epsilon", lambda: _calibrated(EpsilonAtDelta(2.0, 1e-6)), 0.05),
    ]
    for name, work, budget in works:
        work()
        seconds = [_timed(work)[0] for _ in range(9)]
        middle = statistics.median(seconds)
        yield Row(
            work=f"{name}, noise 1, rate 0.01, 1000 steps",
            peer=f"the budget, {budget:g} s of CPU",
            ratio=spread([budget / s for s in seconds]),
            error=None,
            goal=f"{budget:g} s of CPU",
            met=middle <= budget,
            notes={"seconds": middle},
        )


def rows() -> Iterator[Row]:
    """Every verb."""
    yield from single_rows()
    yield from risk_rows(WorstCase(), grid(), median=0.25, most=2.0)
    yield from risk_rows(Relaxed(), grid(RELEASES // 3), median=0.5, most=3.0)


def _calibrated(target: Advantage | EpsilonAtDelta) -> object:
    return calibrate(DPSGD(1.0, 0.01, 1000), NoiseMultiplier(), target, neighbouring=RELATION)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    forget()
    start = time.process_time()
    value = work()
    return time.process_time() - start, value


if __name__ == "__main__":
    main(rows, __doc__ or "")
