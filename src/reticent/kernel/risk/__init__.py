"""Curve to number: one function per risk, each read off a trade-off curve.

Nothing here knows where the curve comes from.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
