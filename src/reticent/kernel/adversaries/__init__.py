"""*What was released* x *who attacks* gives a curve and its claim: the worst case, and others beside it."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
