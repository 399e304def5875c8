"""A number is a proof: an enclosure, theorems and conditions; what may be claimed follows from them.

Nothing here knows what was released or who attacks.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
