"""Accountants: many pairs, one curve, with a bound on each numerical error. One file per route; no mechanism here."""

from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
