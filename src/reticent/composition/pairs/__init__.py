"""Dominating pairs of one release: their curves on thresholds, and the transforms of their losses.

A new pair is data in ``reticent.mechanism.pairs`` and a case of ``curve_of``; a ``CurvePair`` brings its own curve.
"""

from reticent.composition.pairs.antipodal import AntipodalPair
from reticent.composition.pairs.curves import curve_of

__all__ = ["AntipodalPair", "curve_of"]
