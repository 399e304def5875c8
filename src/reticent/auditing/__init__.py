"""Audit statistics: arrays in, results out. See docs/theory/auditing.md for what is proven and how.

A file here judges scores and knows no model, record or run; attacks that produce scores are in ``reticent.attacks``.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
