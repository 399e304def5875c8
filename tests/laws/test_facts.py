"""Laws of facts, one at a time, over the list; tests/facts asks what several do together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.facts import OTHER_BATCHES, all_facts
from reticent.facts.base import Fact, Seen
from reticent.facts.planned_steps import PlannedSteps
from reticent.testing import laws
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson

STATED = {"mixes-records": ("1",), "planned-steps": PlannedSteps(steps=40), "checkpoints": ("ab" * 32,)}
"""Facts that state more than that they were found."""


@pytest.mark.parametrize("ledger", [poisson, make_ledger])
@pytest.mark.parametrize("one", [one for one in all_facts().values() if one.shown is None], ids=repr)
def test_laws(one: Fact, ledger) -> None:
    laws.fact(one, ledger(), STATED.get(one.key, Seen.FOUND))


def test_what_states_more_has_its_value_here() -> None:
    assert {key for key, one in all_facts().items() if one.stated is not Seen} == STATED.keys()


@pytest.mark.parametrize("wrong", [replace(OTHER_BATCHES, effect=Fact("x").effect), replace(OTHER_BATCHES, key="y")])
def test_a_fact_that_does_not_do_as_it_says_is_seen(wrong: Fact) -> None:
    with pytest.raises(AssertionError):
        laws.fact(wrong, poisson())
