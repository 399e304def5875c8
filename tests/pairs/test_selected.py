"""The best of several runs, against all orders of a few outcomes, enumerated, and against published bounds.

Theorems: RETICENT:worst-order, PAPERNOT2022:Corollary 3.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri

from reticent.certificates.document.sentences import persons
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.accountants.steps import Known
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff, PiecewiseLinearTradeOff
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import CurvePair, Neighbouring, Part
from reticent.kernel.risk import delta_at_epsilon, epsilon_at_delta
from reticent.mechanisms import Guarantee, Laplace, RandomisedResponse, Selection
from reticent.mechanisms.codec import mechanism_of, mechanism_record
from reticent.pairs import Fixed, Geometric, NegativeBinomial, Poisson, Runs, SelectedPair
from reticent.pairs.selected import losses_between, slopes_gained

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
ABSENT, PRESENT = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.25, 0.25, 0.3])
EPSILONS = np.array([0.0, 0.3, 0.7, 1.2, 1.8])
LAWS = (Fixed(3), Geometric(4), NegativeBinomial(4, 0.0), NegativeBinomial(3, -0.5), Poisson(2.5))


def masses(runs: Runs, most: int = 3000) -> np.ndarray:
    """P(K = k) by its textbook formula, without a generating function."""
    counts = np.arange(most)
    if isinstance(runs, Fixed):
        return (counts == runs.mean).astype(float)
    if isinstance(runs, Poisson):
        return np.array([math.exp(k * math.log(runs.mean) - runs.mean - math.lgamma(k + 1.0)) for k in counts])
    shape, rest = runs.shape, 1.0 - runs.gamma
    if shape == 0.0:
        found = rest ** np.maximum(counts, 1) / np.maximum(counts, 1)
    else:
        signs = [math.gamma(k + shape) / math.gamma(shape) if k < 60 else 0.0 for k in counts]
        logs = [math.lgamma(k + shape) - math.lgamma(k + 1.0) if k + shape > 0 else 0.0 for k in counts]
        found = np.exp(np.array(logs) + counts * math.log(rest))
        assert all(sign * signs[1] >= 0.0 for sign in signs[1:60])
    found[0] = 0.0
    return found / found.sum()


def law_of_the_best(one: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Probability that each outcome (last axis) is the best of K, K with ``law``; they are ordered by their score."""
    below = np.cumsum(np.concatenate([np.zeros((*one.shape[:-1], 1)), one], axis=-1), axis=-1)
    reached = np.polynomial.polynomial.polyval(np.minimum(below, 1.0), law[: 1 + np.flatnonzero(law > 1e-20)[-1]])
    return np.diff(reached, axis=-1)


def worst_delta(absent: np.ndarray, present: np.ndarray, law: np.ndarray, orders: list[tuple[int, ...]]) -> np.ndarray:
    """The largest delta of the best of K over all orders, at ``EPSILONS``, either data set being the true one."""
    p, q = (law_of_the_best(one[np.array(orders)], law) for one in (absent, present))
    deltas = [[np.maximum(y - math.exp(e) * x, 0.0).sum(axis=1) for x, y in ((p, q), (q, p))] for e in EPSILONS]
    return np.max(deltas, axis=(1, 2))


def base(absent: np.ndarray, present: np.ndarray) -> CurvePair:
    """The curve of one run, whose outcomes are ordered by growing loss."""
    alphas = np.append(0.0, np.cumsum(absent[::-1]))
    betas = 1.0 - np.append(0.0, np.cumsum(present[::-1]))
    alphas[-1], betas[-1] = 1.0, 0.0
    return CurvePair(PiecewiseLinearTradeOff(alphas, betas))


def ends(absent: np.ndarray, present: np.ndarray, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Deltas of the enclosure."""
    one = (Part(base(absent, present), 1, ()),)
    found = []
    for weaker in (True, False):
        curve = compose(Known((Part(SelectedPair(one, runs, weaker), 1, ()),)), ADD).pessimistic
        found.append(curve.delta(EPSILONS))
    return found[0], found[1]


@pytest.mark.parametrize("runs", LAWS, ids=repr)
def test_no_order_of_outcomes_shows_more(runs: Runs) -> None:
    _, upper = ends(ABSENT, PRESENT, runs)
    worst = worst_delta(ABSENT, PRESENT, masses(runs), list(itertools.permutations(range(4))))
    assert np.all(worst <= upper)


@pytest.mark.usefixtures("fine_selection")
@pytest.mark.parametrize("runs", [Fixed(3), Geometric(4)], ids=repr)
def test_some_order_shows_nearly_as_much(runs: Runs) -> None:
    """Three outcomes, each split in three by a coin: 1,680 orders."""
    absent, present = np.array([0.5, 0.35, 0.15]), np.array([0.2, 0.3, 0.5])
    orders = []
    for first in itertools.combinations(range(9), 3):
        left = [place for place in range(9) if place not in first]
        for second in itertools.combinations(left, 3):
            order = np.full(9, 2)
            order[list(first)], order[list(second)] = 0, 1
            orders.append(tuple(order))
    worst = worst_delta(absent / 3.0, present / 3.0, masses(runs), orders)
    lower, upper = ends(absent, present, runs)
    assert np.all(worst <= upper)
    assert np.all(worst[:4] >= 0.96 * upper[:4])
    assert np.all((upper - lower)[:4] <= 0.04 * upper[:4])


def test_every_tuple_of_runs_enumerated() -> None:
    """The law of the best itself, of three runs: all 64 triples."""
    direct = np.zeros(4)
    for runs in itertools.product(range(4), repeat=3):
        direct[max(runs)] += np.prod(PRESENT[list(runs)])
    np.testing.assert_allclose(law_of_the_best(PRESENT, masses(Fixed(3))), direct, rtol=1e-12)


@pytest.mark.parametrize("runs", LAWS, ids=repr)
def test_generating_functions(runs: Runs) -> None:
    law, outside = masses(runs), np.array([0.0, 0.2, 0.6, 0.9])
    counts = np.arange(len(law))
    first = [law[1:] @ (counts[1:] * (1.0 - o) ** (counts[1:] - 1)) for o in outside]
    second = [law[2:] @ (counts[2:] * (counts[2:] - 1) * (1.0 - o) ** (counts[2:] - 2)) for o in outside]
    np.testing.assert_allclose(runs.first(outside), first, rtol=1e-9)
    np.testing.assert_allclose(runs.second(outside), second, rtol=1e-9)
    drawn = [runs.draw(np.random.default_rng(seed)) for seed in range(4000)]
    assert np.mean(drawn) == pytest.approx(runs.mean, rel=0.1, abs=0)
    assert np.mean(np.equal(drawn, 1)) == pytest.approx(law[1], abs=0.03)


@pytest.mark.usefixtures("fine_selection")
def test_the_price_of_tuning() -> None:
    """mu = 1/2 at delta 1e-6, where one run has 2.2541: published bounds are 3.3825 and 4.4107."""
    for mean, published, exact in ((10, 3.3825, 3.256), (100, 4.4107, 4.215)):
        found = compose(Selection(Gaussian(2.0), Geometric(mean)), ADD)
        lower, upper = (float(epsilon_at_delta(curve, 1e-6)) for curve in (found.optimistic, found.pessimistic))
        assert 0.99 * exact < lower <= exact + 1e-3
        assert exact - 1e-3 <= upper < 1.003 * exact < published


def test_a_fixed_number_of_sampled_runs_is_known_closely() -> None:
    """No loss of the best is too large: delta was found at every half nat, and epsilon 1.80 was at most 2.00."""
    found = compose(Selection(DPSGD(1.98, 0.01, 1000), Fixed(10)), ADD)
    lower, upper = (float(epsilon_at_delta(curve, 1e-5)) for curve in (found.optimistic, found.pessimistic))
    assert upper < 1.08 * lower


def largest_of_many(epsilon: float, count: int) -> float:
    """delta of the largest of ``count`` normal variables, mean 0 against mean 1, by quadrature."""
    x = np.linspace(-8.0, 16.0, 240_001)
    present, absent = (
        math.log(count) - 0.5 * (x - mean) ** 2 - 0.5 * math.log(2.0 * math.pi) + (count - 1) * log_ndtr(x - mean)
        for mean in (1.0, 0.0)
    )
    gained = np.exp(present) - np.exp(np.minimum(absent + epsilon, 700.0))
    return float(np.maximum(gained, 0.0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("runs", [Fixed(2), Fixed(3), pytest.param(Fixed(1000), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_no_epsilon_of_a_known_number_of_runs_is_infinite(runs: Fixed, delta: float) -> None:
    """At most that of all runs together; at least what the score "the largest" shows. They were infinite."""
    found, count = compose(Selection(Gaussian(1.0), runs), ADD), int(runs.mean)
    least, most = (float(epsilon_at_delta(curve, delta)) for curve in (found.optimistic, found.pessimistic))
    assert largest_of_many(most, count) <= delta
    assert 0.0 < least <= most <= float(epsilon_at_delta(GaussianTradeOff(math.sqrt(count)), delta)) * 1.01
    assert most < 1.2 * least


def test_all_runs_of_a_poisson_law_together() -> None:
    """More than so many are next to impossible. Epsilon at 1e-5 was at least 62.1, and infinite at most."""
    found = compose(Selection(Gaussian(1.0), Poisson(300)), ADD)
    least, most = (float(epsilon_at_delta(curve, 1e-9)) for curve in (found.optimistic, found.pessimistic))
    assert 0.75 * most < least <= most < 300.0
    for count in (0.5, 7.0, 300.0, 1e6):
        number, more = Poisson(count).most
        assert number >= count
        assert more < 1e-18


def test_one_run_is_one_run() -> None:
    for runs in (Fixed(1), Geometric(1.0)):
        found = compose(Selection(Gaussian(2.0), runs), ADD)
        assert found.pessimistic.delta(0.0) == pytest.approx(0.19741265, rel=1e-6, abs=0)


@pytest.mark.parametrize("one", [Guarantee(0.5), Laplace(2.0)], ids=lambda one: one.name)
def test_pure_epsilon_stays_pure(one) -> None:
    """(2 + eta) epsilon, by PAPERNOT2022:Corollary 3: 3 times for a geometric number of runs."""
    best = Selection(one, Geometric(1000))
    curve = compose(best, ADD).pessimistic
    assert float(curve.delta(1.5 + 1e-9)) < 1e-12
    assert float(epsilon_at_delta(curve, 1e-12)) <= 1.5
    assert 0.0 < mu_limits(best, ADD)[1] < math.inf


@pytest.mark.parametrize(
    ("scale", "rate", "count", "epsilon"), [(0.3, 0.05, 3, 2.0), (0.5, 0.1, 5, 2.0), (1.0, 0.2, 2, 0.5)]
)
def test_a_known_number_of_runs_that_all_show_the_target(scale: float, rate: float, count: int, epsilon: float) -> None:
    """The answer that shows most may rank lowest: it is best where all runs give it, and then shows them all.

    Losses of sampled noise are bounded by different numbers in the two directions.
    """
    best = Selection(Laplace(scale, 1, rate), Fixed(count))
    p = 0.5 * math.exp(-1.0 / scale)
    q = (1.0 - rate) * p + 0.5 * rate
    assert q**count - math.exp(epsilon) * p**count > 1e-9
    assert compose(best, ADD).pessimistic.delta(epsilon) >= q**count - math.exp(epsilon) * p**count
    assert mu_limits(best, ADD)[1] >= ndtri(q**count) - ndtri(p**count)


@pytest.mark.parametrize("runs", [Poisson(1e4), Fixed(3000), NegativeBinomial(1e6, 100.0), Geometric(1e9)], ids=repr)
def test_a_great_many_runs(runs: Runs) -> None:
    """F' is nothing at all for most outcomes."""
    found = compose(Selection(Gaussian(20.0), runs), ADD)
    assert 0.0 < found.optimistic.delta(0.5) <= found.pessimistic.delta(0.5) <= 1.0


def test_a_mean_that_a_shape_cannot_have_in_floats() -> None:
    """Near shape -1 all runs but next to none are one, and the rest has no end: its gamma is below e^-100."""
    assert NegativeBinomial(2.6, -0.99).gamma == pytest.approx(math.exp(-96.56), rel=0.01, abs=0)
    with pytest.raises(ParameterError, match=r"at most 2\.69"):
        NegativeBinomial(20, -0.99)


def test_as_a_document_and_back() -> None:
    for runs in LAWS:
        best = Selection(DPSGD(1.0, 0.01, 100), runs)
        assert mechanism_of(mechanism_record(best)) == best
    record = mechanism_record(Selection(Gaussian(2.0), Geometric(10)))
    for wrong in ({"kind": "binomial", "mean": 3}, {"kind": "geometric"}, {"kind": "geometric", "mean": 0.5}, {}, 7):
        with pytest.raises(ArtifactError):
            mechanism_of({**record, "runs": wrong})


@pytest.mark.parametrize(
    ("noise", "delta", "relation"), [(0.25, 1e-12, ADD), (2.0, 1e-300, ADD), (0.02, 1e-15, REPLACE)]
)
def test_no_lower_end_exceeds_all_runs_together(noise: float, delta: float, relation: Neighbouring) -> None:
    """The two that rank lowest win together with a probability that 1 minus what is outside of it is all noise of.

    Epsilon was at least 72.7 at noise 1/4, where both runs together have at most 55.2; and infinite twice.
    """
    best = WorstCase().assess(Selection(Gaussian(noise), Fixed(2)), relation).measure(epsilon_at_delta, delta)
    assert best.lower <= epsilon_at_delta(compose(Gaussian(noise, 2), relation).pessimistic, delta) * (1.0 + 1e-9)


@pytest.mark.usefixtures("fine_selection")
def test_a_threshold_beside_zero_is_none() -> None:
    """A threshold of 1e-16 made a slope of the rounding of two deltas: delta(.5) of this run was at most .991."""
    flip = 1.0 / (1.0 + math.exp(1.9615028243111856))
    run = Selection(RandomisedResponse(flip), Geometric(27.960327485900287))
    delta = WorstCase().assess(run).measure(delta_at_epsilon, 0.5)
    assert delta.lower == pytest.approx(delta.upper, rel=0.005, abs=0)
    for back, ahead in ((2.0, 2.0), (1e-6, 5.0), (0.3, 0.7), (1.9615028243111856, 1.9615028243111856)):
        losses = losses_between(back, ahead)
        assert 0.0 in losses
        assert [losses[0], losses[-1]] == [-back, ahead]
        assert np.diff(losses).min() > 1e-10


def test_slopes_at_which_a_cell_gains_nothing_are_left_out() -> None:
    slopes, gain = np.array([1.0, 2.0, 3.9, 4.1, 8.0]), np.array([1.0, 2.0])
    assert slopes_gained([(0.5 * gain, np.array([0.5, 0.5])), (gain, np.array([0.5, 0.5]))], slopes) == 3
    assert slopes_gained([(gain, np.array([0.0, 0.5]))], slopes) == 5


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="without a selection"):
        Selection(Selection(Gaussian(2.0), Geometric(10)), Geometric(10))
    with pytest.raises(ParameterError, match="whole number"):
        Fixed(2.5)
    with pytest.raises(ParameterError, match="shape"):
        NegativeBinomial(10, -1.0)
    one = SelectedPair((Part(base(ABSENT, PRESENT), 1, ()),), Fixed(2))
    with pytest.raises(UnsupportedError, match="among selections"):
        compose(Known((Part(SelectedPair((Part(one, 1, ()),), Fixed(2)), 1, ()),)), ADD)


@pytest.mark.parametrize("turned", [False, True])
def test_a_selection_states_records_of_a_person_only_where_every_part_does(turned: bool) -> None:
    one, other = DPSGD(2.0, 0.1, 5, records_per_user=1), Gaussian(2.0)
    mixed = Selection(Ledger((other, one) if turned else (one, other)), Geometric(3))
    assert mixed.records_per_user is None
    assert mixed.unit == "record"
    alike = Selection(Ledger((one, DPSGD(3.0, 0.1, 5, records_per_user=1))), Geometric(3))
    assert alike.records_per_user == 1
    clients = DPSGD(2.0, 0.1, 5, unit=Unit.CLIENT)
    assert Selection(Ledger((clients, clients)), Geometric(3)).unit == "client"
    assert persons(mechanism_record(mixed)) is None
    assert persons(mechanism_record(alike)) == 1
