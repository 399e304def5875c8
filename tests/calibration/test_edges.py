"""What a calibration says about the edge: re-assessed at the answer and just beside it, far from usual targets too."""

from __future__ import annotations

import math

import mpmath
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.calibration import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    NoiseMultiplier,
    NoiseScale,
    Steps,
    Target,
    TprAtFpr,
    Unknown,
    calibrate,
)
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace
from reticent.samplers import RandomAllocation, Shuffled
from tests.conftest import some

LONG = DPSGD(1.0, 0.0128, 7000)
IN_BINS = DPSGD(1.0, 0.1, 10, sampler=RandomAllocation())
GAUSSIANS = Ledger((Gaussian(20.0, 10), DPSGD(10.0, 1.0, 4)))


def mp_noise(epsilon: float, delta: float) -> float:
    """The noise at which delta = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu), mu = 1 / noise, in 60 digits."""
    with mpmath.workdps(60):
        root = mpmath.sqrt(2.0 * epsilon)

        def excess(mu: mpmath.mpf) -> mpmath.mpf:
            a = epsilon / mu
            return mpmath.log((mpmath.ncdf(mu / 2 - a) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - a)) / delta)

        return float(1 / mpmath.findroot(excess, (0.2 * root, root), solver="anderson"))


@pytest.mark.parametrize("epsilon", [10.0, 1e4, 1e6])
def test_one_gaussian_release_has_the_noise_of_the_closed_form(epsilon: float) -> None:
    """mu was cut at 60, and epsilon 10,000 answered .0167 for .00731, "within 1e-5 of the edge"."""
    answer = calibrate(Gaussian(1.0), NoiseMultiplier(), EpsilonAtDelta(epsilon, 1e-6))
    noise = mp_noise(epsilon, 1e-6)
    assert noise < answer.value <= noise * (1.0 + 1e-4)
    assert answer.value <= noise * (1.0 + 1.1 * answer.slack)


FAR = [
    (Gaussian(1.0), NoiseMultiplier(), Mu(100.0), WorstCase()),
    (Gaussian(1.0), NoiseMultiplier(), BayesSecurity(1e-200), WorstCase()),
    (Laplace(1.0), NoiseMultiplier(), EpsilonAtDelta(5e3, 1e-6), WorstCase()),
    (Laplace(1.0), NoiseMultiplier(), Advantage(0.1), WorstCase()),
    (Gaussian(1.0), Steps(), EpsilonAtDelta(1e6, 1e-6), WorstCase()),
    (GAUSSIANS, NoiseScale(), EpsilonAtDelta(1e5, 1e-6), WorstCase()),
    (DPSGD(1.0, 0.1, 10, sampler=Shuffled()), NoiseMultiplier(), EpsilonAtDelta(1e4, 1e-6), WorstCase()),
    (IN_BINS, NoiseMultiplier(), EpsilonAtDelta(1e4, 1e-6), WorstCase()),
    (Gaussian(1.0), NoiseMultiplier(), EpsilonAtDelta(1e4, 1e-6), Relaxed()),
]
HIDDEN = some(
    [
        (LONG, NoiseMultiplier(), EpsilonAtDelta(10.0, 1e-6), Relaxed()),
        (DPSGD(1.0, 0.1, 200), NoiseMultiplier(), Advantage(0.02), Relaxed(dimension=300)),
        (LONG, NoiseMultiplier(), EpsilonAtDelta(10.0, 1e-6), Mixed(0.5)),
        (LONG, NoiseMultiplier(), TprAtFpr(0.3, 1e-9), Relaxed()),
        (LONG, Steps(), EpsilonAtDelta(8.0, 1e-6), Relaxed()),
    ],
    0,
)


@pytest.mark.parametrize("who", [Relaxed(), pytest.param(Mixed(0.5), marks=pytest.mark.slow)], ids=str)
def test_nobody_needs_more_noise_than_the_worst_case(who: Adversary) -> None:
    target = EpsilonAtDelta(2.0, 1e-11)
    answer, told = (calibrate(LONG, NoiseMultiplier(), target, one) for one in (who, WorstCase()))
    assert answer.value <= told.value
    assert target.met_by(target.of(who.assess(answer.mechanism, Neighbouring.ADD_REMOVE)).value)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("release", "unknown", "target", "who"), [*FAR, *HIDDEN], ids=str)
def test_the_edge_is_where_it_is_said_to_be(
    release: Mechanism, unknown: Unknown, target: Target, who: Adversary
) -> None:
    """A bound that jumps to infinity beside the answer was taken for the edge of the curve."""
    answer = calibrate(release, unknown, target, who)
    again = target.of(who.assess(answer.mechanism, answer.neighbouring, answer.method))
    assert target.met_by(again.value)
    assert answer.slack <= 1e-3
    sign = 1.0 if unknown.risk_grows else -1.0
    beside = answer.value + 1 if unknown.whole else answer.value * math.exp(sign * 2.0 * answer.slack)
    missed = who.assess(unknown.put(release, beside), answer.neighbouring, answer.method)
    assert not target.met_by(target.of(missed).value)
