"""The curve of a dominating pair, on thresholds: what every route but the transform composes."""

from __future__ import annotations

from reticent.composition.pairs.antipodal import AntipodalPair
from reticent.composition.pairs.whole_user import WholeUserPair
from reticent.mechanism.pairs import (
    AntipodalGaussianPair,
    CurvePair,
    GaussianPair,
    LaplacePair,
    Pair,
    SymmetrisedGaussianPair,
    WholeUserGaussianPair,
)
from reticent.tradeoff import GaussianTradeOff, LaplaceTradeOff, Subsampled, TradeOff, symmetrised


def curve_of(pair: Pair) -> TradeOff:
    """``pair`` as a curve, H0 = absent.

    Raises:
        TypeError: this kind of pair has no curve here; whatever brings its own is a ``CurvePair``.
    """
    match pair:
        case CurvePair(curve=curve):
            return curve
        case GaussianPair(noise, rate, shift):
            return _sampled(GaussianTradeOff(shift / noise), rate)
        case SymmetrisedGaussianPair(noise, rate, shift):
            return symmetrised(_sampled(GaussianTradeOff(shift / noise), rate))
        case LaplacePair(noise, rate, shift):
            return _sampled(LaplaceTradeOff(shift / noise), rate)
        case AntipodalGaussianPair(noise, rate):
            return AntipodalPair(noise, rate)
        case WholeUserGaussianPair(noise, rate, records, antipodal):
            return WholeUserPair(noise, rate, records, antipodal)
    raise TypeError(pair)


def _sampled(curve: TradeOff, sample_rate: float) -> TradeOff:
    """``curve`` seen with probability ``sample_rate``."""
    return curve if sample_rate == 1.0 else Subsampled(curve, sample_rate)
