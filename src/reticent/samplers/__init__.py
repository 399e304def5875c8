"""The list of samplers: how batches were drawn. Only what was proven for a sampler may be claimed for it."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
