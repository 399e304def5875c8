"""A stated rho, Renyi divergences or a curve: never better than a release that has them, and not far worse.

Theorems: RETICENT:renyi-lines, BUN2016:Definition 1.1, DONG2022:Proposition 2.5. The oracles are Gaussian and binary
laws, whose divergences and tests are known exactly.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.mechanisms import RDP, ZCDP, Guarantee, PrivacyProfile

ORDERS = [*np.arange(1.1, 11.0, 0.1), *range(12, 64), 128, 256, 512]
"""Those that other libraries have by default."""


def curve(release: Mechanism):
    return compose(release, Neighbouring.ADD_REMOVE).pessimistic


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Of the likelihood-ratio test of N(0, 1) against N(mu, 1)."""
    with mpmath.workdps(40):
        mu, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu))


def published_epsilon(rho: float, delta: float) -> float:
    """The least by Proposition 12 of CANONNE2020, over a fine grid of orders."""
    a = 1.0 + np.geomspace(1e-3, 1e3 / math.sqrt(rho), 40_000)
    return float(np.min(rho * a + (a * np.log1p(-1.0 / a) - np.log(a - 1.0) - math.log(delta)) / (a - 1.0)))


def divergence(order: float, fpr: float, tpr: float) -> float:
    """Renyi divergence of Bernoulli(tpr) from Bernoulli(fpr), the larger of both directions."""

    def one(q: float, p: float) -> float:
        return math.log(q**order * p ** (1 - order) + (1 - q) ** order * (1 - p) ** (1 - order)) / (order - 1)

    return max(one(tpr, fpr), one(fpr, tpr))


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.1, 0.5, 3.0, 20.0])
def test_no_gaussian_of_this_rho_beats_the_curve(rho: float) -> None:
    """And is not far: a third in the advantage, and two thousandths in epsilon from the published conversion."""
    mu, zcdp = math.sqrt(2.0 * rho), curve(ZCDP(rho))
    for stated in (zcdp, curve(RDP(ORDERS, [rho * a for a in ORDERS]))):
        for epsilon in (0.0, 0.1 * mu, mu, mu + rho, 4.0 * mu + rho):
            assert float(stated.delta(epsilon)) >= gaussian_delta(mu, epsilon)
        for alpha in (1e-6, 0.01, 0.3):
            assert float(stated.power(alpha)) >= float(mpmath.ncdf(mu - math.sqrt(2.0) * mpmath.erfinv(1 - 2 * alpha)))
    assert advantage(zcdp) <= min(1.31 * gaussian_delta(mu, 0.0), 1.0)
    for delta in (1e-5, 1e-10):
        assert epsilon_at_delta(zcdp, delta) <= published_epsilon(rho, delta) * 1.002 + 1e-12


def test_a_rho_at_the_usual_delta() -> None:
    """Noise 1 has rho 1/2 and, exactly, epsilon 4.377; the published conversion says 4.7284."""
    assert published_epsilon(0.5, 1e-5) == pytest.approx(4.7284, rel=1e-5)
    assert 4.377 < epsilon_at_delta(curve(ZCDP(0.5)), 1e-5) < 4.74
    assert 0.3829 < advantage(curve(ZCDP(0.5))) < 0.480  # 0.544 by the published conversion


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_randomised_response_keeps_to_its_rho(epsilon: float) -> None:
    """Pure epsilon is epsilon^2 / 2 as a rho (Proposition 1.4 of BUN2016)."""
    stated, flip = curve(ZCDP(0.5 * epsilon**2)), 1.0 / (1.0 + math.exp(epsilon))
    for threshold in np.linspace(0.0, epsilon, 7):
        assert float(stated.delta(threshold)) >= 1.0 - flip - math.exp(threshold) * flip


@pytest.mark.parametrize("order", [1.05, 1.5, 2.0, 6.0, 40.0])
@pytest.mark.parametrize("most", [0.01, 0.3, 2.0])
def test_one_order_is_as_bad_as_the_worst_binary_law(order: float, most: float) -> None:
    """All pairs of rates that the divergence allows, by brute force: no other curve is as high."""
    with np.errstate(over="ignore"):
        fpr, share = np.meshgrid(np.geomspace(1e-7, 0.5, 900), np.geomspace(1e-5, 1.0, 700)[:-1])
        tpr = fpr + share * (1.0 - fpr)
        one, other = (
            np.log(q**order * p ** (1 - order) + (1 - q) ** order * (1 - p) ** (1 - order)) / (order - 1)
            for q, p in ((tpr, fpr), (fpr, tpr))
        )
    allowed = np.maximum(one, other) <= most
    stated = curve(RDP([order], [most]))
    for epsilon in (0.0, 0.3 * most, most, 1.5 * most):
        worst = float(np.max((tpr - math.exp(epsilon) * fpr)[allowed]))
        if worst > 1e-4:
            assert worst <= float(stated.delta(epsilon)) <= worst * 1.05


def test_no_binary_law_beats_its_own_divergences() -> None:
    rng = np.random.default_rng(3)
    for fpr, tpr in np.sort(rng.uniform(0.001, 0.999, (40, 2)), axis=1):
        orders = np.sort(rng.uniform(1.01, 30.0, rng.integers(1, 6)))
        stated = curve(RDP(orders, [divergence(a, fpr, tpr) for a in orders]))
        assert float(stated.power(fpr)) >= tpr * (1.0 - 1e-9)
        assert float(stated.power(1.0 - tpr)) >= (1.0 - fpr) * (1.0 - 1e-9)


def test_a_curve_is_as_stated_and_one_pair_is_a_guarantee() -> None:
    mu, epsilons = 0.7, np.linspace(0.1, 4.0, 40)
    stated = curve(PrivacyProfile(epsilons, [gaussian_delta(mu, e) for e in epsilons]))
    for epsilon in (0.1, 1.0, 2.5):  # a row of the list, or between two
        assert float(stated.delta(epsilon)) == pytest.approx(gaussian_delta(mu, epsilon), rel=2e-3, abs=0)
    assert gaussian_delta(mu, 0.0) <= advantage(stated) <= 1.02 * gaussian_delta(mu, 0.0)
    one, same = curve(PrivacyProfile("1", "1e-3")), curve(Guarantee(1.0, 1e-3))
    assert np.array_equal(one.delta([0.0, 0.5, 1.0, 2.0]), same.delta([0.0, 0.5, 1.0, 2.0]))
    assert advantage(curve(Guarantee(0.0, 0.01))) == pytest.approx(0.01, rel=1e-9, abs=0)
    pure = curve(PrivacyProfile([0.5, 1.0], [0.01, 0.0]))
    assert float(pure.delta(1.0)) == 0.0


def test_what_is_stated_of_several_releases_adds_up() -> None:
    """A curve does not: it is composed, and three Gaussian releases do not beat it."""
    assert advantage(curve(ZCDP(0.1, 3))) == pytest.approx(advantage(curve(ZCDP(0.3))), rel=1e-9, abs=0)
    thrice = curve(RDP("2,8", "0.1,0.4", 3)), curve(RDP([2, 8], [0.1 * 3, 0.4 * 3]))
    assert advantage(thrice[0]) == pytest.approx(advantage(thrice[1]), rel=1e-9, abs=0)
    epsilons = np.linspace(0.05, 3.0, 60)
    stated = curve(PrivacyProfile(epsilons, [gaussian_delta(0.3, e) for e in epsilons], 3))
    truth = gaussian_delta(0.3 * math.sqrt(3.0), 0.5)
    assert truth <= float(stated.delta(0.5)) <= 1.05 * truth


def test_lists_are_kept_as_text() -> None:
    assert RDP([2, 8.5], np.array([0.1, 0.25])) == RDP("2,8.5", " 0.1, 0.25")
    assert (RDP((2, 3), (0, 1)).orders, RDP((2, 3), (0, 1)).stated_epsilons) == ("2,3", "0,1")


BAD = [
    (lambda: ZCDP(-0.1), "rho must be"),
    (lambda: ZCDP(math.inf), "rho must be"),
    (lambda: ZCDP(0.1, 0), "releases must be"),
    (lambda: RDP("2", "x"), "stated_epsilons must be 1 to 1000 numbers"),
    (lambda: RDP(2.0, 0.1), "orders must be 1 to 1000 numbers"),
    (lambda: RDP([], []), "orders must be 1 to 1000 numbers"),
    (lambda: RDP([1.0, 2.0], [0.1, 0.2]), "orders must be numbers above 1"),
    (lambda: RDP([3, 2], [0.1, 0.2]), "orders must be numbers above 1"),
    (lambda: RDP([2, 3], [0.2, 0.1]), "as no Renyi divergence falls"),
    (lambda: RDP([2, 3], [0.2, math.inf]), "as no Renyi divergence falls"),
    (lambda: RDP([2, 3], [0.2, math.nan]), "as no Renyi divergence falls"),
    (lambda: RDP([2, 3], [0.2]), "as many numbers as orders, which are 2"),
    (lambda: PrivacyProfile([1, 1], [0.1, 0.1]), "that increase"),
    (lambda: PrivacyProfile([-1, 1], [0.1, 0.1]), "that increase"),
    (lambda: PrivacyProfile([1, 2], [0.1, 0.2]), "as no delta grows"),
    (lambda: PrivacyProfile([1, 2], [1.0, 0.2]), "as no delta grows"),
]


@pytest.mark.parametrize(("make", "says"), BAD)
def test_bad_input(make, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()
