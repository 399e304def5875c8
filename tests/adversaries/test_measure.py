"""Reading both ends of an enclosure: which is which, and what happens where they contradict each other."""

import math

import pytest

from reticent.calibration import BayesSecurity
from reticent.kernel.adversaries import Assessment, Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.messages import said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Proof
from reticent.kernel.risk import advantage, bayes_security, delta_at_epsilon


def assessment(optimistic: float, pessimistic: float) -> Assessment:
    truth = Enclosure(pessimistic=GaussianTradeOff(pessimistic), optimistic=GaussianTradeOff(optimistic), notes=("n",))
    proof = Proof(truth, theorems=("RETICENT:public-coin",), notes=("m", "n"))
    return Assessment(WorstCase(), Neighbouring.ADD_REMOVE, Method.EXACT, (proof,))


@pytest.mark.parametrize("number", [advantage, bayes_security, BayesSecurity(0.5).measure])
def test_ends_are_in_order_whichever_way_the_number_goes(number) -> None:
    read = assessment(0.9, 1.0).measure(number)
    assert read.lower < read.upper
    assert read.value == (read.upper if number is advantage else read.lower)


@pytest.mark.parametrize("number", [advantage, bayes_security])
def test_ends_that_contradict_each_other_are_not_sorted(number) -> None:
    """Nothing is enclosed then, and a proof claims the larger risk of both."""
    read = assessment(1.0, 0.9).measure(number)
    assert (read.lower, read.upper) == (-math.inf, math.inf)
    assert read.value == pytest.approx(number(GaussianTradeOff(1.0)), rel=1e-12, abs=0)


@pytest.mark.parametrize("number", [advantage, bayes_security])
def test_ends_that_differ_by_rounding_are_one_number(number) -> None:
    read = assessment(1.0 + 1e-12, 1.0).measure(number)
    assert read.lower <= read.value <= read.upper
    assert read.upper - read.lower <= 1e-11
    near = assessment(0.9 + 1e-13, 0.9).measure(number)
    assert near.lower <= near.value <= near.upper


def test_what_the_enclosure_has_to_say_is_said_once() -> None:
    assert assessment(0.9, 1.0).notes == (said("m"), said("n"))


def test_a_delta_below_every_number_is_above_its_lower_end() -> None:
    """The smallest number stands for it from above; from below that would promise more than is proven."""
    read = assessment(1.0, 1.0).measure(delta_at_epsilon, 40.0)
    assert read.lower == 0.0
    assert 0.0 < read.value == read.upper < 1e-300
