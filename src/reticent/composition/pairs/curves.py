"""The curve of a dominating pair, on thresholds: what every route but the transform composes."""

from __future__ import annotations

from functools import singledispatch

from reticent.mechanism.pairs import Pair
from reticent.tradeoff import Subsampled, TradeOff


@singledispatch
def curve_of(pair: Pair) -> TradeOff:
    """``pair`` as a curve, H0 = absent. One file of this package registers each kind of pair.

    Raises:
        TypeError: no file knows this kind.
    """
    raise TypeError(pair)


def sampled(curve: TradeOff, sample_rate: float) -> TradeOff:
    """``curve`` seen with probability ``sample_rate``."""
    return curve if sample_rate == 1.0 else Subsampled(curve, sample_rate)
