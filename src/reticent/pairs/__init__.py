"""More dominating pairs: one file per pair, with all that is known about it. No releases, no attackers here."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
