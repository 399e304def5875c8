"""All records of a person together: the pair of Gaussian mixtures, its dominance, and what is built on it.

Theorems: RETICENT:whole-user-dominance, RETICENT:whole-user-sign.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.adversaries import Membership, MembershipGame, Relaxed
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.curves import RelaxedGaussianTradeOff
from reticent.interop.dp_events import to_dp_event
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.accountants.compose import Composed
from reticent.kernel.adversaries import Method
from reticent.kernel.curves import GaussianTradeOff, symmetrised
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring, WholeUserGaussianPair
from reticent.kernel.risk import advantage
from reticent.samplers import FixedSize, Shuffled

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])


def masses(noise: float, rate: float, records: int, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """The density of sum_k Binomial(k) N(sign k, noise^2), by the definition."""
    k = np.arange(records + 1)
    return norm.pdf(x[:, None], sign * k, noise) @ binom.pmf(k, records, rate)


@pytest.mark.parametrize("case", [(1.0, 0.01, 2), (3.0, 1e-4, 2), (0.4, 0.3, 7), (10.0, 0.02, 60)], ids=str)
def test_thresholds_of_replacement_are_found_in_a_few_rounds(
    case: tuple[float, float, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding in a flat likelihood ratio kept bisecting: 40 rounds for all thresholds, where a few are enough."""
    pair, asked, lines = WholeUserGaussianPair(*case, True), [], WholeUserGaussianPair.lines
    sizes = np.geomspace(1e-12, 100.0, 2000)
    ratio = np.concatenate([-sizes[::-1], [0.0], sizes])
    assert pair._table  # once for all that is asked
    monkeypatch.setattr(WholeUserGaussianPair, "lines", lambda *a: asked.append(len(a[1])) or lines(*a))
    z = pair._antipodal_threshold(ratio)
    assert sum(asked) <= 2 * 5 * len(ratio)
    assert lines(pair, z, 0)[0] - lines(pair, -z, 0)[0] == pytest.approx(ratio, rel=4e-14, abs=4e-15)
    assert np.all(np.diff(z) >= 0.0)


def test_one_record_is_what_it_was() -> None:
    for relation in Neighbouring:
        plain, stated = DPSGD(1.1, 0.05, 30), DPSGD(1.1, 0.05, 30, records_per_user=1)
        assert stated.parts_under(relation) == plain.parts_under(relation)
    several = DPSGD(1.1, 0.05, 30, records_per_user=4)
    assert several.parts_under(ZERO) == several.parts_under(ADD)


@pytest.mark.parametrize("relation", [ADD, pytest.param(REPLACE, marks=pytest.mark.slow)])
def test_risk_grows_with_the_records_and_ends_at_a_shift(relation: Neighbouring) -> None:
    runs = [DPSGD(4.0, 0.1, 3, records_per_user=records) for records in (1, 2, 4)]
    seen = [compose(run, relation) for run in runs]
    for fewer, more in pairwise(seen):
        assert advantage(fewer.pessimistic) < advantage(more.optimistic)
    whole = compose(DPSGD(4.0, 1.0, 20, records_per_user=3), relation).pessimistic
    expected = GaussianTradeOff(3.0 * relation.sensitivity * np.sqrt(20.0) / 4.0)
    assert whole.delta(EPSILONS) == pytest.approx(expected.delta(EPSILONS), rel=1e-9, abs=0)


def test_the_relaxed_attacker_without_sampling_has_one_shift() -> None:
    curve = Relaxed(dimension=9).assess(DPSGD(8.0, 1.0, 4, records_per_user=3), ADD).curve
    expected = symmetrised(RelaxedGaussianTradeOff(4.0 * (3.0 / 8.0) ** 2, 9))
    assert curve.delta(EPSILONS) == pytest.approx(expected.delta(EPSILONS), rel=1e-9, abs=0)


def test_mu_is_that_of_every_record_in_every_step() -> None:
    assert mu_limits(DPSGD(4.0, 0.1, 25, records_per_user=3), ADD) == pytest.approx((3.75, 3.75))
    low, high = mu_limits(DPSGD(4.0, 0.1, 25, records_per_user=3), REPLACE)
    assert (low, high) == pytest.approx((3.75, 7.5))


def test_no_noise_shows_whoever_takes_part() -> None:
    seen = compose(DPSGD(0.0, 0.1, 1, records_per_user=3), ADD).pessimistic
    assert advantage(seen) == pytest.approx(1.0 - 0.9**3, rel=1e-9, abs=0)


def test_shuffled_epochs_count_every_record() -> None:
    run = DPSGD(5.0, 0.1, 20, sampler=Shuffled(), records_per_user=4)
    assert compose(run, ADD).pessimistic.delta(0.0) == pytest.approx(
        float(GaussianTradeOff(4.0 * np.sqrt(2.0) / 5.0).delta(0.0)), rel=1e-9
    )


def test_what_is_not_proven_is_refused_in_one_line() -> None:
    with pytest.raises(UnsupportedError, match="fixed size"):
        compose(DPSGD(1.0, 0.1, 5, sampler=FixedSize(), records_per_user=2), ADD)
    parts = Ledger((DPSGD(2.0, 0.1, 1, records_per_user=3), DPSGD(3.0, 0.1, 1, records_per_user=3)))
    for call in (
        lambda: MembershipGame().assess(DPSGD(1.0, 0.1, 1, batch_size=10, num_parameters=5, records_per_user=2)),
        *(lambda m=m: Membership().assess(parts, ADD, m) for m in (Method.PROVEN, Method.CLT, Method.CLOSED_FORM)),
    ):
        with pytest.raises(UnsupportedError, match="one record per person"):
            call()
    with pytest.raises(ParameterError, match="records_per_user"):
        DPSGD(1.0, 0.1, 1, records_per_user=0)
    with pytest.raises(ParameterError, match="the same in all parts"):
        Ledger((DPSGD(1.0, 0.1, 1, records_per_user=2), Gaussian(1.0)))


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_common_sign_by_quadrature(steps: int) -> None:
    x = np.linspace(-12.0, 12.0, 1201 if steps == 2 else 40_001)
    absent, up, down = norm.pdf(x, 0.0, 1.2), masses(1.2, 0.3, 3, x), masses(1.2, 0.3, 3, x, -1.0)
    if steps == 2:
        absent, up, down = (np.multiply.outer(law, law) for law in (absent, up, down))
    enclosed = unknown_sign(DPSGD(1.2, 0.3, steps, records_per_user=3), part=Part.ADDITION)
    cell = (x[1] - x[0]) ** steps
    for epsilon in (0.0, 0.5):
        true = cell * np.maximum(0.5 * (up + down) - np.exp(epsilon) * absent, 0.0).sum()
        assert enclosed.optimistic.delta(epsilon) - 1e-6 <= true <= enclosed.pessimistic.delta(epsilon) + 1e-6
        assert enclosed.pessimistic.delta(epsilon) == pytest.approx(true, rel=2e-3, abs=0)


def test_single_numbers_know_the_records() -> None:
    run = DPSGD(3.0, 0.1, 8, records_per_user=3)
    lower, upper = Composed(run, ADD).advantage()
    bracket = compose(run, ADD)
    assert (lower, upper) == pytest.approx(
        (advantage(bracket.optimistic), advantage(bracket.pessimistic)), rel=1e-6, abs=0
    )
    assert lower > 2.0 * Composed(DPSGD(3.0, 0.1, 8), ADD).advantage()[1]


def test_the_event_is_that_of_dp_accounting() -> None:
    event = to_dp_event(DPSGD(2.0, 0.25, 7, records_per_user=2))
    assert event.count == 7
    assert list(event.event.sensitivities) == [0.0, 1.0, 2.0]
    assert list(event.event.sampling_probs) == pytest.approx([0.5625, 0.375, 0.0625])


def test_a_ledger_protects_as_many_records_as_its_parts() -> None:
    """Against an unknown direction: shuffled parts of a ledger are one run of all their epochs, for all records."""
    epochs = {"sampler": Shuffled(10), "records_per_user": 3}
    parts = Ledger((DPSGD(5.0, 0.1, 10, **epochs), DPSGD(5.0, 0.1, 20, **epochs)))
    together, whole = (Relaxed().assess(run).curve for run in (parts, DPSGD(5.0, 0.1, 30, **epochs)))
    assert advantage(together) == pytest.approx(advantage(whole), rel=1e-12, abs=0)
