"""The list of mechanisms, and those beside DP-SGD: what was released, as frozen data, and pairs that dominate it."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
