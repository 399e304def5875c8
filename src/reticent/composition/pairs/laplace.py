"""Laplace noise, sampled or not."""

from __future__ import annotations

from reticent.composition.pairs.curves import curve_of, sampled
from reticent.mechanism.pairs import LaplacePair
from reticent.tradeoff import LaplaceTradeOff, TradeOff


@curve_of.register
def _(pair: LaplacePair) -> TradeOff:
    return sampled(LaplaceTradeOff(pair.shift / pair.noise_multiplier), pair.sample_rate)
