"""Dominating pairs of one release, a file each: their curves on thresholds, and the transforms of their losses.

A new pair is data in ``reticent.mechanism.pairs`` and one file here that registers its curve with ``curve_of``; it is
imported below.
"""

from reticent.composition.pairs import from_curve, gaussian, laplace, whole_user
from reticent.composition.pairs.antipodal import AntipodalPair
from reticent.composition.pairs.curves import curve_of

__all__ = ["AntipodalPair", "curve_of", "from_curve", "gaussian", "laplace", "whole_user"]
