"""Transforms of one step: every bound against sums in extended precision, and what follows of an advantage alone."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest

from reticent.accountants.transform import Transform
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.pairs import sampled_gaussian
from reticent.pairs.advantage_alone import enclose_advantage
from reticent.pairs.line_decay import LineDecay
from reticent.pairs.loss_cells import sinc_envelope
from reticent.pairs.sampled_gaussian import SampledGaussian
from reticent.pairs.strips import argument_reach, nowhere_turned
from reticent.pairs.transforms import PlainGaussian, turned

CASES = [
    (1e-3, 1.0, False, 0.5),
    (1e-3, 1.0, False, -2.0),
    (1e-2, 0.8, False, 3.0),
    (1e-4, 0.6, False, 0.5),
    (0.01, 0.2, False, 0.5),
    (0.5, 5.0, False, 3.0),
    (0.3, 0.5, True, 0.5),
    (0.3, 0.5, True, 2.0),
]


def transformed(noise: float, rate: float, antipodal: bool, c: float, t: np.ndarray) -> np.ndarray:
    """M(c + it) - 1 from many nodes in extended precision; losses near 0 keep their digits."""
    s, p = np.longdouble(noise), np.longdouble(rate)
    apart = s * 7 / 2000
    x = apart * np.arange(-4000, 4001)
    mixtures = [np.log1p(p * np.expm1((sign * x - np.longdouble(0.5)) / (s * s))) for sign in (1, -1)]
    absent, loss = (mixtures[1], mixtures[0] - mixtures[1]) if antipodal else (0.0 * x, mixtures[0])
    log_mass = absent - x * x / (2 * s * s)
    mass = np.exp(log_mass + c * loss) * apart / (s * np.sqrt(8 * np.arctan(np.longdouble(1))))
    turns = np.multiply.outer(t.astype(np.longdouble), loss)
    return ((np.cos(turns) + 1j * np.sin(turns)) @ mass - 1).astype(complex)


def missed(law: SampledGaussian, c: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much a law's transform is off, and by how much it says that it may be."""
    found = law.transform(c, t)
    noise, rate = float(law.noise_multiplier), float(law.rate)
    return np.abs(found.excess - transformed(noise, rate, law.antipodal, c, t)), found.error


NARROW, WAYS = 7.3, (False, True)
TURNS = np.linspace(0.0, 8.0, 17) * NARROW / 5e-5
LAWS = [
    *((SampledGaussian(s, p, way, 10_000, 3.0, max(3.0, c)), c, np.array([1.0, 20.0])) for p, s, way, c in CASES),
    # the nodes cannot resolve a frequency: the rule is off by 1e-2
    (SampledGaussian(0.5, 0.3, True, 10_000, 3.0, 3.0), 0.5, np.array([1.0, 20.0])),
    # the cut contour resolves many rare samples
    (SampledGaussian(1.0, 1e-6, False, 10**6, 40.0, 1.0), 0.5, np.array([1.0, 5000.0])),
    # narrow strips, with nodes that are too few and with enough
    *((SampledGaussian(NARROW, 5e-5, way, 2, r, 1.5, 34.0), 0.5, TURNS / (1 + way)) for r in (20, 400) for way in WAYS),
]


@pytest.mark.parametrize(("law", "c", "t"), LAWS)
def test_an_error_bound_holds_and_is_not_idle(law: SampledGaussian, c: float, t: np.ndarray) -> None:
    off, error = missed(law, c, t)
    assert np.all(off <= error + 1e-15)
    assert error[t <= 1.0].max() < 1e-11
    if law.count == 10_000 and law.noise_multiplier == 0.5 and c == 0.5:
        assert off[1] > error[1] - law.rule(c, t, law.real(np.array([c])))[1]
        assert off[1] > 1e-3
    if law.count == 10**6:
        assert error[1] < 1e-13
    if law.reach == 400:
        assert np.all(error[t * 5e-5 < 30.0] < 1e-10)


@pytest.mark.parametrize("c", [0.5, 4.0, -3.0])
def test_log_moment_is_an_upper_bound(c):
    law = SampledGaussian(0.8, 0.01, False, 1000, 0.0, 5.0)
    exact = float(np.log1p(transformed(0.8, 0.01, False, c, np.zeros(1)).real[0]))  # log(1 + it) would round at 1e-16
    bound = float(law.log_moment(np.array([c]))[0])
    assert exact <= bound
    assert bound == pytest.approx(exact, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("rate", "noise", "antipodal", "c"), [case for case in CASES if case[3] > -1])
def test_decay_bound_covers_every_later_frequency(rate, noise, antipodal, c):
    law = SampledGaussian(noise, rate, antipodal, 100, 300.0, max(3.0, c))
    t = np.linspace(0.0, 60.0, 241)
    modulus = np.abs(1.0 + law.transform(c, t).excess)
    later = np.maximum.accumulate(modulus[::-1])[::-1] / modulus[0]
    bound = np.exp(law.decay(c).log_bound(t))
    assert np.all(later <= bound * (1 + 1e-9) + 1e-9)
    assert np.all(np.diff(bound) <= 0.0)
    assert bound[-1] < 1.0


def test_sinc_envelope_is_the_supremum():
    y = np.linspace(0.01, 60.0, 60_000)
    sinc = np.abs(np.sin(y) / y)
    later = np.maximum.accumulate(sinc[::-1])[::-1]
    envelope = sinc_envelope(y)
    assert np.all(envelope >= later - 1e-12)
    assert np.all(np.diff(envelope) <= 1e-15)


def test_plain_gaussian_transform():
    law = PlainGaussian(0.7)
    value = law.transform(0.5, np.array([0.0, 2.0]))
    exact = [complex(mpmath.expm1(0.245 * mpmath.mpc(0.5, t) * mpmath.mpc(-0.5, t))) for t in (0.0, 2.0)]
    assert np.all(np.abs(value.excess - exact) <= value.error + 1e-16)
    assert np.all(np.exp(law.decay(0.5).log_bound(np.array([2.0]))) >= np.exp(-0.5 * (0.7 * 2.0) ** 2))


def test_frequencies_by_coarse_and_fine_numbers_are_those_one_by_one():
    """In extended precision, one frequency at a time: no more than an eps of t E|L| apart, the real part relative."""
    rng = np.random.default_rng(4)
    losses, weights, spacing = 1e-7 * rng.standard_normal(300) ** 3, rng.uniform(0.0, 1.0, 300), 40.0
    together_real, together_imaginary = turned(spacing, 5, 70, losses, weights)
    t = np.longdouble(spacing) * np.arange(5, 75)
    half = np.multiply.outer(t, 0.5 * losses.astype(np.longdouble))
    real, imaginary = -2.0 * np.sin(half) ** 2 @ weights, np.sin(2.0 * half) @ weights
    size = t * (np.abs(losses) @ weights)
    assert together_real == pytest.approx(real.astype(float), rel=1e-13, abs=0)
    assert np.all(np.abs(together_imaginary - imaginary) <= 2.0**-52 * size)


def test_several_laws_at_once_are_each_alone():
    rng = np.random.default_rng(5)
    losses, weights, spacings = rng.standard_normal((3, 40)), rng.uniform(0.0, 1.0, (3, 40)), np.array([0.1, 0.7, 2.0])
    together = turned(spacings, 0, 11, losses, weights)
    for k in range(3):
        for all_laws, alone in zip(together, turned(float(spacings[k]), 0, 11, losses[k], weights[k]), strict=True):
            assert all_laws[k] == pytest.approx(alone, rel=1e-12, abs=0)
    uneven = np.array([0.0, 1.0, 5.0, 20.0])
    law = SampledGaussian(0.8, 0.1, False, 10, 30.0, 1.0)
    even = law.transform(0.5, np.arange(21.0)).excess
    assert law.transform(0.5, uneven).excess == pytest.approx(even[uneven.astype(int)], rel=1e-12, abs=0)


@pytest.mark.parametrize("antipodal", [False, True])
def test_a_contour_that_is_cut_pays_for_what_it_leaves(antipodal, monkeypatch):
    """Rare large losses that turn between two nodes: coarse nodes miss them, and the bound says by how much at most."""
    t = np.array([0.0, 100.0, 300.0, 1000.0, 3000.0])
    law = SampledGaussian(1.0, 1e-3, antipodal, 1, 0.0, 1.0, digits=8.0)
    off, error = missed(law, 0.5, t)
    assert np.all(off <= error)
    assert off[-1] > 1e-6
    monkeypatch.setattr(SampledGaussian, "cut_rule", lambda law, c, angle, growth, cells: np.full(len(growth), np.inf))
    assert law.rule(0.5, t, law.real(np.array([0.5])))[-1] > 1e6 * error[-1]


ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE

SLOW = [(7.3, 5e-5, 0.5), (2.0, 8e-4, 0.5), (1.2, 0.02, 1.7), (13.0, 0.05, 0.5)]
"""Noise, rate, exponent."""


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize(("noise", "rate", "c"), SLOW)
def test_the_closer_decay_is_a_bound_and_close(noise: float, rate: float, c: float, antipodal: bool) -> None:
    law = SampledGaussian(noise, rate, antipodal, 2, reach=60.0, largest=2.0, digits=32.0)
    _, variance = law.moments(c)
    t = np.array([1.0, 2.0, 3.0, 4.0, 5.0]) / math.sqrt(variance)
    sizes = np.log(np.abs(transformed(noise, rate, antipodal, c, np.append(0.0, t)) + 1.0))
    truth = sizes[1:] - sizes[0]
    bound = law.decay(c, closely=True).log_bound(t)
    assert np.all(truth <= bound)
    assert np.all(np.diff(bound) < 0.0)
    assert bound[-1] < 0.7 * truth[-1]  # most of the digits of the truth, both negative
    assert bound[-1] <= law.decay(c).log_bound(t)[-1]


def two_steps(noise: float, rate: float, relation: Neighbouring) -> float:
    """delta(0) of two steps: the loss of the second exceeds minus that of the first where x exceeds a known place."""
    s, p = mpmath.mpf(noise), mpmath.mpf(rate)

    def law(x, sign):  # density and survival with the target
        density = (1 - p) * mpmath.npdf(x, 0, s) + p * mpmath.npdf(x, sign, s)
        return density, lambda y: (1 - p) * mpmath.ncdf(-y / s) + p * mpmath.ncdf((sign - y) / s)

    def excess(x):
        present, survives = law(x, 1)
        if relation is REPLACE:
            absent, lives = law(x, -1)
            return present * survives(-x) - absent * lives(-x)
        absent = mpmath.npdf(x, 0, s)
        odds = absent / present  # the likelihood ratio that the second step must exceed
        place = s * s * mpmath.log((odds - 1 + p) / p) + 0.5 if odds > 1 - p else -mpmath.inf
        return present * survives(place) - absent * mpmath.ncdf(-place / s)

    with mpmath.workdps(18):
        ends = [0, s * s * mpmath.log(1 + 1 / (1 - p)) + 0.5] if relation is ADD else [0]
        places = sorted({*[k * s for k in range(-12, 13, 4)], *ends})
        return float(mpmath.quad(excess, places))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(("noise", "rate"), [(7.3, 5e-5), (1.9, 0.0137)])
def test_two_rare_steps_against_an_integral(noise: float, rate: float, relation: Neighbouring) -> None:
    answer = Transform().answer(steps_of(DPSGD(noise, rate, 2), relation)[0])
    lower, upper = float(answer.below[0].delta(0.0)), float(answer.above[0].delta(0.0))
    truth = two_steps(noise, rate, relation)
    assert lower <= truth <= upper
    assert upper - lower < 3e-6 * truth


def argument_of(law: SampledGaussian, z: np.ndarray) -> np.ndarray:
    """Of the likelihood ratio at complex observations."""
    rate, square = law.rate, law.noise_multiplier**2
    turns = [np.angle(1.0 - rate + rate * np.exp((sign * z - 0.5) / square)) for sign in (1.0, -1.0)]
    return turns[0] - turns[1] if law.antipodal else turns[0]


@pytest.mark.parametrize("antipodal", [False, True])
def test_arguments_on_a_line_are_least_in_their_cells(antipodal: bool) -> None:
    noise = 2.0
    law = SampledGaussian(noise, 0.03, antipodal, 2, reach=20.0, largest=1.5, digits=20.0)
    lines, x = law._on_lines(0.5, law.log_scale(0.5)), law.nodes.x
    inside = x[:-1, None] + np.diff(x)[:, None] * np.linspace(0.0, 1.0, 7)
    angles = sampled_gaussian.LINES * min(math.pi, sampled_gaussian.MOST_GROWTH / noise)
    turned = argument_of(law, inside + 1j * noise**2 * angles[:, None, None])
    assert lines.turns.shape[1] == len(x)  # a piece for each cell, and one for what is outside
    assert np.all(lines.turns[:, :-1] <= turned.min(axis=2) + 1e-12)
    assert np.all(lines.turns[:, -1] == 0.0)


def test_pieces_of_several_cells_bound_their_sum() -> None:
    rng = np.random.default_rng(5)
    cells, turns = rng.uniform(-40.0, 0.0, 1999), np.sort(rng.uniform(0.0, 1.0, (3, 1999)))[:, ::-1]
    lines, t = LineDecay.of(np.array([0.0, 1.0, 2.0]), cells, turns, -50.0), np.array([0.0, 3.0, 30.0])
    each = np.exp(cells - t[:, None, None] * turns).sum(axis=2) + math.exp(-50.0)
    truth = (np.log(each) + np.arange(3.0)).min(axis=1)
    bound = lines.log_bound(t)
    assert lines.logs.shape[1] == 201
    assert np.all(truth <= bound)
    assert np.all(bound <= truth + 0.5)


@pytest.mark.parametrize("antipodal", [False, True])
def test_arguments_bound_the_true_ones(antipodal):
    noise = 2.0
    law = SampledGaussian(noise, 0.01, antipodal, 100, 4.0, 9.0)
    grid = law.nodes
    assert 0.0 in grid.x  # the normal density is largest there, and bounds on cells rest on their ends
    ends = np.concatenate([grid.x, grid.x[-1] + noise * np.array(sampled_gaussian.FAR)])
    starts = np.concatenate([[grid.x[0] - 40.0], ends]) if not antipodal else ends
    for angle in (0.9, 2.8):
        bounds = law.arguments(angle)
        stops = np.append(starts[1:], ends[-1] + 400.0)
        for a, b, bound in zip(starts, stops, bounds, strict=True):
            phase = argument_of(law, np.linspace(a, b, 50) + 1j * angle * noise**2)
            assert np.max(np.abs(phase)) <= bound * (1.0 + 1e-12)


@pytest.mark.parametrize("antipodal", [False, True])
def test_strips_without_oscillation_are_known_by_one_argument(antipodal):
    angle, found = 2.8, []
    for noise, rate in product(np.geomspace(0.3, 100.0, 12).tolist(), (0.004, 0.3)):
        for variance in (0.01, 0.3, 3.0):
            reach = argument_reach(noise, rate, antipodal, variance, np.array([[angle]])).item()
            found.append(nowhere_turned(noise, rate, antipodal, variance, angle))
            assert reach < 5.0 or not found[-1]
    assert 5 < sum(found) < 60


def test_no_room_is_refused():
    with np.errstate(all="ignore"), pytest.raises(NumericalError):
        enclose_advantage(GaussianMixture(0.01, (0.5,)), 10)


@pytest.mark.parametrize("antipodal", [False, True])
def test_moments_of_several_exponents_are_those_of_each(antipodal):
    law = SampledGaussian(0.8, 0.1, antipodal, 100, 4.0, 9.0)
    powers = np.array([0.5, 9.0, 0.7, 1.0] if antipodal else [0.5, 9.0, -7.0, 0.0, 1.0])
    together = law.real(powers)
    for k, power in enumerate(powers):
        alone = law.real(np.array([power]))
        for all_of_them, only in zip(together, alone, strict=True):
            assert all_of_them[k] == pytest.approx(only[0], rel=1e-12, abs=1e-13)
    factors = [law.log_strip_factor(powers, angle) for angle in law.angles.tolist()]
    assert law.log_strip_factor(powers[:, None], law.angles) == pytest.approx(np.array(factors).T, rel=1e-12, abs=0)
