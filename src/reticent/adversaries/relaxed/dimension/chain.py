"""Replacement, where the attacker knows the direction of neither record: each is compared with "absent".

From P (the first record present) by way of Q (absent) to R (the second one present): a test has
P(A) <= e^s Q(A) + delta_1(s) and Q(A) <= e^t R(A) + delta_2(t), hence delta(s + t) <= delta_1(s) + e^s delta_2(t) for
every split. This is the chain f >= f_add(1 - f_remove) of trade-off functions, by tangents.
"""

from __future__ import annotations

import numpy as np

from reticent.accountants.compose import compose
from reticent.curves import TradeOff
from reticent.curves.enclosure import Enclosure
from reticent.curves.polygon import Polygon, strictest, symmetric_above
from reticent.mechanisms import Mechanism, Neighbouring

_THRESHOLDS = np.append(0.0, np.geomspace(1e-5, 100.0, 240))  # s + t
_ROUNDING = 1e-15  # of log delta
_SPLITS = np.linspace(0.0, 1.0, 17)  # shares of s


def replaced(release: Mechanism, curve: TradeOff) -> Enclosure:
    """A bound for replacement, never above the worst case; nothing is known from below.

    Args:
        release: what was released.
        curve: a bound under add/remove, both directions.

    Raises:
        UnsupportedError: no dominating pair is proven for the sampler.
    """
    worst = compose(release, Neighbouring.REPLACE)
    return Enclosure.from_above(strictest([chained(curve), worst.pessimistic]), worst.notes)


def chained(curve: TradeOff) -> Polygon:
    """The chain of two steps, each of which has at most the symmetrised ``curve``.

    By RETICENT:chain.

    Args:
        curve: symmetric.
    """
    split = _THRESHOLDS[:, None] * _SPLITS
    first, second = curve.log_delta(split), curve.log_delta(_THRESHOLDS[:, None] - split)
    log_delta = np.minimum(np.min(np.logaddexp(first, split + second), axis=1) + _ROUNDING, 0.0)
    return symmetric_above(_THRESHOLDS, log_delta)
