"""Speed of exact composition against today's accountants, on the configurations c1 to c5.

    python -m benchmarks.accounting [--json]

Each row is the same work for both sides, interleaved in one process. dp_accounting runs at its grid 1e-4,
building and composing the privacy loss distribution and reading the number; riskcal reads the betas off that
distribution. Errors are ours against the printed references of tests/golden/composition.json (ten digits) or,
for certified rows, the width. Ratios are peer's time over ours: min, median, max over repeats; a geometric
mean row follows each family.
"""

from __future__ import annotations

import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import reticent as rt
from benchmarks._rows import Limit, Row, interleave, limit, main, spread
from experiments.worst_advantage import advantage
from reticent.accountants.advantage_map import advantage_map
from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.step_losses import QUICK
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.pairs import Neighbouring

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import fourier_accountant
    from dp_accounting.pld import privacy_loss_distribution
    from riskcal.analysis import get_beta_from_pld

_GOLDEN = json.loads((Path(__file__).parents[1] / "tests" / "golden" / "composition.json").read_text())
_ALPHAS = np.array(_GOLDEN["alphas"])
_REPEATS = 5
_BATCH = 20  # ours is repeated within one timing, so that the clock resolves it
_ADD = Neighbouring.ADD_REMOVE


def _peer_pld(row: dict) -> privacy_loss_distribution.PrivacyLossDistribution:
    one = privacy_loss_distribution.from_gaussian_mechanism(
        row["noise_multiplier"], sampling_prob=row["sample_rate"], value_discretization_interval=1e-4
    )
    return one.self_compose(row["steps"])


def _timed(ours: Callable[[], object], peer: Callable[[], object], batch: int = _BATCH) -> list[float]:
    """Peer's time over the time of one of our calls."""

    def many() -> None:
        for _ in range(batch):
            ours()

    return [ratio * batch for ratio in interleave(many, peer, _REPEATS)]


def _limit(run: tuple[float, float, int], ours: Callable[[], object], ratios: Sequence[float]) -> Limit:
    """Whatever the rule, it needs the characteristic function of one step: a sine for each node and frequency."""
    nodes, frequencies = WorstCaseProfile(*run, _ADD, 0.0, QUICK).size
    angles = 1j * np.linspace(0.0, 20.0, nodes * frequencies)
    return limit(
        "e^(itL) at all nodes and frequencies",
        lambda: [np.exp(angles) for _ in range(_BATCH)],
        lambda: [ours() for _ in range(_BATCH)],
        statistics.median(ratios),
    )


def _family(rows: list[Row], name: str, peer: str, mean_goal: float, moonshot: float) -> list[Row]:
    """The rows and their geometric mean."""
    medians = [row.ratio["median"] for row in rows]
    mean = statistics.geometric_mean(medians)
    total = {"min": min(medians), "median": mean, "max": max(medians)}
    goal = f"{mean_goal:g}x geometric mean (in the column of medians)"
    return [*rows, Row(f"{name}, geometric mean", peer, total, None, goal, mean >= mean_goal, moonshot=moonshot)]


def _arguments(row: dict) -> tuple[float, float, int]:
    return row["noise_multiplier"], row["sample_rate"], row["steps"]


def advantage_rows() -> list[Row]:
    """Advantage with error at most 1e-8."""
    rows = []
    for row in _GOLDEN["reference"]:
        run = _arguments(row)
        ratios = _timed(
            lambda run=run: advantage(*run, _ADD), lambda row=row: _peer_pld(row).get_delta_for_epsilon(0.0)
        )
        error = abs(advantage(*run, _ADD) - row["advantage"])
        met = statistics.median(ratios) >= 80 and error <= 1e-8
        floor = _limit(run, lambda run=run: advantage(*run, _ADD), ratios)
        work, goal = f"advantage {row['name']}", "80x, error 1e-8"
        rows.append(Row(work, "dp_accounting", spread(ratios), error, goal, met, limit=floor))
    return _family(rows, "advantage", "dp_accounting", 500, 5000)


def certified_rows() -> list[Row]:
    """Advantage with a proven width of at most 1e-6."""
    rows = []
    for row in _GOLDEN["reference"]:
        run = _arguments(row)
        ratios = _timed(
            lambda run=run: certified_advantage(*run, _ADD), lambda row=row: _peer_pld(row).get_delta_for_epsilon(0.0)
        )
        lower, upper = certified_advantage(*run, _ADD)
        holds = lower - 1e-10 <= row["advantage"] <= upper + 1e-10
        met = statistics.median(ratios) >= 40 and upper - lower <= 1e-6 and holds
        work = f"certified advantage {row['name']}"
        floor = _limit(run, lambda run=run: certified_advantage(*run, _ADD), ratios)
        rows.append(Row(work, "dp_accounting", spread(ratios), upper - lower, "40x, width 1e-6", met, limit=floor))
    return _family(rows, "certified advantage", "dp_accounting", 200, 1000)


def full_rows() -> list[Row]:
    """Advantage, epsilon at 1e-5 and four betas in both directions."""
    rows = []
    for row in _GOLDEN["reference"]:
        run = _arguments(row)

        def ours(run: tuple[float, float, int] = run) -> tuple[float, float, np.ndarray]:
            profile = WorstCaseProfile(*run, _ADD)
            return profile.advantage(), profile.epsilon(1e-5)[0], 1.0 - profile.power(_ALPHAS)[0]

        def peer(row: dict = row) -> None:
            pld = _peer_pld(row)
            pld.get_delta_for_epsilon(0.0)
            pld.get_epsilon_for_delta(1e-5)
            get_beta_from_pld(pld, alpha=_ALPHAS)

        ratios = _timed(ours, peer, 4)
        error = float(np.max(np.abs(ours()[2] - row["betas"])))
        met = statistics.median(ratios) >= 40 and error <= 6e-8
        notes: dict[str, object] = {"reference digits": 7}
        work, goal = f"advantage + epsilon + 4 betas {row['name']}", "40x, beta error 1e-8 (printed to 7 digits)"
        floor = _limit(run, ours, ratios)
        rows.append(Row(work, "dp_accounting + riskcal", spread(ratios), error, goal, met, notes, limit=floor))
    return _family(rows, "advantage + epsilon + 4 betas", "dp_accounting + riskcal", 300, 3000)


def fourier_rows() -> list[Row]:
    """One delta of the replacement pair."""
    rows = []
    for row in _GOLDEN["reference"]:
        noise, rate, steps = _arguments(row)

        def peer(noise: float = noise, rate: float = rate, steps: int = steps) -> float:
            return fourier_accountant.get_delta_S(target_eps=0.5, sigma=noise, q=rate, ncomp=steps, nx=10**6, L=20.0)

        def ours(noise: float = noise, rate: float = rate, steps: int = steps) -> float:
            return float(WorstCaseProfile(noise, rate, steps, Neighbouring.REPLACE).delta(np.array([0.5]))[0])

        try:
            error = abs(float(np.real(peer())) - ours())
            ratios = _timed(ours, peer)
        except ValueError:
            continue  # fourier_accountant refuses where its window is too small
        if error > 1e-3:
            continue  # or returns nonsense there: no bar for speed
        met = statistics.median(ratios) >= 100
        work, note = f"delta(0.5), replacement, {row['name']}", "error: distance between the two"
        rows.append(Row(work, "fourier-accountant", spread(ratios), error, "100x", met, {"error": note}))
    return rows


def map_rows() -> list[Row]:
    """200 x 200 values; seconds of ours, and the peer's time for one value times 40,000 as the ratio."""
    rows = []
    for steps, allowed in ((10_000, 3.0), (1_000, 10.0)):
        noise, rate = np.geomspace(0.5, 10.0, 200), np.geomspace(1e-4, 0.1, 200)
        seconds = min(_seconds(lambda n=noise, p=rate, t=steps: advantage_map(n, p, t, _ADD)) for _ in range(3))
        middle = {"noise_multiplier": 2.2, "sample_rate": 3e-3, "steps": steps}
        one = _seconds(lambda row=middle: _peer_pld(row).get_delta_for_epsilon(0.0))
        ratio = 40_000 * one / seconds
        notes: dict[str, object] = {"seconds": round(seconds, 2), "ratio": "extrapolated from one value of the peer"}
        work = f"200 x 200 map of advantage, {steps} steps"
        rows.append(Row(work, "dp_accounting", spread([ratio]), None, f"{allowed:g} s", seconds <= allowed, notes))
    return rows


def ledger_rows() -> list[Row]:
    """A ledger of different kinds of steps; the peer's time for one distribution times their number."""
    middle = {"noise_multiplier": 1.5, "sample_rate": 4e-3, "steps": 1}
    one = min(_seconds(lambda: _peer_pld(middle)) for _ in range(3))
    rows = []
    _seconds(lambda: rt.assess(rt.DPSGD(1.0, 0.01, 10)).document)  # what is loaded once does not count
    for kinds, allowed in ((100, 1.0), (1_000, 3.0), (10_000, 15.0)):
        noises, rates = np.linspace(1.0, 2.0, kinds).tolist(), np.geomspace(1e-3, 0.02, kinds).tolist()
        ledger = rt.Ledger(tuple(rt.DPSGD(noise, rate, 1) for noise, rate in zip(noises, rates, strict=True)))
        seconds = _seconds(lambda ledger=ledger: rt.assess(ledger).document)
        epsilon = rt.assess(ledger)[0].measure(rt.epsilon_at_delta, 1e-5)
        width = (epsilon.upper - epsilon.lower) / epsilon.upper
        notes: dict[str, object] = {"seconds": round(seconds, 2), "ratio": "extrapolated; the peer only builds"}
        met, work = seconds <= allowed and width <= 1e-6, f"all numbers of a ledger of {kinds:,} different steps"
        goal = f"{allowed:g} s, epsilon within 1e-6"
        rows.append(Row(work, "dp_accounting", spread([kinds * one / seconds]), width, goal, met, notes))
    return rows


FAMILIES: list[Callable[[], list[Row]]] = [
    advantage_rows,
    certified_rows,
    full_rows,
    fourier_rows,
    map_rows,
    ledger_rows,
]
"""Each adds its rows; a new family is a function here."""


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rows() -> Sequence[Row]:
    """All families."""
    table = [row for family in FAMILIES for row in family()]
    if not all(math.isfinite(value) for row in table for value in row.ratio.values()):
        raise ValueError("a ratio is not finite")
    return table


if __name__ == "__main__":
    main(rows, "Exact composition against dp_accounting, riskcal and fourier-accountant.")
