"""Calibration and closed forms: time against riskcal, width and time of the common-sign enclosure.

``python -m benchmarks.calibration [--json]``. Both sides calibrate the noise multiplier of the same
Poisson-sampled DP-SGD run to the same advantage under add/remove; riskcal 1.5.1 runs with its defaults.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks._rows import Row, forget, interleave, limit, main, spread
from experiments.closed_forms import forms as closed_forms
from experiments.worst_advantage import advantage
from reticent.adversaries import Membership, Relaxed
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    NoiseMultiplier,
    Recovered,
    Success,
    Target,
    TprAtFpr,
    calibrate,
)
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring

RUNS = ((0.01, 1000), (0.001, 10_000), (0.004, 20_000))
TARGET = 0.1
CLOSED_FORM_TARGETS: tuple[Target, ...] = (
    Advantage(TARGET),
    BayesSecurity(1.0 - TARGET),
    Success(0.75, 0.7),
    TprAtFpr(0.01, 0.001),
    EpsilonAtDelta(1.0, 1e-5),
)

_FORMULAS: dict[Method, tuple[Target, ...]] = {
    Method.CLT: CLOSED_FORM_TARGETS,
    Method.CLOSED_FORM: CLOSED_FORM_TARGETS,
    Method.PUBLISHED: CLOSED_FORM_TARGETS,
    Method.PROVEN: (Advantage(TARGET),),
}


def worst_case_rows() -> list[Row]:
    """Certified calibration against riskcal's, and the estimate that steers it for the error."""
    from riskcal.calibration import find_noise_multiplier_for_advantage_dpsgd as peer

    rows = []
    for rate, steps in RUNS:
        run = DPSGD(1.0, rate, steps)

        def ours(run: DPSGD = run) -> float:
            return calibrate(run, NoiseMultiplier(), Advantage(TARGET)).value

        def theirs(rate: float = rate, steps: int = steps) -> float:
            return float(peer(advantage=TARGET, sample_rate=rate, num_steps=steps))

        ratios = interleave(ours, theirs, 3, before=forget)
        answer = ours()
        achieved = WorstCase().assess(DPSGD(answer, rate, steps)).measure(Advantage(TARGET).measure)
        error = TARGET - achieved.value
        goal = "1,500 times riskcal, risk within 1e-4 relative below the target"
        met = min(ratios) >= 1500 and 0 <= error <= 1e-4 * TARGET
        notes: dict[str, object] = {"noise_multiplier": answer, "riskcal": theirs()}
        floor = limit(
            "one advantage at the answer",
            lambda run=run, noise=answer: advantage(noise, run.sample_rate, run.steps, Neighbouring.ADD_REMOVE),
            ours,
            float(np.median(ratios)),
            before=forget,
        )
        work = f"noise for advantage 0.1, p={rate}, T={steps}"
        rows.append(Row(work, "riskcal", spread(ratios), error, goal, met, notes, floor, 10_000))
    return rows


def seconds(work: Callable[[], object], repeats: int = 5) -> list[float]:
    """CPU seconds of repeated calls, each with empty caches, after one that is not counted."""
    work()
    out = []
    for _ in range(repeats):
        forget()
        start = time.process_time()
        work()
        out.append(time.process_time() - start)
    return out


def absolute_rows() -> list[Row]:
    """Goals without a peer: the ratio column is the allowed time over ours."""
    run, noise = DPSGD(1.0, 0.01, 1000), NoiseMultiplier()
    works: list[tuple[str, float, Callable[[], object]]] = [
        (f"worst-case calibration, {target}", 0.05, lambda t=target: calibrate(run, noise, t))  # type: ignore[misc]
        for target in (*CLOSED_FORM_TARGETS, Recovered(0.05, 0.02))
    ]
    works.append(("relaxed calibration", 5.0, lambda: calibrate(run, noise, Advantage(TARGET), Relaxed())))
    rows = [_budget(name, seconds(work, 9), allowed, 0.01) for name, allowed, work in works]
    for how, targets in _FORMULAS.items():
        cases = [(target, where) for where in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE) for target in targets]
        times = [seconds(_formula(run, target, where, how), 9) for target, where in cases]
        slowest = max(times, key=np.median)
        rows.append(
            _budget(f"calibration by {how.value}, slowest of {len(cases)} targets and relations", slowest, 1e-3)
        )
    return rows


def _budget(name: str, times: list[float], allowed: float, moonshot: float | None = None) -> Row:
    """A row whose peer is the time that is allowed; the moonshot is another such time, for the worst case."""
    dreamt = allowed / moonshot if moonshot is not None and name.startswith("worst-case") else None
    ratios, met = spread([allowed / t for t in times]), bool(np.median(times) <= allowed)
    return Row(name, f"{allowed:g} s", ratios, None, f"median at most {allowed:g} s", met, moonshot=dreamt)


def _formula(run: DPSGD, target: Target, where: Neighbouring, how: Method) -> Callable[[], object]:
    return lambda: calibrate(run, NoiseMultiplier(), target, Membership(), where, how)


def common_sign_rows() -> list[Row]:
    """delta from 0.1 to 1e-6 enclosed to a relative 1e-3 in 2 s."""
    rows = []
    for arguments in ((6.0, 0.2, 100), (1.0, 0.01, 1000), (2.0, 0.01, 10_000), (1.0, 0.001, 10_000)):
        run = DPSGD(*arguments)
        times = seconds(lambda run=run: unknown_sign(run, part=Part.ADDITION), 2)  # type: ignore[misc]
        bracket, epsilon = unknown_sign(run, part=Part.ADDITION), np.linspace(0.0, 8.0, 801)
        upper, lower = bracket.pessimistic.delta(epsilon), bracket.optimistic.delta(epsilon)
        width = float(np.max(upper[upper >= 1e-6] / lower[upper >= 1e-6]) - 1.0)
        met = width <= 1e-3 and float(np.median(times)) <= 2.0
        name = "common sign, noise={}, p={}, T={}".format(*arguments)
        rows.append(
            Row(name, "2 s", spread([2.0 / t for t in times]), width, "relative 1e-3 for delta >= 1e-6 in 2 s", met)
        )
    return rows


def form_rows() -> list[Row]:
    """Closed forms per second and core."""
    rng = np.random.default_rng(0)
    size = 1_500_000
    noise, rate, steps = rng.uniform(0.4, 10, size), rng.uniform(1e-5, 0.2, size), rng.integers(10, 10**6, size) + 0.0
    rows = []
    for form in (closed_forms.published, closed_forms.clt, closed_forms.proven):
        for relation in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE):
            rates = [size / t for t in seconds(lambda f=form, r=relation: f(noise, rate, steps, r))]  # type: ignore[misc]
            met = float(np.median(rates)) >= 1.5e7
            name = f"{form.__name__}, {relation.value}"
            rows.append(
                Row(
                    name, "1.5e7 per second", spread([r / 1.5e7 for r in rates]), None, "1.5e7 per second and core", met
                )
            )
    return rows


def rows() -> list[Row]:
    """All rows."""
    return [*form_rows(), *common_sign_rows(), *absolute_rows(), *worst_case_rows()]


if __name__ == "__main__":
    main(rows, __doc__ or "")
