"""A mixture of polygons is a polygon: read as one, and equal to the search for a common threshold."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accountants import compose
from reticent.curves import GaussianTradeOff, Mixture, TradeOff, from_advantage
from reticent.curves.base import Reversed
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.risk import mu_above

LOG_ALPHAS = np.concatenate([-np.geomspace(1e-12, 700.0, 60), [0.0, -np.inf]])


@pytest.mark.parametrize("share", [0.5, 1e-6])
@pytest.mark.parametrize("other", [from_advantage(0.3), from_advantage(0.0), from_advantage(1.0)], ids=str)
def test_a_mixture_of_polygons_is_the_polygon_of_all_edges(other: TradeOff, share: float) -> None:
    composed = compose(DPSGD(4.0, 0.14, 284), Neighbouring.ADD_REMOVE).pessimistic
    mixture = Mixture([composed, other], [1.0 - share, share])
    assert mixture._polygon is not None
    searched = Reversed(Reversed(mixture))  # by its errors alone
    for of in ("log_beta", "log_power"):
        read, wanted = (np.exp(getattr(curve, of)(LOG_ALPHAS)) for curve in (mixture, searched))
        assert read == pytest.approx(wanted, rel=1e-12, abs=0), of


def test_a_mixture_with_a_smooth_curve_is_searched() -> None:
    assert Mixture([GaussianTradeOff(1.0), from_advantage(0.3)], [0.5, 0.5])._polygon is None


def test_mu_above_is_remembered_for_the_curve_itself_and_for_its_floor() -> None:
    one, other = from_advantage(0.2), from_advantage(0.4)
    assert mu_above(one) == mu_above(one)
    assert mu_above(other) > mu_above(one) > mu_above(one, 0.1)
