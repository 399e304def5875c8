"""Trade-off curves: what one is, the Gaussian, polygons, their algebra and enclosures. No releases here."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
