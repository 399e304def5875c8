"""Attacks: model and records to scores; and audits of whole implementations.

Some of them need torch, and the list of attacks must not: a file is read when one of its names is first used.
"""

from reticent.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
