"""From facts to claims: what each fact of a run may be used for, and what no number may forget.

Each test here fails on a bug that the other tests of its area let pass (tests/mutants/table.py names them).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from reticent.adversaries import Attribute, MembershipGame, Relaxed
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.interop.dp_events import to_dp_event
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.mechanisms import MatrixMechanism
from reticent.mechanisms.mask_terms import worst_mask_term
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.samplers import FixedSize, Shuffled
from tests.conftest import some

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
NOISE, RATE, STEPS = 1.5, 0.05, 20
EPSILONS = np.array([0.0, 0.3, 1.0])


# --- events ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_an_exported_event_speaks_about_all_records_of_a_person(rate: float) -> None:
    """dp_accounting's number of the exported tree is that of the person, not of one record."""
    run = DPSGD(6.0, rate, 3, records_per_user=4)
    accountant = PLDAccountant(value_discretization_interval=5e-3)
    accountant.compose(to_dp_event(run))
    ours = epsilon_at_delta(compose(run, ADD).pessimistic, 1e-4)
    assert accountant.get_epsilon(1e-4) == pytest.approx(ours, rel=1e-2, abs=0)
    assert ours > 2.0 * epsilon_at_delta(compose(DPSGD(6.0, rate, 3), ADD).pessimistic, 1e-4)


# --- the membership game -----------------------------------------------------------------------------


def test_other_records_of_poisson_batches_add_less_than_their_second_moment() -> None:
    """One step by quadrature: N(0) and N(+-1) at the variance sigma^2 + n (1 - p)/K; without (1 - p) it is .38."""
    noise, rate, batch, k = 1.0, 0.5, 400.0, 650.0
    deviation = math.sqrt(noise**2 + batch * (1.0 - rate) / k)
    x = np.linspace(-15.0, 15.0, 60_001)
    one, other = ((1.0 - rate) * norm.pdf(x, 0.0, deviation) + rate * norm.pdf(x, s, deviation) for s in (-1.0, 1.0))
    expected = 0.5 * np.trapezoid(np.abs(one - other), x)
    found = MembershipGame(k).assess(DPSGD(noise, rate, 1, batch_size=int(batch)))
    assert found.measure(advantage).value == pytest.approx(expected, rel=1e-6, abs=0)
    assert found.claim is Claim.ESTIMATE


def test_a_spectrum_says_nothing_about_batches_of_random_size() -> None:
    run = DPSGD(1.0, 0.3, 1, batch_size=400, num_parameters=30)
    found = MembershipGame(GradientSpectrum(np.geomspace(1e-6, 0.3, 30))).assess(run)
    worst = WorstCase().assess(run, REPLACE)
    assert found.measure(advantage).value == worst.measure(advantage).value
    assert "does not describe Poisson batches" in found.notes[0]


# --- sensitivity records -----------------------------------------------------------------------------


def recorded(scope: Scope = Scope.WHOLE_DATA, budget: float | None = None, change: float = 0.01) -> SensitivityRecord:
    term = float(worst_mask_term(change, NOISE))
    return SensitivityRecord(STEPS, scope, STEPS * change**2, STEPS * term, term, None, NOISE, budget)


@pytest.mark.parametrize("budget", [None, 1.0])
@pytest.mark.parametrize("scope", list(Scope))
def test_only_a_budget_over_chosen_records_is_proven(scope: Scope, budget: float | None) -> None:
    """Whoever looks at the drawn batches only has not seen the record that was not drawn."""
    found = Attribute(recorded(scope, budget)).assess(DPSGD(NOISE, RATE, STEPS))
    proven = {Scope.WHOLE_DATA: Claim.BOUND, Scope.AUDIT_SET: Claim.CONDITIONAL}.get(scope, Claim.ESTIMATE)
    assert found.claim is (Claim.ESTIMATE if budget is None else proven)


@pytest.mark.parametrize("budget", [None, 1.0])
def test_a_record_of_shuffled_epochs_proves_nothing_beyond_the_worst_case(budget: float | None) -> None:
    """Sums of squares over all steps need a coin in each; the affinity, too."""
    run = DPSGD(NOISE, RATE, STEPS, sampler=Shuffled())
    found, worst = Attribute(recorded(budget=budget)).assess(run).curve, compose(run, REPLACE).pessimistic
    assert found.delta(EPSILONS) == pytest.approx(worst.delta(EPSILONS), rel=1e-6, abs=0)


def test_a_budget_counts_in_full_and_nothing_that_was_measured() -> None:
    """What was used of a budget, and the largest mask term, depend on the data: the number is that of the budget."""
    run = DPSGD(NOISE, RATE, STEPS)
    small, large = (Attribute(recorded(budget=b)).assess(run).measure(advantage).value for b in (0.01, 0.04))
    assert Attribute(recorded()).assess(run).measure(advantage).value < small < large
    assert large == pytest.approx(2.0 * small, rel=0.02, abs=0)
    measured = [(1e-3, 1e-4), (1e-3, 1e-3), (0.9, 0.9)]  # sum of mask terms, and the largest
    records = [SensitivityRecord(STEPS, Scope.WHOLE_DATA, 1e-3, *terms, None, NOISE, 0.9) for terms in measured]
    one, other, whole = (Attribute(record).assess(run).curve.delta(EPSILONS) for record in records)
    assert one == pytest.approx(other, rel=1e-12, abs=0)
    assert np.all(one >= whole * (1.0 - 1e-9))


# --- one field is never worth more than the record ---------------------------------------------------


@pytest.mark.parametrize("run", some([
    DPSGD(0.05, 0.2, 3), DPSGD(0.2, 0.5, 40), DPSGD(5.0, 0.001, 800, sampler=FixedSize()),
    Ledger((DPSGD(0.3, 0.1, 5), DPSGD(0.5, 0.2, 7))),
], 0, 1, 2), ids=repr)  # fmt: skip
def test_the_largest_change_of_a_field_is_the_replacement_of_a_record(run) -> None:
    """Chords of the envelope lay above the worst case: epsilon 135.19 for 132.06."""
    one, less, whole = (*(Attribute(c).assess(run) for c in (2.0, 1.99)), WorstCase().assess(run, REPLACE))
    assert one.mu().value <= whole.mu().value * (1.0 + 1e-9)
    for found, delta in ((one, 1e-9), (one, 1e-5), (one, 0.1), (less, 1e-5)):
        assert epsilon_at_delta(found.curve, delta) <= epsilon_at_delta(whole.curve, delta) * (1.0 + 3e-6)
    fprs = np.array([1e-6, 1e-3, 0.3])
    assert np.all(one.curve.power(fprs) <= whole.curve.power(fprs) * (1.0 + 1e-9))


# --- ledgers, persons, patterns ----------------------------------------------------------------------


def test_every_part_of_a_ledger_counts_for_a_field() -> None:
    """A quiet part first: the mask of the first part says nothing about the second."""
    quiet, loud = DPSGD(100.0, 0.01, 1), DPSGD(0.5, 0.5, 20)
    both, alone = (Attribute(0.3).assess(one).measure(advantage) for one in (Ledger((quiet, loud)), loud))
    assert 0.0 < alone.lower <= both.value <= both.upper <= 1.0  # two ends that contradict each other are infinite


@pytest.mark.parametrize("who", [Attribute(0.3), MembershipGame(50.0)], ids=lambda who: who.name)
def test_several_records_of_a_person_are_refused_by_name(who) -> None:
    run = DPSGD(1.0, 0.1, 5, batch_size=10, records_per_user=3)
    for release in (run, Ledger((run, run))):
        with pytest.raises(UnsupportedError, match="one record per person only"):
            who.assess(release, REPLACE)


@pytest.mark.parametrize("neighbouring", [ADD, REPLACE], ids=lambda x: x.value)
def test_runs_that_differ_are_each_counted(neighbouring: Neighbouring) -> None:
    """A quiet run first, then a loud one: neither the first alone, nor addition in place of replacement."""
    quiet, loud = DPSGD(20.0, 0.2, 2), DPSGD(1.0, 0.4, 2)
    both = Relaxed().assess(Ledger((quiet, loud)), neighbouring).measure(advantage)
    assert both.value >= Relaxed().assess(loud, ADD).measure(advantage).lower
    if neighbouring is REPLACE:
        worst = WorstCase().assess(Ledger((quiet, loud)), REPLACE).measure(advantage)
        assert both.value == pytest.approx(worst.value, rel=1e-9, abs=0)


def test_the_sensitivity_that_is_only_bounded_is_the_larger_one() -> None:
    """Columns with inner products of both signs: some pattern attains less than what is proven, which counts."""
    matrix = MatrixMechanism(4.0, 4, "[[1],[-0.9,1],[0.8,-0.7,1],[0.3,0.6,-0.9,1]]", participations=3)
    size = matrix.sensitivity()
    assert size.attained < size.proven
    for who in (WorstCase(), Relaxed()):
        found = who.assess(matrix).measure(advantage)
        proven = who.assess(Gaussian(4.0 / size.proven)).measure(advantage)
        assert found.upper == pytest.approx(proven.value, rel=1e-9, abs=0)
        assert found.lower < found.upper


@pytest.mark.parametrize(("neighbouring", "size"), [(ADD, 1.0), (REPLACE, 2.0), (ZERO, 1.0)])
def test_full_batches_of_a_person_move_by_all_records_of_both_persons(neighbouring: Neighbouring, size: float) -> None:
    """Three releases of four records at noise 8: the mu of one Gaussian release, exactly."""
    found = WorstCase().assess(DPSGD(8.0, 1.0, 3, records_per_user=4), neighbouring).mu()
    assert found.value == pytest.approx(size * 4.0 * math.sqrt(3.0) / 8.0, rel=1e-12, abs=0)
