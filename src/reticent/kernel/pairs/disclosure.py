"""A release without noise."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.kernel.pairs.base import Drawn


@dataclass(frozen=True, slots=True)
class Disclosure(Drawn):
    """No noise: the target shows itself whenever it takes part. Accountants treat it apart: it has no curve here.

    Attributes:
        sample_rate: probability that the target takes part, in (0, 1].
        displaces: in its place another record would show itself, so either answer can be seen.
    """

    sample_rate: float
    displaces: bool = False
