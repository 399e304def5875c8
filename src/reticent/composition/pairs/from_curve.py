"""A release whose own trade-off curve is known."""

from __future__ import annotations

from reticent.composition.pairs.curves import curve_of
from reticent.mechanism.pairs import CurvePair
from reticent.tradeoff import TradeOff


@curve_of.register
def _(pair: CurvePair) -> TradeOff:
    return pair.curve
