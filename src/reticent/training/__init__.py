"""DP-SGD runs and the ledger of what really ran.

A file here trains. How loops of others are seen is in ``reticent.watching``; how far a record can move a gradient is in
``reticent.sensitivity``. No torch is needed to read what a
run says of itself: a name is loaded when it is first used.
"""

from reticent.kernel.errors import needing
from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, around=lambda name: needing(f"reticent.training.{name}", "train"))
