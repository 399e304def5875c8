"""Replacement, where the attacker knows the direction of neither record: each is compared with "absent".

From the first record present by way of "absent" to the second one present: f >= f_add(1 - f_remove).
"""

from __future__ import annotations

from reticent.curves.moves import chained
from reticent.kernel.accountants.compose import compose
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.capped import Capped, above_none
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import strictest
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring


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
