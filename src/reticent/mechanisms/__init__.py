"""What was released, as frozen data, and the pairs that dominate it. What follows from a release is not said here."""

from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
