"""Trade-off curves and their algebra: the mathematics, one file per curve."""

from reticent.tradeoff.algebra import Mixture, Subsampled, Worst, symmetrised
from reticent.tradeoff.base import LogErrors, Reversed, TradeOff
from reticent.tradeoff.gaussian import GaussianTradeOff

__all__ = [
    "GaussianTradeOff",
    "LogErrors",
    "Mixture",
    "Reversed",
    "Subsampled",
    "TradeOff",
    "Worst",
    "symmetrised",
]
