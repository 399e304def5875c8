"""What was released, as frozen data: what a mechanism is, the Gaussian, DP-SGD, several together."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
