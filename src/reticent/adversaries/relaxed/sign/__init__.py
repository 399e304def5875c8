"""The attacker who lacks one thing about the target's move: its sign in sampled runs, its direction in plain releases.

Two routes enclose the common sign, ``transform`` for many steps and ``lattice`` for few; ``join`` takes the better at
every threshold and falls back on the worst case. docs/theory/relaxed/sign.md derives every bound.
"""

from reticent.adversaries.relaxed.sign.direction import noncentrality
from reticent.adversaries.relaxed.sign.join import (
    common_sign,
    common_sign_estimate,
    quick_sign_estimate,
    relaxed_dpsgd,
    sign_at_most,
)
from reticent.adversaries.relaxed.sign.laplace import laplace_sign

__all__ = [
    "common_sign",
    "common_sign_estimate",
    "laplace_sign",
    "noncentrality",
    "quick_sign_estimate",
    "relaxed_dpsgd",
    "sign_at_most",
]
