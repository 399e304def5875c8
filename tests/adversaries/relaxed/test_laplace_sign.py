"""Scalar Laplace releases against one unknown sign: against brute force for one and two releases.

Theorem: RETICENT:laplace-sign.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed.sign import lattice, unknown_sign
from reticent.adversaries.relaxed.sign.noise import LaplaceSign
from reticent.curves import RelaxedLaplaceTradeOff
from reticent.kernel.accountants import compose
from reticent.kernel.curves import symmetrised
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage
from reticent.mechanisms import Laplace

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
SIMULATED = Laplace(1.0, 4, 0.4)  # one run in several tests: its enclosure is kept


def densities(scale: float, rate: float, cells: int, reach: float = 18.0) -> tuple[np.ndarray, ...]:
    """Masses of absent, present with + and with -, on midpoints; in the units of the contribution."""
    y = np.linspace(-reach * scale, reach * scale, 2 * cells + 1)
    y, width = 0.5 * (y[1:] + y[:-1]), y[1] - y[0]
    absent, up, down = (width * np.exp(-np.abs(y - m) / scale) / (2.0 * scale) for m in (0.0, 1.0, -1.0))
    return absent, (1.0 - rate) * absent + rate * up, (1.0 - rate) * absent + rate * down


@pytest.mark.parametrize(("scale", "rate"), [(1.5, 0.3), pytest.param(0.6, 0.1, marks=pytest.mark.slow)])
def test_one_and_two_releases_by_brute_force(scale: float, rate: float) -> None:
    for releases, cells in ((1, 20_000), (2, 600)):
        laws = densities(scale, rate, cells)
        if releases == 2:
            laws = tuple(np.multiply.outer(law, law) for law in laws)
        absent, present = laws[0], 0.5 * (laws[1] + laws[2])
        found = unknown_sign(Laplace(scale, releases, rate), ADD)
        tolerance = 1e-6 if releases == 1 else 2e-4
        for epsilon in (0.0, 0.05, 0.3):
            ways = [np.maximum(q - np.exp(epsilon) * p, 0.0).sum() for p, q in ((absent, present), (present, absent))]
            lower, upper = found.optimistic.delta(epsilon), found.pessimistic.delta(epsilon)
            assert lower - tolerance <= max(ways) <= upper + tolerance
        assert advantage(found.pessimistic) - advantage(found.optimistic) <= 1e-4


def test_the_lattice_agrees_with_the_exact_curve_of_one_release() -> None:
    """The route of many releases, asked for one: it encloses the closed form of KAISSIS2023."""
    values = lattice.bounds([(LaplaceSign(1.0, 0.8), 1)], 400, 2**16)
    exact = RelaxedLaplaceTradeOff(0.8)
    above = values.thresholds >= 0.0
    truth = exact.delta(values.thresholds[above])
    assert np.all(values.delta[above] >= truth - 1e-12)
    assert values.delta[above] == pytest.approx(truth, abs=1e-3)  # next to the atom of the largest ratio
    reached = 1.0 - sum(values.tests())
    assert reached.max() <= float(exact.delta(0.0)) + 1e-12
    assert reached.max() == pytest.approx(float(exact.delta(0.0)), abs=2e-4)


def test_many_releases_stay_between_half_the_worst_case_and_the_worst_case() -> None:
    """Guessing the sign keeps the average of both: the advantage is at least half of what the sign known gives."""
    found, worst = unknown_sign(SIMULATED, ADD), compose(SIMULATED, ADD)
    assert 0.5 * advantage(worst.optimistic) <= advantage(found.pessimistic) < advantage(worst.optimistic)
    assert advantage(found.optimistic) < advantage(found.pessimistic)


def test_simulated_attackers_stay_below() -> None:
    """The likelihood ratio itself on 40,000 simulated runs of four sampled releases."""
    rng, runs = np.random.default_rng(0), 40_000
    scale, rate, releases = SIMULATED.noise_multiplier, SIMULATED.sample_rate, SIMULATED.releases
    noise = rng.laplace(scale=scale, size=(2, runs, releases))
    sign = rng.choice([-1.0, 1.0], size=(runs, 1))
    noise[1] += sign * (rng.random((runs, releases)) < rate)

    def log_ratio(y: np.ndarray, sign: float) -> np.ndarray:
        return np.log1p(rate * np.expm1((np.abs(y) - np.abs(y - sign)) / scale)).sum(axis=1)

    score = [np.logaddexp(log_ratio(y, 1.0), log_ratio(y, -1.0)) - np.log(2.0) for y in noise]
    reached = (score[1] > 0.0).mean() - (score[0] > 0.0).mean()
    found = unknown_sign(SIMULATED, ADD)
    assert advantage(found.optimistic) - 0.012 <= reached <= advantage(found.pessimistic) + 0.012


def test_what_the_attacker_answers() -> None:
    assert "RETICENT:laplace-sign" in Relaxed().assess(SIMULATED, ADD).theorems
    once = Relaxed().assess(Laplace(2.0), REPLACE)
    assert once.claim is Claim.BOUND  # a later query might react to an earlier answer
    assert once.curve.delta(0.1) == pytest.approx(float(symmetrised(RelaxedLaplaceTradeOff(1.0)).delta(0.1)))


@pytest.mark.parametrize("run", [Laplace(0.01, 3, 0.3), Laplace(1e-3, 2, 0.001)])
def test_where_the_sign_cannot_be_followed_the_worst_case_answers_and_a_note_says_why(run: Laplace) -> None:
    found = unknown_sign(run, ADD)
    assert advantage(found.pessimistic) == pytest.approx(advantage(compose(run, ADD).pessimistic), rel=1e-9, abs=0)
    assert "sign lattice" in found.notes[0]
    assert found.notes[0] in Relaxed().assess(run, ADD).notes


@pytest.mark.parametrize("short", [0.3, 0.9, 1.0])
def test_shorter_contributions_are_made_of_full_ones(short):
    """c y + w with w = 0 (probability c^2) or Laplace(0, 1) is Laplace(c m, 1), for each of the three means."""
    y, points = np.linspace(-60.0, 60.0, 240_001), np.array([-3.0, -0.7, 0.2, 1.1, 4.0])
    for mean in (-1.5, 0.0, 1.5):
        scaled, whole = (np.exp(-np.abs(x - short * mean) / short) / (2.0 * short) for x in (y, points))
        blurred = [np.trapezoid(scaled * 0.5 * np.exp(-np.abs(x - y)), y) for x in points]
        made = short**2 * whole + (1.0 - short**2) * np.asarray(blurred)
        assert made == pytest.approx(0.5 * np.exp(-np.abs(points - short * mean)), rel=1e-5, abs=0)
