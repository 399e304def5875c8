"""Laws of attackers, over the list: at most the worst case, and no more where there is less to see."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

import reticent as rt
from reticent.adversaries import Mixed, Relaxed
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.adversaries.base import ADVERSARIES, Assessment, Method
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof
from reticent.mechanisms.gradients import Gradients
from reticent.samplers import Shuffled
from reticent.testing import laws
from tests.conftest import some
from tests.laws.leaves import RELEASES, RUNS, attackers

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
SIZES = {"batch_size": 10, "dataset_size": 100, "num_parameters": 50}
MORE: list[Adversary] = [
    Relaxed(dimension=7),
    Relaxed(7, gradients=Gradients.ONE_DIRECTION),
    Relaxed(7, gradients=Gradients.LINEAR_HEAD, known_share=0.1),
    Mixed(0.5, dimension=7),
]
"""Of kinds that answer in several ways."""
ONES = [*attackers(), *MORE]
ALIKE = ("lambda-cgd=0.75", "banded=2:1x6,0.5x2")
"""Strategies of matrices in which attackers see what they see in others: noise once, or more than once."""
ASKED: list[Mechanism] = [
    *(one for one in RELEASES if (one.coordinates or 7) >= 7 and getattr(one, "strategy", "") not in ALIKE),
    *RUNS,
    DPSGD(2.0, 1.0, 5, **SIZES),
    DPSGD(4.0, 0.1, 20, records_per_user=3, **SIZES),
    DPSGD(1.0, 0.1, 1, **SIZES),
]


def answered(one: Adversary, mechanism: Mechanism, relation: Neighbouring | None = None) -> bool:
    with suppress(UnsupportedError, ParameterError):
        laws.attacker(one, mechanism, relation)
        return True
    return False


@pytest.mark.parametrize("mechanism", some(ASKED, *range(len(ASKED))), ids=lambda one: type(one).__name__)
def test_laws(mechanism: Mechanism) -> None:
    assert [one for one in (attackers() if mechanism in RUNS else ONES) if answered(one, mechanism)]


@pytest.mark.parametrize("relation", some([REPLACE, ZERO], 0))
@pytest.mark.parametrize("mechanism", [ASKED[0], ASKED[3], DPSGD(2.0, 1.0, 5, **SIZES)], ids=repr)
def test_laws_of_other_relations(mechanism: Mechanism, relation: Neighbouring) -> None:
    assert answered(WorstCase(), mechanism, relation)
    for one in ONES:
        answered(one, mechanism, relation)


@pytest.mark.parametrize("one", ONES, ids=repr)
def test_whoever_is_listed_answers(one: Adversary) -> None:
    """And says what it knows, in half a sentence."""
    assert answered(one, DPSGD(4.0, 1.0, 5, **SIZES))
    for text in map(str, (one.knows, one.infers)):
        assert len(text) > 10
        assert not text.endswith(".")
    assert {"Claim:", "Knows:"} <= {*(type(one).__doc__ or "").split()}


def test_a_table_tells_attackers_of_other_parameters_apart() -> None:
    """Two certificates are compared attacker by attacker, by these names."""
    asked = [*ONES, Mixed(0.3, dimension=7), Relaxed(7, gradients=Gradients.LINEAR_HEAD, known_share=0.2)]
    names = [one.label for one in asked]
    assert len(set(names)) == len(set(map(repr, asked)))
    assert max(map(len, names)) < 60


LOUD = [DPSGD(3.0, 0.1, 20, **SIZES), DPSGD(3.0, 1.0, 5, **SIZES), DPSGD(3.0, 0.1, 20, sampler=Shuffled(10), **SIZES)]
LESS = [lambda run: {"noise_multiplier": 3.5}, lambda run: {"steps": run.steps // 2}]


@pytest.mark.parametrize("louder", LOUD, ids=repr)
@pytest.mark.parametrize("one", [one for one in ONES if type(one).name != "norm-only"], ids=repr)
def test_more_noise_a_smaller_rate_and_fewer_steps_never_raise_risk(one: Adversary, louder: DPSGD) -> None:
    seldom = [lambda run: {"sample_rate": 0.05, "batch_size": 5}] if louder is LOUD[0] else []
    for less in [*LESS, *seldom]:
        with suppress(UnsupportedError):
            laws.monotone(one, louder, replace(louder, **less(louder)))


def test_every_leaf_is_asked() -> None:
    assert {type(one) for one in ONES} == set(ADVERSARIES.values())


@dataclass(frozen=True)
class Boaster(Relaxed):
    """Claims a bound above the worst case."""

    def assess(self, mechanism, neighbouring=ADD, method=Method.EXACT) -> Assessment:
        proof = Proof(Enclosure.exact(GaussianTradeOff(9.0)), theorems=("DONG2022:Definition 2.3",))
        return Assessment(self, neighbouring, method, (proof,))


def test_an_attacker_that_breaks_a_law_is_seen() -> None:
    with pytest.raises(AssertionError):
        laws.attacker(Boaster(), rt.Gaussian(2.0))
    with pytest.raises(AssertionError):
        laws.monotone(WorstCase(), rt.Gaussian(2.0), rt.Gaussian(1.0))
