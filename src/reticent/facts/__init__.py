"""Facts of a run that its reader must know: what each does to the release, vouches for, and says."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""
