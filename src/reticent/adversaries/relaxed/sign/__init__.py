"""The attacker who lacks one thing about the target's move: its sign, the same in all releases.

``unknown_sign`` is the way in. Two routes enclose the common sign, ``transform`` for many steps and ``lattice`` for
few; ``join`` takes the better at every threshold and falls back on the worst case. docs/theory/relaxed/sign.md derives
every bound.
"""

from reticent.adversaries.relaxed.sign.join import Part as Part
from reticent.adversaries.relaxed.sign.join import quick_sign_estimate as quick_sign_estimate
from reticent.adversaries.relaxed.sign.join import unknown_sign as unknown_sign
