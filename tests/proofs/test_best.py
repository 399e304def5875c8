"""One answer for each set of conditions: upper ends are intersected where the conditions of both hold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.adversaries.final_model import FinalModel
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff, from_advantage
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim, Proof, Status, best, condition, without_repeats
from reticent.kernel.risk import advantage
from reticent.mechanisms.gradients import Gradients

EPSILONS = np.array([0.0, 0.3, 1.0, 3.0])


def proof(shift: float, *needs: str, lower: float = 0.0, key: str = "RETICENT:public-coin", **more) -> Proof:
    enclosure = Enclosure(pessimistic=GaussianTradeOff(shift), optimistic=GaussianTradeOff(lower))
    return Proof(enclosure, theorems=(key,), conditions=tuple(map(condition, needs)), **more)


def deltas(found: Proof) -> np.ndarray:
    return found.enclosure.pessimistic.delta(EPSILONS)


def test_each_set_of_conditions_keeps_one_answer_and_the_most_conditions_come_first() -> None:
    found = best([proof(1.0), proof(0.5, "fixed-length"), proof(0.7, "same-features")])
    assert [one.needs for one in found] == [{"fixed-length"}, {"same-features"}, set()]
    for one, mu in zip(found, (0.5, 0.7, 1.0), strict=True):
        assert deltas(one) == pytest.approx(GaussianTradeOff(mu).delta(EPSILONS), rel=1e-12, abs=0)


def test_a_proof_with_fewer_conditions_counts_under_more_and_never_the_other_way_round() -> None:
    conditional, free = best([proof(1.0, "fixed-length"), proof(0.5)])
    assert deltas(conditional) == pytest.approx(deltas(free), rel=1e-12, abs=0)
    assert conditional.needs == {"fixed-length"}
    assert free.needs == set()
    (_, unconditional) = best([proof(0.5, "fixed-length"), proof(1.0)])
    assert deltas(unconditional) == pytest.approx(GaussianTradeOff(1.0).delta(EPSILONS), rel=1e-12, abs=0)


def test_what_shows_no_more_under_more_conditions_is_said_under_fewer() -> None:
    """The relaxed attacker repeated the worst case's numbers, and called them proven only if a condition holds."""
    free = proof(0.5)
    (only,) = without_repeats(best([proof(0.9, "fixed-length").saying("a note"), free]))
    assert only == replace(free, notes=("a note",))
    for gain in (0.4999, 0.2):
        shown = best([proof(gain, "fixed-length"), free])
        assert without_repeats(shown) == shown
    apart = best([proof(0.9, "fixed-length"), proof(0.9, "same-features")])
    assert without_repeats(apart) == apart


@pytest.mark.parametrize("neighbouring", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
@pytest.mark.parametrize("attacker", [Relaxed, Mixed])
def test_an_attacker_who_gains_nothing_is_as_sure_as_the_worst_case(attacker, neighbouring) -> None:
    """Five records of a person, a linear model: on a line the unknown direction takes nothing off."""
    run = DPSGD(4.0, 0.125, 60, records_per_user=5)
    found = attacker(gradients=Gradients.ONE_DIRECTION).assess(run, neighbouring)
    worst = WorstCase().assess(run, neighbouring)
    assert found.measure(advantage).value == pytest.approx(worst.measure(advantage).value, rel=1e-9, abs=0)
    assert found.claim is worst.claim is Claim.BOUND
    wide = attacker(dimension=30, gradients=Gradients.ONE_DIRECTION).assess(run, Neighbouring.ADD_REMOVE)
    assert wide.claim is Claim.CONDITIONAL


def test_a_last_model_that_shows_all_needs_no_condition() -> None:
    """Updates that contract by 1 hide nothing: the number of the worst case, called proven if a condition holds."""
    run = DPSGD(4.0, 1.0, 10)
    assert FinalModel(contraction=1.0).assess(run).claim is Claim.BOUND
    assert FinalModel(contraction=0.9).assess(run).claim is Claim.CONDITIONAL


def from_above(mu: float) -> Proof:
    return Proof(Enclosure.from_above(GaussianTradeOff(mu)), theorems=("RETICENT:chain",), mu=(0.0, mu))


def test_two_proofs_under_one_set_obey_the_smaller_bound_at_every_threshold() -> None:
    (met,) = best([proof(0.9, mu=(0.2, 2.0)), from_above(1.0)])
    assert met.theorems == ("RETICENT:public-coin",)  # the other adds nothing
    (less,) = best([proof(1.0, mu=(0.2, 2.0)), from_above(0.8)])
    assert less.theorems == ("RETICENT:public-coin", "RETICENT:chain")
    assert less.mu == (0.2, 0.8)
    assert deltas(less) == pytest.approx(GaussianTradeOff(0.8).delta(EPSILONS), rel=1e-12, abs=0)


def test_curves_that_cross_are_both_obeyed() -> None:
    flat = Proof(Enclosure.from_above(from_advantage(0.2)), theorems=("RETICENT:hellinger-bracket",))
    (met,) = best([proof(1.0), flat])
    smaller = np.minimum(GaussianTradeOff(1.0).delta(EPSILONS), from_advantage(0.2).delta(EPSILONS))
    assert np.all(deltas(met) <= smaller * (1.0 + 3e-3))  # chords between thresholds
    assert deltas(met)[0] == pytest.approx(0.2, rel=1e-9, abs=0)


def test_the_lower_end_of_a_stronger_attacker_is_none_of_a_weaker_one() -> None:
    strong = proof(1.0, lower=0.99, mu=(1.0, 1.0)).from_above()
    assert strong.enclosure.optimistic.delta(0.0) == 0.0
    assert strong.mu == (0.0, 1.0)
    (met,) = best([proof(0.5), strong])
    assert met.enclosure.optimistic.delta(0.0) == 0.0


def test_two_enclosures_that_contradict_each_other_claim_the_larger_risk_and_say_so() -> None:
    (met,) = best([proof(1.0, lower=0.9), proof(0.5)])
    assert met.enclosure.pessimistic.delta(0.0) >= GaussianTradeOff(0.9).delta(0.0) * (1.0 - 1e-9)
    assert any("contradicted" in note for note in met.enclosure.notes)


def test_what_is_vouched_for_changes_the_status_and_keeps_the_rest() -> None:
    found = proof(0.5, "fixed-length", notes=("n",)).vouched({"fixed-length": Status.CHECKED})
    assert [(one.key, one.status) for one in found.conditions] == [("fixed-length", Status.CHECKED)]
    assert found.notes == ("n",)
    assert found.mu == (0.0, math.inf)


def test_a_theorem_that_nobody_listed_cannot_be_cited() -> None:
    with pytest.raises(ParameterError, match="theorem"):
        proof(1.0, key="RETICENT:unheard-of")
