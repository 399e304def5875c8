"""Little noise, few sampled steps: enclosures against a discretised privacy loss that shares no code with them.

The oracle cuts the loss of one step into cells. All mass at the lower end of its cell gives a delta at or below the
truth, for any number of steps. Split between both ends so that both laws keep their mass, it gives one at or above.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr

from reticent.accountants.compose import compose
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.risk import advantage

CELL, HALF = 2.0**-8, 2**15  # losses within 128
LOSSES = CELL * np.arange(-HALF, HALF + 1)
EPSILONS = np.array([0.0, 0.1, 1.0, 3.0, 10.0, 30.0, 60.0, 100.0])
ROUNDING = 1e-12  # of the Fourier transforms: rounding in each of 2^16 cells, six times over

Law = tuple[np.ndarray, float]
"""Masses at ``LOSSES``, and the mass at infinity."""


def cells(noise: float, rate: float, relation: Neighbouring) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each direction, the masses of (-inf, l_0], (l_0, l_1], .., (l_last, inf) under both laws of the loss."""
    if relation is Neighbouring.ADD_REMOVE:
        at = where_the_loss_is(LOSSES, noise, rate)
        without, mixed = ndtr(at / noise), (1.0 - rate) * ndtr(at / noise) + rate * ndtr((at - 1.0) / noise)
        at = where_the_loss_is(-LOSSES, noise, rate)
        removed = ndtr(-at / noise), (1.0 - rate) * ndtr(-at / noise) + rate * ndtr((1.0 - at) / noise)
        pairs = [(mixed, without), removed]
    else:
        at = inverse(lambda x: replaced(x, rate, noise * noise), 2.0 + 40.0 * noise)
        pairs = [tuple((1.0 - rate) * ndtr(at / noise) + rate * ndtr((at - s) / noise) for s in (1.0, -1.0))]
    return [tuple(np.diff(below, prepend=0.0, append=1.0) for below in pair) for pair in pairs]


def where_the_loss_is(losses: np.ndarray, noise: float, rate: float) -> np.ndarray:
    """The x at which log(1 - rate + rate exp((2x - 1) / 2 noise^2)) takes each value; -inf below its range."""
    with np.errstate(all="ignore"):
        inner = np.where(losses > np.log1p(-rate), np.exp(losses) - (1.0 - rate), 0.0)
        return 0.5 + noise * noise * (np.where(losses > 40.0, losses, np.log(inner)) - np.log(rate))


def replaced(x: np.ndarray, rate: float, variance: float) -> np.ndarray:
    lines = [np.logaddexp(np.log1p(-rate), np.log(rate) + (2.0 * s * x - 1.0) / (2.0 * variance)) for s in (1, -1)]
    return lines[0] - lines[1]


def inverse(loss: Callable[[np.ndarray], np.ndarray], reach: float) -> np.ndarray:
    """Where the increasing ``loss`` takes each value of ``LOSSES``, within ``reach``."""
    low, high = np.full(LOSSES.shape, -reach), np.full(LOSSES.shape, reach)
    for _ in range(64):
        middle = 0.5 * (low + high)
        below = loss(middle) < LOSSES
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def moved(numerator: np.ndarray, denominator: np.ndarray, up: bool) -> Law:
    """The loss on the grid: at or above the truth, or at or below it (mass below the grid then goes away)."""
    if not up:
        return numerator[1:], 0.0
    inner, other = numerator[1:-1], denominator[1:-1]
    with np.errstate(all="ignore"):
        exact = (inner - other * np.exp(LOSSES[:-1])) / -np.expm1(-CELL)
    # Far out the difference is lost in rounding: there all mass goes to the upper end.
    above = np.where(np.abs(LOSSES[:-1]) < 8.0, np.clip(exact, 0.0, inner), inner)
    masses = np.zeros(len(LOSSES))
    masses[0] = numerator[0]
    masses[1:] += above
    masses[:-1] += inner - above
    return masses, float(numerator[-1])


def sums(first: Law, second: Law, up: bool) -> Law:
    """The law of the sum. What leaves the window above goes to infinity or to its end, below to its end or away."""
    (p, p_top), (q, q_top) = first, second
    size = next_fast_len(2 * len(p) - 1, real=True)
    both = np.maximum(irfft(rfft(p, size) * rfft(q, size), size)[: 2 * len(p) - 1], 0.0)
    inside, over, under = both[HALF : HALF + len(p)].copy(), both[HALF + len(p) :].sum(), both[:HALF].sum()
    if up:
        inside[0] += under
        return inside, 1.0 - (1.0 - p_top) * (1.0 - q_top) + over
    inside[-1] += over
    return inside, 0.0


def composed(law: Law, steps: int, up: bool) -> Law:
    total: Law | None = None
    while True:
        if steps % 2:
            total = law if total is None else sums(total, law, up)
        steps //= 2
        if not steps:
            assert total is not None
            return total
        law = sums(law, law, up)


def deltas(law: Law) -> np.ndarray:
    masses, top = law
    gain = -np.expm1(np.minimum(EPSILONS[:, None] - LOSSES[None, :], 0.0))
    return gain @ masses + top


def oracle(run: DPSGD, relation: Neighbouring) -> tuple[np.ndarray, np.ndarray]:
    """(at or below, at or above) delta at each of ``EPSILONS``, the larger of both directions."""
    low, high = [], []
    for masses in cells(run.noise_multiplier, run.sample_rate, relation):
        for up, kept in ((False, low), (True, high)):
            kept.append(deltas(composed(moved(*masses, up), run.steps, up)))
    return np.max(low, axis=0), np.max(high, axis=0)


def draw(rng: np.random.Generator) -> tuple[DPSGD, Neighbouring]:
    """Noise .1 to .4, up to 64 steps, 1e-4 to 3 of them sampled on average."""
    noise, steps = 10 ** rng.uniform(-1.0, -0.4), int(10 ** rng.uniform(0.0, 1.8))
    rate = min(0.9, 10 ** rng.uniform(-4.0, 0.5) / steps)
    return DPSGD(noise, rate, steps), Neighbouring.REPLACE if rng.uniform() < 0.5 else Neighbouring.ADD_REMOVE


def check(run: DPSGD, relation: Neighbouring) -> None:
    bracket = compose(run, relation)
    least, most = oracle(run, relation)
    lower = np.array([float(bracket.optimistic.delta(e)) for e in EPSILONS])
    upper = np.array([float(bracket.pessimistic.delta(e)) for e in EPSILONS])
    assert np.all(lower <= upper * (1 + 1e-9) + 1e-15), (run, relation)
    assert np.all(lower <= most * (1 + 1e-9) + ROUNDING), (run, relation)
    assert np.all(upper >= least * (1 - 1e-9) - ROUNDING), (run, relation)


@pytest.mark.parametrize("relation", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
def test_the_oracle_knows_the_gaussian(relation):
    """One step that everybody joins, almost surely."""
    least, most = oracle(DPSGD(1.0, 1.0 - 1e-12, 1), relation)
    shift = 1.0 if relation is Neighbouring.ADD_REMOVE else 2.0
    truth = ndtr(shift / 2 - EPSILONS / shift) - np.exp(EPSILONS) * ndtr(-shift / 2 - EPSILONS / shift)
    assert np.all(least <= truth + 1e-10)
    assert np.all(truth <= most + 1e-10)
    assert (most - truth)[0] < 1e-5
    assert (truth - least)[0] < 4e-3


def test_a_value_below_the_truth_is_caught():
    run = DPSGD(0.18, 0.00023, 16)
    least, most = oracle(run, Neighbouring.REPLACE)
    bracket = compose(run, Neighbouring.REPLACE)
    lower, upper = (float(curve.delta(0.0)) for curve in (bracket.optimistic, bracket.pessimistic))
    assert lower <= most[0] < 1.01 * lower  # one per cent more would be above what the oracle allows
    assert 0.9 * upper < least[0] <= upper


def test_some_near_atomic_runs():
    for seed in (17, 20, 22):  # addition and removal once and twice, replacement once
        check(*draw(np.random.default_rng(seed)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_near_atomic_runs(part):
    rng = np.random.default_rng([15, part])
    for _ in range(100):
        check(*draw(rng))


@pytest.mark.parametrize(
    ("run", "relation", "truth", "digits"),
    [
        (DPSGD(1.64, 3.7e-6, 2), Neighbouring.REPLACE, 2.469008541e-6, 1e-9),
        (DPSGD(3.18, 3.5e-5, 16), Neighbouring.ZERO_OUT, 1.796850e-5, 5e-6),
    ],
    ids=repr,
)
def test_a_small_advantage_is_known_to_some_digits(run, relation, truth, digits) -> None:
    """Lattices stopped where the advantage was known within 1e-6: [2.08e-6, 3.04e-6].

    The first truth is an integral of mpmath (``test_few_steps.two_steps``), the second a lattice of 2^20 points.
    """
    curves = compose(run, relation)
    lower, upper = advantage(curves.optimistic), advantage(curves.pessimistic)
    assert lower <= truth * (1.0 + digits)
    assert truth * (1.0 - digits) <= upper <= lower * 1.000001


def test_a_small_advantage_of_a_lattice_is_known_to_its_first_digit() -> None:
    """Where lattices stop at an advantage that is known within 1e-6, it is 14 % wide."""
    curves = compose(DPSGD(0.9, 1e-6, 500), Neighbouring.ADD_REMOVE)
    assert advantage(curves.optimistic) <= advantage(curves.pessimistic) <= 1.08 * advantage(curves.optimistic)
