"""What other rooms ask of an attacker's class: each trait says what its assessment says."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.adversaries.final_model import FinalModel
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.kernel.adversaries import ADVERSARIES, Adversary, Method, WorstCase
from reticent.kernel.adversaries.base import standard_adversaries
from reticent.kernel.curves import GaussianTradeOff, from_advantage
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.registry import parameters_of
from reticent.mechanisms.gradients import Gradients

RUN = DPSGD(1.1, 0.02, 300, num_parameters=10, batch_size=20, dataset_size=1000)


def test_other_names_mean_one_attacker_each() -> None:
    names = [name for kind in ADVERSARIES.values() for name in kind.also]
    assert len({*names, *ADVERSARIES}) == len(names) + len(ADVERSARIES)


def test_what_is_named_is_there() -> None:
    for kind in ADVERSARIES.values():
        assert kind.beside in (None, *ADVERSARIES)
        assert kind.needs in (None, *(p.name for p in parameters_of(kind)))
    assert [kind for kind in ADVERSARIES.values() if kind.strongest] == [WorstCase]


def test_what_is_known_of_a_run_makes_its_attackers() -> None:
    usual = standard_adversaries()
    assert standard_adversaries(contraction=None, gradient_change=None) == usual
    assert set(standard_adversaries(contraction=0.9)) - {*usual} == {FinalModel(0.9)}
    assert FinalModel.knowing(contraction=0.9, gradient_change=1.0) == FinalModel(0.9)
    assert Relaxed.knowing(contraction=0.9) == Relaxed()


@pytest.mark.parametrize("who", standard_adversaries(), ids=lambda who: who.name)
def test_whose_curve_and_mu_are_those_of_the_strongest(who: Adversary) -> None:
    found, worst = who.assess(RUN, who.relation, Method.EXACT), WorstCase().assess(RUN, who.relation)
    assert who.is_worst_by(Method.EXACT) <= (found.truth is worst.truth)
    assert who.keeps_mu <= (found.mu_limits == worst.mu_limits)


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("who", standard_adversaries(), ids=lambda who: who.name)
def test_a_closed_form_is_what_is_claimed_by_its_method(who: Adversary, method: Method) -> None:
    stated = who.stated(RUN, who.relation, method)
    if stated is not None:
        claimed = who.assess(RUN, who.relation, method).formula
        assert claimed is not None
        curve = from_advantage(stated.advantage) if stated.mu is None else GaussianTradeOff(stated.mu)
        assert claimed.curve.beta(0.1) == pytest.approx(curve.beta(0.1), rel=1e-12, abs=0)


def test_who_lacks_a_direction_that_stays() -> None:
    """Gradients that react, and a law of directions, have no estimate."""
    assert Relaxed(7).hidden == Relaxed(7, gradients=Gradients.FIXED).hidden == (7, 1.0)
    assert Mixed(0.25).hidden == (None, 0.25)
    open_ones = Relaxed(gradients=Gradients.ONE_DIRECTION), Mixed(gradients=Gradients.ANY), WorstCase()
    assert [who.hidden for who in (*open_ones, Relaxed(directions=DirectionLaw(0.8 * np.eye(8) + 0.2)))] == [None] * 4
