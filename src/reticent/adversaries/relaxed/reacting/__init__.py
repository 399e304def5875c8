"""The relaxed adversary where gradients react to the model: linear models and linear heads, from above."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
"""Every name of this package, and where it is read from: who lists attackers reads none of it."""
