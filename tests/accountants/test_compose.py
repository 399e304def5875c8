"""From mechanisms to enclosed curves: relations, samplers, ledgers, laws and extremes.

Theorem: DONG2022:Theorem 3.2.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import erf, ndtr, ndtri

from benchmarks._rows import forget
from experiments.worst_advantage import advantage
from reticent.accountants import transform
from reticent.accountants.advantage_map import advantage_map
from reticent.accountants.closed_forms import clt_mu
from reticent.accountants.contour import Enclosed
from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.readings import attained
from reticent.accountants.tangents import power_of
from reticent.accountants.transform import SpectralComposition
from reticent.adversaries import Membership, Relaxed
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel import risk
from reticent.kernel.accountants import Composed, certified_advantage, compose, worst_case
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import one_direction, steps_of
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import bayes_security, epsilon_at_delta, tpr_at_fpr
from reticent.kernel.text import digits
from reticent.mechanisms import Laplace
from tests.conftest import some

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
ALPHAS = np.array([1e-9, 1e-4, 1e-2, 0.1, 0.5])


def ends(mechanism, neighbouring=ADD):
    bracket = compose(mechanism, neighbouring)
    return float(bracket.optimistic.delta(0.0)), float(bracket.pessimistic.delta(0.0))


def test_symmetrised_curves_hold_in_both_directions():
    bracket = compose(DPSGD(0.8, 0.01, 1000), ADD)
    for curve in (bracket.pessimistic, bracket.optimistic):
        np.testing.assert_allclose(curve.beta(curve.beta(ALPHAS)), ALPHAS, rtol=1e-6, atol=1e-12)
    assert np.all(bracket.optimistic.beta(ALPHAS) >= bracket.pessimistic.beta(ALPHAS) - 1e-13)


def test_order_is_irrelevant():
    parts = (DPSGD(1.0, 0.02, 30), DPSGD(2.0, 0.1, 8), Gaussian(3.0))
    forth, back = compose(Ledger(parts), ADD), compose(Ledger(parts[::-1]), ADD)
    np.testing.assert_array_equal(forth.pessimistic.beta(ALPHAS), back.pessimistic.beta(ALPHAS))


def test_no_noise_shows_whoever_was_sampled():
    assert ends(Gaussian(0.0)) == (1.0, 1.0)
    lower, upper = ends(DPSGD(0.0, 0.01, 10))
    assert lower == pytest.approx(1 - 0.99**10, rel=1e-12, abs=0)
    assert upper == pytest.approx(lower, rel=1e-12, abs=0)
    curve = compose(DPSGD(0.0, 0.01, 10), ADD).pessimistic
    assert curve.beta(0.0) == pytest.approx(0.99**10, rel=1e-12, abs=0)
    assert ends(Ledger((Gaussian(0.0), DPSGD(1.0, 0.01, 10)))) == (1.0, 1.0)
    mixed = ends(Ledger((DPSGD(0.0, 0.01, 5), DPSGD(1.5, 0.01, 300))))
    assert mixed[0] > max(ends(DPSGD(0.0, 0.01, 5))[0], ends(DPSGD(1.5, 0.01, 300))[0])


ASKED = [
    (0.7003, 0.00122, 1779, ADD),  # rare large losses lie beyond the window: 1.9e-7 of alias
    (10.02, 0.811, 1, REPLACE),  # nodes that do for many steps: 6.9e-4 of alias
    *((0.6, 0.01, 10, relation) for relation in (ADD, REPLACE)),
    *((1.0, 1e-4, 1000, relation) for relation in (ADD, REPLACE)),  # the last frequency alone says nothing
    (0.2369, 6.75e-5, 37817, ADD),  # rare large losses need room on the line and closer nodes
]
ASKED += [(0.3468, 3.33e-5, 165_873, ADD)]  # it dips and comes back behind the last frequency: 1.2e-8
ASKED += [(0.4782720762637816, 2.497966169037596e-05, 73853, ADD), (0.67, 1.8e-4, 35259, ADD), (0.5, 0.002, 60, ADD)]


@pytest.mark.parametrize(("noise", "rate", "steps", "relation"), some(ASKED, *range(8)))
def test_an_estimate_knows_its_error(noise, rate, steps, relation):
    """Of one run, and of the same run on a map, where that vouches for itself."""
    lower, upper = certified_advantage(noise, rate, steps, relation)
    on_map = advantage_map(np.array([noise]), np.array([0.9, rate]), steps, relation)[0, 1]
    assert lower - 1e-8 <= advantage(noise, rate, steps, relation) <= upper + 1e-8
    assert np.isnan(on_map) or lower - 1e-8 <= on_map <= upper + 1e-8


@pytest.mark.slow
def test_estimates_of_random_runs_keep_to_their_stated_error():
    rng = np.random.default_rng(11)
    for _ in range(150):
        noise, rate = float(np.exp(rng.uniform(-2.3, 2.5))), float(np.exp(rng.uniform(-13.8, -0.05)))
        test_an_estimate_knows_its_error(
            noise, rate, int(np.exp(rng.uniform(0.0, 12.6))), (ADD, REPLACE)[rng.integers(2)]
        )


CONFIGURATIONS = [(1.0, 1e-3, 10**4), (0.6, 1e-4, 10**6), (2.0, 0.1, 500), (0.8, 0.01, 1000), (5.0, 0.004, 20_000)]
COMING_BACK = [(3.0, 0.5, 5), (3.0, 0.4, 4), (2.0, 0.5, 12), (4.0, 0.6, 3)]
"""Runs whose transform decays where its nodes would let it come back."""


@pytest.mark.parametrize("neighbouring", [ADD, REPLACE])
@pytest.mark.parametrize("run", some([(run,) for run in CONFIGURATIONS + COMING_BACK], 0, 1, 2, 5))
def test_fast_values_lie_in_the_enclosure(run, neighbouring):
    composed = Composed(DPSGD(*run), neighbouring)
    lower, upper = composed.advantage()
    assert lower - 1e-9 <= advantage(*run, neighbouring) <= upper + 1e-9
    quick = certified_advantage(*run, neighbouring)
    assert quick[0] <= upper
    assert lower <= quick[1]
    assert quick[1] - quick[0] <= 1e-8
    bracket = composed.bracket
    alphas = np.array([1e-4, 1e-3, 1e-2, 0.1])
    profile, epsilons = WorstCaseProfile(*run, neighbouring), np.array([0.0, 0.2, 0.5])
    assert profile.reliable
    for epsilon, delta in zip(epsilons.tolist(), profile.delta(epsilons), strict=True):
        low, high = composed.delta(epsilon)
        assert low - 1e-8 <= delta <= high + 1e-8
    low, high = (epsilon_at_delta(curve, 1e-5) for curve in (bracket.optimistic, bracket.pessimistic))
    assert low - 2e-6 <= profile.epsilon(1e-5)[0] <= high + 2e-6
    for alpha, power in zip(alphas.tolist(), profile.power(alphas)[0], strict=True):
        low, high = float(bracket.pessimistic.beta(alpha)), float(bracket.optimistic.beta(alpha))
        assert low - 2e-8 <= 1.0 - power <= high + 2e-8


def test_a_transform_that_comes_back_in_truth_is_not_taken_as_decayed():
    assert not WorstCaseProfile(0.3, 0.5, 20, ADD).reliable


def test_sampled_laplace_is_refused_under_replace():
    with pytest.raises(UnsupportedError, match="sampled Laplace"):
        compose(Laplace(2.0, 5, sample_rate=0.5), REPLACE)


TAILS = [(4.0, 0.14, 30), (1.0, 0.3, 5), (0.357, 0.01, 1000), (1.0, 1e-3, 10**4)]


@pytest.mark.parametrize(("noise", "rate", "steps"), some(TAILS, 0))
@pytest.mark.parametrize("neighbouring", [ADD, REPLACE])
def test_tails_are_followed(noise, rate, steps, neighbouring):
    """A contour that cannot be had may not leave a floor under delta."""
    bracket = compose(DPSGD(noise, rate, steps), neighbouring)
    last = float(bracket.pessimistic.delta(200.0))
    assert last <= 1e-11
    for alpha in (1e-6, 1e-8):
        assert bracket.pessimistic.power(alpha) <= 1.2 * bracket.optimistic.power(alpha) + 1e-10


def test_the_power_of_a_curve_is_the_least_of_its_tangents():
    mu, rates = 1.3, np.array([1e-6, 1e-3, 0.2, 0.258, 0.5, 0.999])
    power, thresholds = power_of(lambda e: ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu), rates, 15.0)
    assert power == pytest.approx(ndtr(ndtri(rates) + mu), rel=3e-9, abs=0)
    assert thresholds == pytest.approx(-mu * ndtri(rates) - mu * mu / 2, abs=1e-4)


def test_a_bend_at_threshold_zero_is_met_exactly():
    """The tangents of slopes -1/2 and -1/5 in e^l meet at 0: rates between them are read there."""
    power, thresholds = power_of(lambda e: np.maximum(0.3 - 0.2 * np.expm1(e), 0.0), np.array([0.21, 0.35, 0.49]), 5.0)
    assert power == pytest.approx([0.51, 0.65, 0.79], rel=1e-12, abs=0)
    assert np.all(thresholds == 0.0)


def test_a_test_that_is_asked_less_often_is_no_stronger():
    """The rates of a threshold test known within a tenth, and delta in full: what is attained lies on the safe side."""
    curve, at = GaussianTradeOff(0.7), np.linspace(0.0, 2.0, 9)
    fpr, delta = np.exp(curve.errors(at).fpr), np.asarray(curve.delta(at))
    few, _, _, many = attained(at, delta, Enclosed(np.log(0.9 * fpr), np.log(1.1 * fpr)))
    assert np.all(np.exp(many) <= curve.power(np.exp(few)))
    assert np.all(np.exp(many) >= 0.9 * curve.power(np.exp(few)))
    known = Enclosed(np.append(np.log(fpr[:-1]), -np.inf), np.log(fpr))
    few, _, _, many = attained(at, np.append(0.0, delta[1:]), known)
    assert np.isnan(few[[0, -1]]).all()
    assert not np.isnan(many[1:-1]).any()


@pytest.mark.parametrize("neighbouring", [ADD, REPLACE])
@pytest.mark.parametrize("run", [(10.0, 1e-6, 10**8), (1.0, 1e-12, 10**6), (100.0, 1e-6, 10**8)])
def test_many_rare_samples_are_known_to_many_digits(run, neighbouring):
    """Nearly Gaussian: the central limit theorem is close, and the enclosure has it."""
    with np.errstate(all="ignore"):
        lower, upper = transform.transform_of(steps_of(DPSGD(*run), neighbouring)[0]).delta(0.0)
    limit = float(erf(float(clt_mu(*run, neighbouring)) / math.sqrt(8.0)))
    assert lower * (1.0 - 1e-4) <= limit <= upper * (1.0 + 1e-4)
    assert 0.0 <= upper - lower <= 1e-4 * upper


@pytest.mark.parametrize("run", [(1e30, 0.5, 1), (1e30, 1e-5, 10**15)])
def test_where_noise_is_beyond_all_use_an_advantage_is_still_an_enclosure(run: tuple[float, float, int]) -> None:
    """The lower end was below 0; and so many steps that no loss is rare enough ended in an error of numpy."""
    lower, upper = certified_advantage(*run, Neighbouring.REPLACE)
    assert 0.0 <= lower <= upper < 1e-20


def test_tails_of_an_ordinary_run():
    bracket = compose(DPSGD(1.56, 0.0302, 33), ADD)
    ends = bracket.optimistic, bracket.pessimistic
    assert [epsilon_at_delta(curve, 1e-5) for curve in ends] == pytest.approx([0.55639] * 2, abs=1e-5)
    assert [tpr_at_fpr(curve, 1e-6) for curve in ends] == pytest.approx([2.31748e-6] * 2, rel=1e-5, abs=0)
    assert [epsilon_at_delta(curve, 1e-14) for curve in ends] == pytest.approx([1.774078] * 2, rel=1e-5, abs=0)


@pytest.mark.parametrize(
    ("mechanism", "largest"),
    [
        (Laplace(0.5, 2), 4.0),
        (Laplace(1.0, 4), 4.0),
        (Laplace(1.0, 3, 0.2), 3 * float(np.log1p(0.2 * np.expm1(1.0)))),
    ],
)
def test_laplace_releases_end_at_their_pure_epsilon(mechanism, largest):
    bracket = compose(mechanism, ADD)
    assert epsilon_at_delta(bracket.pessimistic, 1e-14) <= largest * (1 + 1e-9)
    assert epsilon_at_delta(bracket.optimistic, 1e-5) > 0.7 * largest
    assert float(bracket.pessimistic.delta(largest * (1 + 1e-9))) == 0.0


NOTHING_HIDDEN = list(product([(0.2, 0.01, 10_000), (2.308, 0.1978, 46_796), (0.427, 0.0907, 8619)], [ADD, REPLACE]))


@pytest.mark.parametrize(("run", "neighbouring"), some(NOTHING_HIDDEN, 1, 2, 4))
def test_no_privacy_is_said_in_digits(monkeypatch, run, neighbouring):
    """Epsilon was known to lie in [1080, 1407]. Bayes security is far below the smallest gap."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a lattice was run")

    monkeypatch.setattr(Lattice, "answer", never)
    compose.cache_clear()
    bracket = worst_case(DPSGD(*run), neighbouring)
    for delta in (1e-5, 1e-6):
        lower, upper = (epsilon_at_delta(curve, delta) for curve in (bracket.optimistic, bracket.pessimistic))
        assert 0.0 <= upper - lower <= 1e-6 * upper
    secure = [bayes_security(curve) for curve in (bracket.pessimistic, bracket.optimistic)]
    assert secure[0] <= secure[1] <= secure[0] * (1.0 + 1e-6)


RELATIONS = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)
RUN = DPSGD(1.1, 0.02, 300)


@pytest.fixture
def nothing_is_composed(monkeypatch):
    """Composing a curve fails."""

    def fail(*_):
        raise AssertionError("the curve was composed")

    worst_case.cache_clear()
    monkeypatch.setitem(compose.__wrapped__.__globals__, "compose", fail)
    yield
    worst_case.cache_clear()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("attacker", [WorstCase(), Membership()])
def test_one_number_composes_nothing(nothing_is_composed, attacker, relation) -> None:
    lower, upper = certified_advantage(1.1, 0.02, 300, relation)
    found = attacker.assess(RUN, relation)
    advantage, security = found.measure(risk.advantage), found.measure(risk.bayes_security)
    assert (advantage.lower, advantage.value) == pytest.approx((lower, upper), rel=1e-12, abs=0)
    assert (security.value, security.upper) == pytest.approx((1.0 - upper, 1.0 - lower), rel=1e-12, abs=0)
    assert found.measure(lambda curve: risk.success(curve, 0.5)).value == pytest.approx(0.5 + 0.5 * upper, abs=1e-13)
    assert found.mu().value == pytest.approx(math.sqrt(300) / 1.1, rel=1e-12, abs=0)
    assert digits(upper, up=True) in repr(found)
    (alone,) = assess(RUN, [WorstCase()], relation)
    assert alone.measure(risk.advantage) == advantage


def test_a_calibration_and_its_worst_case_compose_nothing(nothing_is_composed) -> None:
    found = calibrate(RUN, NoiseMultiplier(), Advantage(0.1))
    assert found.worst_case() == found.achieved
    relaxed = calibrate(RUN, NoiseMultiplier(), Advantage(0.1), Membership())
    assert 0.1 * (1.0 - 1e-4) < relaxed.worst_case().value <= 0.1


def test_the_same_number_again_is_remembered(monkeypatch) -> None:
    """A report reads one power for itself and for what follows from it."""
    found = WorstCase().assess(RUN, Neighbouring.ADD_REMOVE)
    asked = ((risk.tpr_at_fpr, 1e-3), (risk.epsilon_at_delta, 1e-5), (risk.delta_at_epsilon, 1.0))
    first = [found.measure(number, at) for number, at in asked]

    def fail(*_):
        raise AssertionError("a contour was asked")

    monkeypatch.setattr(SpectralComposition, "delta", fail)
    monkeypatch.setattr(SpectralComposition, "points", fail)
    assert [found.measure(number, at) for number, at in asked] == first
    with pytest.raises(AssertionError, match="a contour"):
        found.measure(risk.tpr_at_fpr, 2e-3)


@pytest.mark.parametrize("relation", some(RELATIONS, 0))
def test_no_number_depends_on_what_the_process_was_asked_before(relation) -> None:
    """A composed curve outlived the contours behind it: epsilon was known within 1e-6 then, and else within 1e-11."""
    asked = ((risk.epsilon_at_delta, 1e-5), (risk.tpr_at_fpr, 1e-3), (risk.delta_at_epsilon, 1.0), (risk.advantage,))

    def answers(order) -> list[float]:
        found = WorstCase().assess(RUN, relation)
        told = {number: found.measure(*number) for number in order}
        return [end for number in asked for end in (told[number].lower, told[number].upper)]

    forget()
    first = [*answers(asked), *Composed(RUN, relation).delta(1.0)]
    forget()
    compose(RUN, relation)
    for more in range(70):  # more than any cache holds
        Composed(DPSGD(3.0, 0.02, 10 + more), relation).delta(0.3)
    near = [Composed(RUN, relation).delta(epsilon) for epsilon in (0.9, 1.001, 1.0)]
    assert [*answers(asked[::-1]), *near[-1]] == pytest.approx(first, rel=1e-9, abs=0)


def test_the_point_at_threshold_zero_lies_on_the_curve() -> None:
    found = worst_case(RUN, Neighbouring.REPLACE).pessimistic
    rates = found.errors(np.zeros(2))
    alpha, beta = np.exp(rates.fpr), np.exp(rates.fnr)
    assert np.exp(rates.tpr) == pytest.approx(1.0 - beta, rel=1e-12, abs=0)
    assert 1.0 - alpha - beta == pytest.approx(found.delta(np.zeros(2)), rel=1e-13, abs=0)
    assert beta == pytest.approx(found.beta(alpha), rel=1e-7, abs=0)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (DPSGD(0.04, 0.001, 100), "too little noise"),
        (DPSGD(0.5, 0.9, 50), ""),  # known to so few digits of its complement that the curve is better
        (Laplace(2.0, releases=3), ""),
    ],
)
def test_where_one_number_is_not_enough_the_curve_answers_and_says_why(run, reason) -> None:
    found, curve = worst_case(run, Neighbouring.ADD_REMOVE), compose(run, Neighbouring.ADD_REMOVE)
    assert getattr(found.pessimistic, "advantage", None) is None
    assert float(found.pessimistic.delta(0.0)) == pytest.approx(float(curve.pessimistic.delta(0.0)), rel=1e-9, abs=0)
    if reason:
        assert reason in found.trace[0].failure
        assert found.trace[1:] == curve.trace
    else:
        assert found.trace == curve.trace


def test_a_relaxed_risk_composes_the_worst_case_once(monkeypatch) -> None:
    """The attacker's own upper end and the worst case beside it are one composition."""
    run, calls = DPSGD(1.37, 0.013, 211), []
    names = one_direction.__wrapped__.__globals__
    enclosed = names["enclose"]
    monkeypatch.setitem(names, "enclose", lambda *a: calls.append(a) or enclosed(*a))
    for found in assess(run, [Relaxed()]):
        found.measure(lambda curve: risk.tpr_at_fpr(curve, 0.01))
        assert found.mu().upper >= 0.0
    assert len(calls) == 1
