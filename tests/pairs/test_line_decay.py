"""Few steps, rarely sampled: transforms that decay slowly are bounded on lines beside the real one.

Theorems: RETICENT:composition-enclosure.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accountants.transform import Transform
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.pairs import sampled_gaussian
from reticent.pairs.line_decay import LineDecay
from reticent.pairs.sampled_gaussian import SampledGaussian

mpmath = pytest.importorskip("mpmath")
ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE

SLOW = [(7.3, 5e-5, 0.5), (2.0, 8e-4, 0.5), (1.2, 0.02, 1.7), (13.0, 0.05, 0.5)]
"""Noise, rate, exponent."""


def transformed(noise: float, rate: float, antipodal: bool, c: float, t: np.ndarray) -> np.ndarray:
    """M(c + it) from many nodes in extended precision; losses near 0 keep their digits."""
    s, p = np.longdouble(noise), np.longdouble(rate)
    apart = s * 7 / 2000
    x = apart * np.arange(-4000, 4001)
    mixtures = [np.log1p(p * np.expm1((sign * x - np.longdouble(0.5)) / (s * s))) for sign in (1, -1)]
    absent, loss = (mixtures[1], mixtures[0] - mixtures[1]) if antipodal else (0.0 * x, mixtures[0])
    log_mass = absent - x * x / (2 * s * s)
    mass = np.exp(log_mass + c * loss) * apart / (s * np.sqrt(8 * np.arctan(np.longdouble(1))))
    turns = np.multiply.outer(t.astype(np.longdouble), loss)
    return ((np.cos(turns) + 1j * np.sin(turns)) @ mass).astype(complex)


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize(("noise", "rate", "c"), SLOW)
def test_the_closer_decay_is_a_bound_and_close(noise: float, rate: float, c: float, antipodal: bool) -> None:
    law = SampledGaussian(noise, rate, antipodal, 2, reach=60.0, largest=2.0, digits=32.0)
    _, variance = law.moments(c)
    t = np.array([1.0, 2.0, 3.0, 4.0, 5.0]) / math.sqrt(variance)
    sizes = np.log(np.abs(transformed(noise, rate, antipodal, c, np.append(0.0, t))))
    truth = sizes[1:] - sizes[0]
    bound = law.decay(c, closely=True).log_bound(t)
    assert np.all(truth <= bound)
    assert np.all(np.diff(bound) < 0.0)
    assert bound[-1] < 0.7 * truth[-1]  # most of the digits of the truth, both negative
    assert bound[-1] <= law.decay(c).log_bound(t)[-1]


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize("reach", [20.0, 60.0, 400.0])
def test_narrow_strips_bound_the_rule(reach: float, antipodal: bool) -> None:
    """Nodes that are too few are off by less than what is stated; with enough, next to nothing is stated."""
    law = SampledGaussian(7.3, 5e-5, antipodal, 2, reach=reach, largest=1.5, digits=34.0)
    t = np.linspace(0.0, 8.0, 17) * 7.3 / 5e-5 / (2.0 if antipodal else 1.0)
    found = law.transform(0.5, t)
    off = np.abs(found.excess + 1.0 - transformed(7.3, 5e-5, antipodal, 0.5, t))
    assert np.all(off <= found.error + 1e-15)
    if reach == 400.0:
        assert np.all(found.error[t * 5e-5 < 30.0] < 1e-10)


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
@pytest.mark.parametrize(("noise", "rate"), [(7.3, 5e-5), (2.9, 4.4e-6), (21.0, 0.007), (1.9, 0.0137)])
def test_two_rare_steps_against_an_integral(noise: float, rate: float, relation: Neighbouring) -> None:
    answer = Transform().answer(steps_of(DPSGD(noise, rate, 2), relation)[0])
    lower, upper = float(answer.below[0].delta(0.0)), float(answer.above[0].delta(0.0))
    truth = two_steps(noise, rate, relation)
    assert lower <= truth <= upper
    assert upper - lower < 3e-6 * truth


@pytest.mark.parametrize("antipodal", [False, True])
def test_arguments_on_a_line_are_least_in_their_cells(antipodal: bool) -> None:
    noise, rate = 2.0, 0.03
    law = SampledGaussian(noise, rate, antipodal, 2, reach=20.0, largest=1.5, digits=20.0)
    lines, x = law._on_lines(0.5, law.log_scale(0.5)), law.nodes.x
    inside = x[:-1, None] + np.diff(x)[:, None] * np.linspace(0.0, 1.0, 7)
    angles = sampled_gaussian.LINES * min(math.pi, sampled_gaussian.MOST_GROWTH / noise)
    z = inside + 1j * noise**2 * angles[:, None, None]
    turned = np.angle(1.0 - rate + rate * np.exp((z - 0.5) / noise**2))
    if antipodal:
        turned = turned - np.angle(1.0 - rate + rate * np.exp((-z - 0.5) / noise**2))
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
