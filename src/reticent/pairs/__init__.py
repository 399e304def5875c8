"""Dominating pairs: one file per pair, with all that is known about it. No counts of releases, no attackers here.

A pair is loaded when it is used: lists of mechanisms are read without numpy and scipy.
"""

from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
