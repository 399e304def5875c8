"""Dominating pairs of one release, a file each: their curves on thresholds, and the transforms of their losses."""

from reticent.pairs.antipodal import AntipodalPair

__all__ = ["AntipodalPair"]
