"""More trade-off curves beside those of the kernel: one file per curve. No releases and no attackers are known here."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
