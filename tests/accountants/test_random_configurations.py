"""A thousand random runs: the certified values of one route against bounds of the other."""

from functools import partial

import numpy as np
import pytest

from reticent.accountants import Composed
from reticent.accountants.compose import compose
from reticent.accountants.lattice import Lattice
from reticent.accountants.one_direction import steps_of
from reticent.accountants.transform import transform_of
from reticent.errors import NumericalError
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.risk import advantage, epsilon_at_delta, tpr_at_fpr

ALPHAS = np.array([1e-4, 1e-3, 1e-2, 0.1, 0.5])


def draw(rng: np.random.Generator) -> tuple[DPSGD, Neighbouring]:
    """Noise 0.05 to 20, rate 1e-5 to 1, up to 1e6 steps; a third with few sampled steps and little noise."""
    rate, steps = 10 ** rng.uniform(-5, -0.01), int(10 ** rng.uniform(0.1, 6))
    noise = 10 ** rng.uniform(np.log10(0.4), 1.3)
    if rng.uniform() < 0.33:
        steps = max(2, int(10 ** rng.uniform(-1, 1) / rate))
        noise = 10 ** rng.uniform(np.log10(0.05), 0.0)
    steps = min(steps, 10**6)
    return DPSGD(noise, rate, steps), Neighbouring.REPLACE if rng.uniform() < 0.5 else Neighbouring.ADD_REMOVE


def check(run: DPSGD, neighbouring: Neighbouring) -> float:
    """Assert every enclosure for ``run``; the width of the advantage's."""
    composed = Composed(run, neighbouring)
    lower, upper = composed.advantage()
    assert 0.0 <= lower <= upper <= 1.0
    low, high = composed.bracket.pessimistic, composed.bracket.optimistic
    assert np.all(low.beta(ALPHAS) <= high.beta(ALPHAS) + 1e-13)
    steps, _ = steps_of(run, neighbouring)
    try:
        with np.errstate(all="ignore"):
            safe, weak = Lattice(1e-4, 2**15).answer(steps).sides
    except NumericalError:
        return upper - lower
    assert float(weak.delta(0.0)) <= upper + 1e-13
    assert lower <= float(safe.delta(0.0)) + 1e-13
    spectral = transform_of(steps)
    if spectral is not None:
        try:
            own = spectral.polygons()
        except NumericalError:
            return upper - lower
        assert np.all(own[0].beta(ALPHAS) <= weak.beta(ALPHAS) + 1e-13)
        assert np.all(safe.beta(ALPHAS) <= own[1].beta(ALPHAS) + 1e-13)
        assert np.all(own[0].reversed.beta(ALPHAS) <= weak.reversed.beta(ALPHAS) + 1e-13)
        assert np.all(safe.reversed.beta(ALPHAS) <= own[1].reversed.beta(ALPHAS) + 1e-13)
    return upper - lower


def test_some_random_configurations():
    rng = np.random.default_rng(1)
    widths = [check(*draw(rng)) for _ in range(2)]
    assert np.median(widths) <= 1e-6


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_thousand_random_configurations():
    rng = np.random.default_rng(2)
    widths = np.array([check(*draw(rng)) for _ in range(1000)])
    assert np.mean(widths <= 1e-6) >= 0.95


def corners(noises: list[float], rates: list[float], lengths: list[int]) -> list[tuple[DPSGD, Neighbouring]]:
    relations = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
    return [(DPSGD(s, p, t), r) for s in noises for p in rates for t in lengths for r in relations]


def answered(run: DPSGD, neighbouring: Neighbouring) -> None:
    bracket = compose(run, neighbouring)
    lower, upper = (float(curve.delta(0.0)) for curve in (bracket.optimistic, bracket.pessimistic))
    seen = -np.expm1(run.steps * np.log1p(-min(run.sample_rate, 1.0 - 1e-16)))
    assert 0.0 <= lower <= upper * (1.0 + 1e-12) + 1e-15
    assert upper <= seen * (1.0 + 1e-9)  # never more than what no noise at all would show


@pytest.mark.parametrize(
    ("run", "neighbouring"), corners([0.05, 1e3], [1e-8, 0.5], [1, 10**8]), ids=lambda x: repr(x)[:60]
)
def test_corners_are_answered(run, neighbouring):
    answered(run, neighbouring)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_extremes_are_answered():
    """Noise from 0.05 to 1e3, rates from 1e-8 to 1, up to 1e8 steps."""
    runs = corners([0.05, 0.1, 0.3, 1.0, 10.0, 1e3], [1e-8, 1e-5, 1e-2, 0.5, 1.0], [1, 100, 10**4, 10**6, 10**8])
    for run, neighbouring in runs:
        answered(run, neighbouring)


MEASURES = (
    advantage,
    *(partial(tpr_at_fpr, fpr=fpr) for fpr in (1e-6, 1e-3)),
    *(partial(epsilon_at_delta, delta=delta) for delta in (1e-12, 1e-8, 1e-5)),
)


def neither_crosses_nor_loses_a_tail(rng: np.random.Generator) -> None:
    """Noise .1 to 20, rate 1e-6 to 1, up to 1e5 steps, both relations: what the two curves of one enclosure say."""
    run = DPSGD(10 ** rng.uniform(-1.0, 1.3), 10 ** rng.uniform(-6.0, -0.01), int(10 ** rng.uniform(0.0, 5.0)))
    relation = Neighbouring.REPLACE if rng.uniform() < 0.5 else Neighbouring.ADD_REMOVE
    bracket = compose(run, relation)
    assert bracket.notes == (), (run, relation)
    for measure in MEASURES:
        lower, upper = measure(bracket.optimistic), measure(bracket.pessimistic)
        assert lower <= upper * (1 + 1e-9) + 1e-14, (run, relation, measure)
        assert np.isfinite(upper), (run, relation, measure)


def test_some_enclosures_neither_cross_nor_lose_a_tail():
    rng = np.random.default_rng(4)
    for _ in range(3):
        neither_crosses_nor_loses_a_tail(rng)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_enclosures_neither_cross_nor_lose_a_tail(part):
    rng = np.random.default_rng([19, part])
    for _ in range(100):
        neither_crosses_nor_loses_a_tail(rng)
