"""Laws of dominating pairs, over one of each kind at least; and their curves against densities that are written out."""

from __future__ import annotations

import numpy as np
import pytest

import reticent.kernel.pairs
import reticent.pairs
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.pairs import CurvePair, GaussianPair, Pair
from reticent.testing import laws
from tests.laws.experiments import experiment_of
from tests.laws.leaves import PAIRS

EPSILONS = np.array([0.0, 0.2, 0.8, 2.0])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda one: type(one).__name__)
def test_laws(pair: Pair) -> None:
    laws.pair(pair)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda one: type(one).__name__)
def test_the_curve_is_that_of_the_densities(pair: Pair) -> None:
    """Both directions; of a symmetrised pair the worse one."""
    try:
        truth = experiment_of(pair)
    except NotImplementedError:
        pytest.skip("it has no curve, or its law is written out in a test of its own")
    for way, law in ((pair.curve, truth), (pair.curve.reversed, truth.turned)):
        seen = np.array([law.worse(e) if "Symmetrised" in repr(pair) else law.delta(e) for e in EPSILONS])
        assert np.all(seen <= way.delta(EPSILONS) * (1.0 + 1e-4) + 1e-9)
        assert "Symmetrised" in repr(pair) or seen == pytest.approx(way.delta(EPSILONS), rel=1e-3, abs=1e-8)


def test_every_leaf_is_asked() -> None:
    rooms = (reticent.kernel.pairs, reticent.pairs)
    kinds = {getattr(room, name) for room in rooms for name in room.__all__}
    pairs = {one for one in kinds if isinstance(one, type) and issubclass(one, Pair)}
    assert {type(one) for one in PAIRS} == {one for one in pairs if one.__name__ not in ("Pair", "Drawn")}


class Louder(GaussianPair):
    """Says of itself more than it shows."""

    unsampled_mu = 0.5


@pytest.mark.parametrize(
    "wrong", [Louder(1.0, 1.0, 1.0), CurvePair(GaussianTradeOff(1.0), (0.5, 0.5))], ids=["mu", "largest losses"]
)
def test_a_pair_that_breaks_a_law_is_seen(wrong: Pair) -> None:
    with pytest.raises(AssertionError):
        laws.pair(wrong)
