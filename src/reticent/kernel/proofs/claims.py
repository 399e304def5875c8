"""How strong a number is. Nobody sets this: it follows from how the number was found and from its conditions."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from reticent.kernel.proofs.conditions import Condition


class Claim(StrEnum):
    """How strong a number is."""

    BOUND = "bound"
    """Proven. It needs nothing of the data or of the attacker that nobody checked."""
    CONDITIONAL = "conditional"
    """Proven under a condition on the data or on the attacker that nobody checked; the condition is named."""
    ESTIMATE = "estimate"
    """An approximation, with its distance to the exact value wherever that can be computed."""
    EMPIRICAL = "empirical"
    """Measured, with a confidence."""

    @property
    def proven(self) -> bool:
        """Whether a theorem says that the truth is not above the number, given the conditions."""
        return self in (Claim.BOUND, Claim.CONDITIONAL)


class Basis(StrEnum):
    """How a curve was found."""

    PROOF = "proof"
    """By theorems: under their conditions the truth is not above it."""
    APPROXIMATION = "approximation"
    """By a formula that may err to either side."""
    MEASUREMENT = "measurement"
    """From what was observed."""


def claim_of(basis: Basis, conditions: Iterable[Condition]) -> Claim:
    """What may be claimed."""
    if basis is Basis.MEASUREMENT:
        return Claim.EMPIRICAL
    if basis is Basis.APPROXIMATION:
        return Claim.ESTIMATE
    return Claim.CONDITIONAL if any(one.weakens for one in conditions) else Claim.BOUND
