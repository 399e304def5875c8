"""Equal releases of one kind: what a mechanism says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.kernel.pairs.base import Pair  # lists of mechanisms are read without numpy and scipy


@dataclass(frozen=True, slots=True)
class Part:
    """Equal releases: the pair of laws that dominates one, how many there are, and the theorems that say so.

    Attributes:
        pair: no data set gives an attacker a better test than these two laws.
        count: number of independent releases.
        theorems: keys of ``reticent.kernel.proofs.references``.
    """

    pair: Pair
    count: int
    theorems: tuple[str, ...]
