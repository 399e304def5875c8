"""The attacker who lacks one thing about the target's move: its sign, the same in all releases.

``unknown_sign`` is the way in. Two routes enclose the common sign, ``transform`` for many steps and ``lattice`` for
few; ``join`` takes the better at every threshold and falls back on the worst case. docs/theory/relaxed/sign.md derives
every bound.
"""

from reticent.kernel.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__)
"""Every name of this package, and where it is read from: who lists attackers reads none of it."""
