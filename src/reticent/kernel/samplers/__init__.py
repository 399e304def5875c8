"""How batches were drawn: what a sampler is, and Poisson sampling."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
