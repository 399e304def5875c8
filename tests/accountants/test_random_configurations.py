"""Random runs, and some that once went wrong: no enclosure crosses or loses a tail, and routes agree with each other.

Those of little noise and few sampled steps are asked beside losses that are cut into cells, too.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

from reticent.accountants.transform import Transform
from reticent.kernel.accountants.compose import compose
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta, tpr_at_fpr
from reticent.testing import laws
from tests.conftest import some
from tests.laws.experiments import EPSILONS, truth_of

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
NET = np.concatenate([np.linspace(0.0, 60.0, 601), np.geomspace(61.0, 3000.0, 200)])
MEASURES = (
    advantage,
    *(partial(tpr_at_fpr, fpr=fpr) for fpr in (1e-6, 1e-3)),
    *(partial(epsilon_at_delta, delta=delta) for delta in (1e-12, 1e-8, 1e-5)),
)


def drawn(rng: np.random.Generator) -> tuple[DPSGD, Neighbouring]:
    """Noise .1 to 20, rate 1e-6 to 1, up to 1e5 steps, both relations."""
    run = DPSGD(10 ** rng.uniform(-1.0, 1.3), 10 ** rng.uniform(-6.0, -0.01), int(10 ** rng.uniform(0.0, 5.0)))
    return run, REPLACE if rng.uniform() < 0.5 else ADD


def near_atomic(rng: np.random.Generator) -> tuple[DPSGD, Neighbouring]:
    """Noise .1 to .4, up to 64 steps, 1e-4 to 3 of them sampled on average."""
    noise, steps = 10 ** rng.uniform(-1.0, -0.4), int(10 ** rng.uniform(0.0, 1.8))
    rate = min(0.9, 10 ** rng.uniform(-4.0, 0.5) / steps)
    return DPSGD(noise, rate, steps), REPLACE if rng.uniform() < 0.5 else ADD


def neither_crosses_nor_loses_a_tail(run: DPSGD, relation: Neighbouring) -> None:
    bracket = compose(run, relation)
    assert bracket.notes == (), (run, relation)
    for measure in MEASURES:
        lower, upper = measure(bracket.optimistic), measure(bracket.pessimistic)
        assert lower <= upper * (1 + 1e-9) + 1e-14, (run, relation, measure)
        assert np.isfinite(upper), (run, relation, measure)
    lower, upper = bracket.optimistic, bracket.pessimistic
    assert np.all(lower.delta(NET) <= upper.delta(NET) * (1 + 1e-9) + 1e-15)
    assert np.all(lower.reversed.delta(NET) <= upper.reversed.delta(NET) * (1 + 1e-9) + 1e-15)


def routes_agree(run: DPSGD, relation: Neighbouring) -> None:
    steps, _ = steps_of(run, relation)
    with np.errstate(all="ignore"):
        try:
            laws.route(Lattice(1e-4, 2**15), steps, {}, [Transform()] if Transform().serves(steps) else [])
        except NumericalError:
            return


def is_enclosed(run: DPSGD, relation: Neighbouring) -> None:
    bracket = compose(run, relation)
    pairs = [(part.pair, part.count) for part in run.parts_under(relation)]
    truth = truth_of(pairs, [*EPSILONS, *-EPSILONS[1:]])
    for epsilon in EPSILONS:
        ways = {sign: truth[sign * epsilon] for sign in (1.0, -1.0) if sign * epsilon in truth}
        least, most = (max(way[end] for way in ways.values()) for end in (0, 1))
        lower, upper = (float(curve.delta(epsilon)) for curve in (bracket.optimistic, bracket.pessimistic))
        assert lower <= upper * (1 + 1e-9) + 1e-15, (run, relation)
        assert lower <= most * (1 + 1e-9) + 1e-12, (run, relation)
        assert upper >= least * (1 - 1e-9) - 1e-12, (run, relation)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "relation"),
    [
        (0.17, 0.5, 2, REPLACE),
        (0.2, 0.001, 100, REPLACE),
        pytest.param(0.18075380538793157, 0.0002326020425443798, 16, REPLACE, marks=pytest.mark.slow),
        (0.103, 0.000437, 24446, ADD),
    ],
)
def test_runs_that_crossed_or_lost_a_tail(noise: float, rate: float, steps: int, relation: Neighbouring) -> None:
    neither_crosses_nor_loses_a_tail(DPSGD(noise, rate, steps), relation)
    lower = compose(DPSGD(noise, rate, steps), relation).optimistic
    assert np.all(lower.log_delta(NET[:600]) > -np.inf)


def test_some_enclosures_neither_cross_nor_lose_a_tail() -> None:
    rng = np.random.default_rng(4)
    for _ in range(3):
        neither_crosses_nor_loses_a_tail(*drawn(rng))
    routes_agree(*drawn(np.random.default_rng(1)))


@pytest.mark.parametrize("seed", [17, 20, 22])
def test_some_near_atomic_runs(seed: int) -> None:
    """Addition and removal once and twice, replacement once."""
    is_enclosed(*near_atomic(np.random.default_rng(seed)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(20))
def test_thousands_of_runs(part: int) -> None:
    rng = np.random.default_rng([19, part])
    for _ in range(100):
        neither_crosses_nor_loses_a_tail(*drawn(rng))
        is_enclosed(*near_atomic(rng))
        routes_agree(*drawn(rng))


CORNERS = list(product([0.05, 1e3], [1e-8, 0.5], [1, 10**8]))
BETWEEN = list(product([0.05, 0.1, 0.3, 1.0, 10.0, 1e3], [1e-8, 1e-5, 1e-2, 0.5, 1.0], [1, 100, 10**4, 10**6, 10**8]))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(("noise", "rate", "steps"), some(CORNERS + BETWEEN, *range(8)))
def test_corners_are_answered(noise: float, rate: float, steps: int, relation: Neighbouring) -> None:
    """It is never more than what no noise at all would show; thresholds 2e-9 apart know a slope to 5e-9, not better."""
    bracket = compose(DPSGD(noise, rate, steps), relation)
    lower, upper = (float(curve.delta(0.0)) for curve in (bracket.optimistic, bracket.pessimistic))
    assert 0.0 <= lower <= upper * (1.0 + 1e-12) + 1e-15
    assert upper <= -np.expm1(steps * np.log1p(-min(rate, 1.0 - 1e-16))) * (1.0 + 2e-5)


@pytest.mark.parametrize(
    ("run", "relation", "truth", "digits"),
    [
        (DPSGD(1.64, 3.7e-6, 2), REPLACE, 2.469008541e-6, 1e-9),
        (DPSGD(3.18, 3.5e-5, 16), Neighbouring.ZERO_OUT, 1.796850e-5, 5e-6),
        (DPSGD(0.9, 1e-6, 500), ADD, None, 0.08),  # where lattices stop within 1e-6 it is 14 % wide
    ],
    ids=repr,
)
def test_a_small_advantage_is_known_to_some_digits(run, relation, truth, digits) -> None:
    """Lattices stopped where the advantage was known within 1e-6: [2.08e-6, 3.04e-6].

    The first truth is an integral of mpmath (``two_steps`` of ``tests/pairs``), the second a lattice of 2^20 points.
    """
    curves = compose(run, relation)
    lower, upper = advantage(curves.optimistic), advantage(curves.pessimistic)
    assert lower <= upper <= lower * (1.000001 if truth else 1.0 + digits)
    if truth:
        assert lower <= truth * (1.0 + digits)
        assert truth * (1.0 - digits) <= upper
