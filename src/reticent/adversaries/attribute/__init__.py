"""The attacker who wants one field of one record: bounded by how far the field can move a clipped gradient."""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
