"""Accountants: many pairs, one curve, with a bound on each numerical error. One file per route; no mechanism here."""

from reticent.accountants.compose import compose as compose  # named as their files, which would hide them
from reticent.accountants.mu_limits import mu_limits as mu_limits
from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
