"""The attacker who lacks one thing about the target's move: its sign in sampled runs, its direction in plain releases.

Two routes enclose the common sign, ``transform`` for many steps and ``lattice`` for few; ``join`` takes the better at
every threshold and falls back on the worst case. docs/theory/relaxed/sign.md derives every bound.
"""

from reticent.adversaries.relaxed.sign.direction import noncentrality as noncentrality
from reticent.adversaries.relaxed.sign.join import common_sign as common_sign
from reticent.adversaries.relaxed.sign.join import quick_sign_estimate as quick_sign_estimate
from reticent.adversaries.relaxed.sign.join import relaxed_dpsgd as relaxed_dpsgd
from reticent.adversaries.relaxed.sign.join import sign_at_most as sign_at_most
from reticent.adversaries.relaxed.sign.laplace import laplace_sign as laplace_sign
