"""The dimension that a user states: what it changes, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed import dimension
from reticent.adversaries.relaxed.dimension import DirectionLaw, relaxed_in, replaced
from reticent.adversaries.relaxed.dimension.chi_square import log_chi_square
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff, symmetrised
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage
from reticent.kernel.samplers import INDEPENDENT
from reticent.mechanisms import Laplace
from reticent.samplers import Shuffled

pytestmark = pytest.mark.usefixtures("coarse")

RUN = DPSGD(6.0, 0.2, 100, num_parameters=500)


def test_mu_is_not_lost_by_underflow() -> None:
    """Bounds below 1e-308 once became 0, and mu .51 where attackers reach .846 at small error rates."""
    found = Relaxed(dimension=20).assess(DPSGD(3.7358, 0.1, 10)).mu()
    assert found.lower == found.upper == found.value == pytest.approx(0.84648, rel=1e-4, abs=0)


def test_nothing_stated_is_one_dimension() -> None:
    silent, one = Relaxed().assess(RUN), Relaxed(dimension=1).assess(RUN)
    assert silent.curve is one.curve
    assert silent.notes == one.notes
    assert "RETICENT:second-moment" not in silent.theorems


@pytest.mark.parametrize(
    ("stated", "release", "square", "unknown"),
    [
        (None, DPSGD(2.0, 1.0, 5, num_parameters=500), 5 / 4, 1),  # the number of parameters is no statement
        (None, Gaussian(2.0, 3, 30), 3 / 4, 30),
        (4, Gaussian(2.0, 3, 30), 3 / 4, 4),
    ],
)
def test_whole_releases_take_their_coordinates_or_what_is_stated(stated, release, square, unknown) -> None:
    exact = advantage(symmetrised(RelaxedGaussianTradeOff(square, unknown)))
    assert advantage(Relaxed(dimension=stated).assess(release).curve) == pytest.approx(exact, rel=1e-9, abs=0)


def test_a_stated_dimension_lowers_the_number_and_says_so() -> None:
    silent, stated, whole = (Relaxed(dimension=d).assess(RUN) for d in (None, 100, 500))
    assert stated.measure(advantage).value < 0.3 * silent.measure(advantage).value
    assert stated.measure(advantage).upper <= 1.5 * stated.measure(advantage).lower
    notes, of_all = (" ".join(map(str, one.notes)) for one in (stated, whole))
    assert "Dimension 100: setting it states" in notes
    assert "log 2" not in notes
    assert "trained parameters" not in notes
    assert "500 was given as the number of trained parameters, too" in of_all
    assert {"RETICENT:second-moment", "RETICENT:hypercontractive", "RETICENT:told-mask"} <= set(stated.theorems)


@pytest.mark.parametrize(
    "mechanism", [RUN, Gaussian(2.0, 1, 500), Laplace(1.0), Ledger((Gaussian(2.0, 1, 500), Gaussian(2.0, 1, 800)))]
)
def test_no_more_dimensions_than_the_release_has(mechanism) -> None:
    with pytest.raises(ParameterError, match="dimension must be at most"):
        Relaxed(dimension=501).assess(mechanism)


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True, "4"])
def test_a_dimension_is_a_count(wrong) -> None:
    with pytest.raises(ParameterError, match="dimension"):
        Relaxed(dimension=wrong)


@pytest.mark.parametrize(
    ("sampler", "relation", "said", "unsaid"),
    [
        (Shuffled(), Neighbouring.ADD_REMOVE, "one and the same direction", "may differ"),
        (Shuffled(), Neighbouring.REPLACE, "one and the same direction", "may differ"),
        (INDEPENDENT, Neighbouring.ADD_REMOVE, "may differ", "same direction"),
    ],
)
def test_records_of_a_person_share_one_direction_where_they_are_shuffled(
    sampler, relation, said, unsaid, monkeypatch
) -> None:
    """What is said of it; a chain of two takes seconds, and is not looked at."""
    monkeypatch.setattr(dimension, "replaced", lambda _, curve: Enclosure.from_above(curve))
    run = DPSGD(6.0, 0.2, 100, sampler=sampler, records_per_user=2)
    found = Relaxed(dimension=30).assess(run, relation)
    assert any(said in note for note in found.notes)
    assert not any(unsaid in note for note in found.notes)
    assert ("RETICENT:whole-user-directions" in found.theorems) == (sampler is INDEPENDENT)


# Replacement: the chain of two.


def test_the_chain_of_two_gaussian_curves() -> None:
    curve, alpha = replaced(RUN, GaussianTradeOff(0.1)).pessimistic, np.array([1e-6, 1e-3, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(curve.power(alpha), GaussianTradeOff(0.2).power(alpha), rtol=2e-4)
    assert np.all(curve.beta(alpha) <= GaussianTradeOff(0.2).beta(alpha) * (1.0 + 1e-9))


def test_the_order_of_the_chain() -> None:
    """f_add(1 - f_remove), not f_remove(1 - f_add): an example in which only the first holds."""

    def trade_off(p: list[float], q: list[float], alpha: float) -> float:
        power, left = 0.0, alpha
        for k in sorted(range(3), key=lambda k: -q[k] / p[k]):
            share = min(left / p[k], 1.0)
            power, left = power + share * q[k], left - share * p[k]
        return 1.0 - power

    first, middle, last = [0.1, 0.4, 0.5], [0.3, 0.4, 0.3], [0.7, 0.2, 0.1]  # present, absent, the other present
    for alpha in np.linspace(0.0, 1.0, 21):
        chain = trade_off(middle, last, 1.0 - trade_off(first, middle, alpha))
        assert trade_off(first, last, alpha) >= chain - 1e-12
    other = trade_off(first, middle, 1.0 - trade_off(middle, last, 0.1))
    assert trade_off(first, last, 0.1) < other - 0.2


def test_replacement_is_at_most_twice_and_never_above_the_worst_case() -> None:
    single = relaxed_in(RUN, 100).pessimistic
    both, worst = replaced(RUN, single).pessimistic, WorstCase().assess(RUN, Neighbouring.REPLACE).curve
    assert advantage(both) <= min(2.0 * advantage(single) * (1.0 + 1e-9), 0.2 * advantage(worst))
    stated = Relaxed(dimension=100).assess(RUN, Neighbouring.REPLACE)
    assert "knows the direction of neither record" in " ".join(map(str, stated.notes))
    assert stated.measure(advantage).lower == stated.mu().lower == 0.0
    silent = Relaxed().assess(RUN, Neighbouring.REPLACE).curve
    assert advantage(silent) == pytest.approx(advantage(worst), rel=1e-9, abs=0)


# A law of directions.


def uniform_rows(records: int, coordinates: int) -> np.ndarray:
    rows = np.random.default_rng(3).normal(size=(records, coordinates))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_uniform_directions_reproduce_the_stated_dimension() -> None:
    run, law = DPSGD(6.0, 0.2, 100), DirectionLaw.from_gradients(uniform_rows(200, 20), 1.0)
    low, _, high = law.advantage(run)
    exact = 0.5 * np.exp(0.5 * log_chi_square(6.0, 0.2, 100, 20))
    assert low <= exact <= high
    assert high <= 2.0 * exact
    low, value, high = law.effective_dimension()
    assert low <= 20.0 * 1.05
    assert high >= 20.0 * 0.95
    assert value == pytest.approx(20.0, rel=0.05, abs=0)


def test_a_common_mean_gradient_removes_the_relief() -> None:
    run, rows = DPSGD(6.0, 0.2, 100), 0.05 * uniform_rows(60, 40)
    rows[:, 0] += 1.0
    shared = Relaxed(directions=DirectionLaw.from_gradients(rows, 0.5)).assess(run)
    assert advantage(shared.curve) > 0.95 * advantage(WorstCase().assess(run).curve)
    apart = Relaxed(directions=DirectionLaw.from_gradients(uniform_rows(60, 40), 1.0)).assess(run)
    assert advantage(apart.curve) < 0.2 * advantage(shared.curve)


@pytest.mark.parametrize("share", [1.0, 1e-3])
def test_directions_that_are_all_orthogonal_are_refused(share: float) -> None:
    """An estimate of no risk at all, with an interval of no width, followed from eight of them."""
    axes = share * np.linalg.qr(np.random.default_rng(0).normal(size=(30, 8)))[0].T
    with pytest.raises(ParameterError, match=r"of which some differ from 0: .*, got '8 directions that are all orthog"):
        DirectionLaw.from_gradients(axes, 1.0)
    with pytest.raises(ParameterError, match="all orthogonal"):
        DirectionLaw(np.zeros((9, 9)))
    assert DirectionLaw(np.eye(8) + 1e-5 - 1e-5 * np.eye(8)).effective_dimension()[1] == pytest.approx(
        1e10, rel=1e-6, abs=0
    )


def test_a_mean_below_zero_by_chance_hides_no_risk() -> None:
    """Eight rows of 1,000 dimensions: half of all samples showed no risk at noise 1 (mean product below 0)."""
    rng, found = np.random.default_rng(5), []
    for _ in range(5):
        rows = rng.normal(size=(8, 1000))
        law = DirectionLaw.from_gradients(rows / np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
        found.append(law.advantage(DPSGD(1.0, 0.1, 100))[1])
        square = np.mean(law.gram[np.triu_indices(8, 1)] ** 2)
        assert np.exp(law.log_chi_square(DPSGD(1.0, 0.1, 1))) >= 0.45 * 0.1**2 * square
    assert min(found) > 0.0


def test_a_measured_law_is_asked_at_each_door() -> None:
    """It was refused with an error of Python's own: a matrix has no hash, and attackers are counted once."""
    who = Relaxed(directions=DirectionLaw.from_gradients(uniform_rows(12, 10), 1.0))
    assert [one.adversary.name for one in rt.assess(RUN, [who, who])] == ["relaxed", "worst-case"]
    assert [one.adversary for one in rt.compare(RUN, who, "advantage=0.1")] == [who]


def test_an_estimate_says_that_it_is_one_and_whose_it_is() -> None:
    law = DirectionLaw.from_gradients(3.0 * uniform_rows(30, 10), 2.0)
    np.testing.assert_allclose(np.diag(law.gram), 1.0)
    private, public = (Relaxed(directions=DirectionLaw(law.gram, public)).assess(RUN) for public in (False, True))
    assert private.claim is Claim.ESTIMATE
    assert (private.data_dependent, public.data_dependent) == (True, False)
    assert "effective dimension" in " ".join(map(str, private.notes))
    with pytest.raises(ParameterError, match="left out where a law of directions is given"):
        Relaxed(dimension=3, directions=law)
    for mechanism, relation in ((Gaussian(1.0), Neighbouring.ADD_REMOVE), (RUN, Neighbouring.REPLACE)):
        with pytest.raises(UnsupportedError, match="law of directions"):
            Relaxed(directions=law).assess(mechanism, relation)


@pytest.mark.parametrize(
    "gram", [np.eye(3), np.ones((9, 8)), 2.0 * np.eye(9), np.triu(np.ones((9, 9))), np.full((9, 9), np.nan)]
)
def test_a_law_is_a_gram_matrix_of_clipped_gradients(gram) -> None:
    with pytest.raises(ParameterError, match="gram"):
        DirectionLaw(gram)
