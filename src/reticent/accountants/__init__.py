"""Routes beside those of the kernel, the list of all routes, quick estimates, and closed forms: one file per route."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
