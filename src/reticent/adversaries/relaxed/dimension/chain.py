"""Replacement, where the attacker knows the direction of neither record: each is compared with "absent".

From the first record present by way of "absent" to the second one present: f >= f_add(1 - f_remove).
"""

from __future__ import annotations

from reticent.accountants.compose import compose
from reticent.curves import TradeOff
from reticent.curves.capped import Capped, above_none
from reticent.curves.enclosure import Enclosure
from reticent.curves.moves import chained
from reticent.curves.polygon import strictest
from reticent.mechanisms import Mechanism, Neighbouring


def replaced(release: Mechanism, curve: TradeOff) -> Enclosure:
    """A bound for replacement, never above the worst case; nothing is known from below.

    By RETICENT:chain.

    Args:
        release: what was released.
        curve: a bound under add/remove, both directions: symmetric.

    Raises:
        UnsupportedError: no dominating pair is proven for the sampler.
    """
    worst = compose(release, Neighbouring.REPLACE)
    leg = strictest([curve.curve if isinstance(curve, Capped) else curve])  # a chain is made of polygons
    return Enclosure.from_above(above_none([chained(leg, leg), worst.pessimistic]), worst.notes)
