"""Adversaries: *what was released* x *who attacks* gives a trade-off curve and its claim.

A file here is one attacker: what they know, and the proof of what they can learn. Mathematics that one attacker alone
needs is in a folder of its own (``relaxed``, ``game``). The composition of the worst case is in
``reticent.accountants``; attacks that run on a trained model are in ``reticent.attacks``.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
