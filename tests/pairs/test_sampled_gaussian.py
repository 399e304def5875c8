"""Transforms of one step: every bound against mpmath, and the decay bound against the modulus itself."""

import mpmath
import numpy as np
import pytest

from reticent.pairs.loss_cells import sinc_envelope
from reticent.pairs.sampled_gaussian import SampledGaussian
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
FREQUENCIES = np.array([0.0, 1.0, 5.0, 20.0])


def exact_excess(rate: float, noise: float, antipodal: bool, exponent: complex) -> mpmath.mpc:
    """M(exponent) - 1 by adaptive quadrature with 25 digits."""
    with mpmath.workdps(25):
        p, s, power = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.mpc(exponent)

        def mixture(x):
            return 1 - p + p * mpmath.exp((x - mpmath.mpf(1) / 2) / s**2)

        def integrand(x):
            if antipodal:
                return mpmath.npdf(x, 0, s) * mixture(-x) ** (1 - power) * mixture(x) ** power
            return mpmath.npdf(x, 0, s) * mixture(x) ** power

        return mpmath.quad(integrand, [k * s for k in range(-14, 32, 2)]) - 1


LONG = CASES[1], CASES[2], CASES[3], CASES[4], CASES[6], CASES[7]


@pytest.mark.parametrize(
    ("rate", "noise", "antipodal", "c"),
    [pytest.param(*case, marks=pytest.mark.slow) if case in LONG else case for case in CASES],
)
def test_error_bound_holds_and_is_not_idle(rate, noise, antipodal, c):
    law = SampledGaussian(noise, rate, antipodal, 10_000, 3.0, max(3.0, c))
    some = FREQUENCIES[1::2]
    value = law.transform(c, some)
    exact = [complex(exact_excess(rate, noise, antipodal, complex(c, t))) for t in some]
    assert np.all(np.abs(value.excess - exact) <= value.error)
    assert value.error[0] < 1e-11


def test_quadrature_error_that_is_real_is_covered():
    """At a frequency that the nodes cannot resolve, the rule is off by 1e-2 and the bound says so."""
    law = SampledGaussian(0.5, 0.3, True, 10_000, 3.0, 3.0)
    value = law.transform(0.5, FREQUENCIES)
    miss = abs(value.excess[3] - complex(exact_excess(0.3, 0.5, True, 0.5 + 20j)))
    assert miss > 1e-3
    assert miss <= value.error[3]
    without_rule = value.error[3] - law.rule(0.5, FREQUENCIES, law.real(np.array([0.5])))[3]
    assert miss > without_rule


@pytest.mark.parametrize("c", [0.5, 4.0, -3.0])
def test_log_moment_is_an_upper_bound(c):
    law = SampledGaussian(0.8, 0.01, False, 1000, 0.0, 5.0)
    exact = float(mpmath.log1p(exact_excess(0.01, 0.8, False, c).real))  # log(1 + it) would round at 1e-16
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
    noise, rate, t = 1.0, 1e-3, np.array([0.0, 100.0, 300.0, 1000.0, 3000.0])
    law = SampledGaussian(noise, rate, antipodal, 1, 0.0, 1.0, digits=8.0)
    x = np.linspace(-13.0, 13.0, 400_001)
    up, down = (np.log1p(rate * np.expm1(y - 0.5)) for y in (x, -x if antipodal else np.full(x.shape, 0.5)))
    tilted = np.exp(-0.5 * x * x + 0.5 * (up + down)) * (x[1] - x[0]) / np.sqrt(2.0 * np.pi)
    exact = [complex(np.exp(1j * s * (up - down)) @ tilted) - 1.0 for s in t]
    found = law.transform(0.5, t)
    miss = np.abs(found.excess - exact)
    assert np.all(miss <= found.error)
    assert miss[-1] > 1e-6
    monkeypatch.setattr(SampledGaussian, "cut_rule", lambda law, c, angle, growth, cells: np.full(len(growth), np.inf))
    assert law.rule(0.5, t, law.real(np.array([0.5])))[-1] > 1e6 * found.rule[-1]


def test_the_cut_contour_resolves_many_rare_samples():
    law = SampledGaussian(1.0, 1e-6, False, 10**6, 40.0, 1.0)
    value = law.transform(0.5, np.array([0.0, 5000.0]))
    exact = complex(exact_excess(1e-6, 1.0, False, complex(0.5, 5000.0)))
    assert abs(value.excess[1] - exact) <= value.error[1] < 1e-13
