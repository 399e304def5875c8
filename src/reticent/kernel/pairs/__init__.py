"""Dominating pairs: what one is, the Gaussian, Poisson sampling and its replacement pair, whole persons."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
