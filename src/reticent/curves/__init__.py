"""Trade-off curves, their algebra, polygons and enclosures: one file per curve. No releases, no attackers here."""

from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
