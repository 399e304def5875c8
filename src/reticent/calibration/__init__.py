"""Calibration: how much noise (or how little data, how few steps) keeps an attacker below a target.

A file here searches for a number of ``reticent.kernel.risk`` under an attacker. No curve is made here.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""
