"""Trade-off curves, their algebra, polygons and enclosures: one file per curve. No releases, no attackers here."""

from reticent.curves import ncx2
from reticent.curves.algebra import Mixture, Subsampled, subsampled
from reticent.curves.base import LogErrors, Reversed, TradeOff
from reticent.curves.gaussian import GaussianTradeOff
from reticent.curves.laplace import LaplaceTradeOff, RelaxedLaplaceTradeOff
from reticent.curves.membership_step import MembershipStepTradeOff
from reticent.curves.piecewise import (
    PiecewiseLinearTradeOff,
    PolygonTradeOff,
    SymmetricPolygon,
    from_advantage,
    no_privacy,
)
from reticent.curves.profile import ProfileTradeOff
from reticent.curves.relaxed_gaussian import RelaxedGaussianTradeOff
from reticent.curves.worst import Symmetrised, Worst, symmetrised

__all__ = [
    "GaussianTradeOff",
    "LaplaceTradeOff",
    "LogErrors",
    "MembershipStepTradeOff",
    "Mixture",
    "PiecewiseLinearTradeOff",
    "PolygonTradeOff",
    "ProfileTradeOff",
    "RelaxedGaussianTradeOff",
    "RelaxedLaplaceTradeOff",
    "Reversed",
    "Subsampled",
    "SymmetricPolygon",
    "Symmetrised",
    "TradeOff",
    "Worst",
    "from_advantage",
    "ncx2",
    "no_privacy",
    "subsampled",
    "symmetrised",
]
