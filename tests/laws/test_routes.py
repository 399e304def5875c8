"""Laws of routes, over each of the list: composed steps against losses that are cut into cells."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accountants.split import Split
from reticent.accountants.transform import Transform
from reticent.kernel.accountants.bounds import Bounds
from reticent.kernel.accountants.lattice import FinerLattice, Lattice
from reticent.kernel.accountants.route import ROUTES, Answer, Route
from reticent.kernel.accountants.steps import Step
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs import (
    AntipodalGaussianPair,
    GaussianPair,
    Pair,
    SymmetrisedGaussianPair,
    WholeUserGaussianPair,
)
from reticent.pairs import AllocatedGaussianPair, LaplacePair, MixedPair
from reticent.testing import laws
from tests.conftest import some
from tests.laws.experiments import truth_of

COARSE = {Lattice: Lattice(1e-5, 2**14), FinerLattice: FinerLattice(1e-6, 2**15), Split: Split(1e-8, 2**14)}
EPSILONS = (-3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 30.0, 60.0)
CASES: list[list[tuple[Pair, int]]] = [
    [(GaussianPair(1.0, 0.05, 1.0), 60)],
    [(AntipodalGaussianPair(1.0, 0.05), 50)],
    [(GaussianPair(1.0, 0.02, 1.0), 30), (GaussianPair(1.5, 0.1, 1.0), 5), (GaussianPair(3.0, 1.0, 1.0), 1)],
    [(LaplacePair(1.5, 0.3, 1.0), 6)],
    [(WholeUserGaussianPair(1.5, 0.2, 3), 4)],
    [(AllocatedGaussianPair(1.5, 2), 3)],
    [(MixedPair(GaussianPair(1.0, 0.1, 1.0), AntipodalGaussianPair(0.5, 0.2), 0.1), 8)],
    [(AntipodalGaussianPair(0.17, 0.5), 2)],
    [(GaussianPair(1.0, 0.1, 1.0), 1)],
    [(AntipodalGaussianPair(0.18, 0.00023), 16)],
]
RARE: list[list[tuple[Pair, int]]] = [
    [(GaussianPair(0.5, 0.002, 1.0), 60)],
    [(AntipodalGaussianPair(0.4, 1e-4), 100)],
    [(GaussianPair(2.0, 1e-3, 1.0), 1000), (LaplacePair(2.0, 1.0, 1.0), 1)],
]
"""Transforms of rare or of cut losses do not decay: lattices alone are close."""


def at(route: type[Route]) -> Route:
    return COARSE.get(route) or route()


@pytest.mark.parametrize("case", some(CASES + RARE, 1, 2, 3, 4, 5, 6, 7, 8), ids=str)
def test_laws(case: list[tuple[Pair, int]]) -> None:
    """Few of them serve all steps; what serves none of its own is a lattice."""
    steps, truth, answered = [Step(*one) for one in case], truth_of(case, EPSILONS), []
    if case in RARE:  # a thousand convolutions of the oracle round
        truth = {epsilon: (low - 1e-10, high + 1e-10) for epsilon, (low, high) in truth.items()}
    with np.errstate(all="ignore"):
        for kind in ROUTES.values():
            one = at(kind)
            try:
                laws.route(one, steps, truth, [other for other in answered if other.close])
            except AssertionError:
                if one.serves(steps):
                    raise
            except NumericalError:
                continue
            else:
                answered.append(one)
    assert {type(one) for one in answered} >= {Bounds, Lattice}
    needed = Transform().serves(steps) and steps[0].count >= 20 and case not in RARE
    assert not needed or Transform in {type(one) for one in answered}


class Forgetful(Lattice):
    """Counts a step of each kind."""

    def answer(self, steps) -> Answer:
        return Lattice.answer(self, [Step(step.pair, 1) for step in steps])


class Turned(Lattice):
    """The other direction."""

    def answer(self, steps) -> Answer:
        above, below, _ = Lattice.answer(self, steps)
        return Answer(tuple(c.reversed for c in above), tuple(c.reversed for c in below))


@pytest.mark.parametrize("wrong", [Forgetful, Turned])
def test_a_route_that_breaks_a_law_is_seen(wrong: type[Lattice]) -> None:
    case = CASES[0]
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        laws.route(wrong(1e-5, 2**14), [Step(*one) for one in case], truth_of(case, EPSILONS))


def test_a_symmetrised_step_is_the_worse_of_both_directions() -> None:
    """Of one step; nobody composes it by a transform."""
    case = [(GaussianPair(1.5, 0.25, 1.0), 1)]
    both = truth_of(case, (-0.3, 0.0, 0.3))
    worse = max(both[-0.3][0], both[0.3][0]), max(both[-0.3][1], both[0.3][1])
    step = Step(SymmetrisedGaussianPair(1.5, 0.25, 1.0), 1)
    with np.errstate(all="ignore"):
        laws.route(at(Lattice), [step], {-0.3: worse, 0.0: both[0.0], 0.3: worse})
    assert not Transform().serves([step])


def test_the_oracle_knows_the_gaussian() -> None:
    """One release; both its ends are near the truth, which lies between them."""
    truth = truth_of([(GaussianPair(1.0, 1.0, 1.0), 1)], [0.0, 0.5, 2.0])
    for epsilon, (least, most) in truth.items():
        exact = float(GaussianTradeOff(1.0).delta(epsilon))
        assert least - 1e-10 <= exact <= most + 1e-10
        assert most - exact < 1e-5
        assert exact - least < 4e-3
