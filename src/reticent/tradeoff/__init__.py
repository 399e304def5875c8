"""Trade-off curves and their algebra: the mathematics, one file per curve."""

from reticent.tradeoff import ncx2, published
from reticent.tradeoff.algebra import Mixture, Subsampled
from reticent.tradeoff.base import LogErrors, Reversed, TradeOff
from reticent.tradeoff.gaussian import GaussianTradeOff
from reticent.tradeoff.laplace import LaplaceTradeOff, RelaxedLaplaceTradeOff
from reticent.tradeoff.membership_step import MembershipStepTradeOff
from reticent.tradeoff.piecewise import PiecewiseLinearTradeOff, PolygonTradeOff, from_advantage, no_privacy
from reticent.tradeoff.profile import ProfileTradeOff
from reticent.tradeoff.relaxed_gaussian import RelaxedGaussianTradeOff
from reticent.tradeoff.worst import Symmetrised, Worst, symmetrised

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
    "Symmetrised",
    "TradeOff",
    "Worst",
    "from_advantage",
    "ncx2",
    "no_privacy",
    "published",
    "symmetrised",
]
