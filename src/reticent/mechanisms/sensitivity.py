"""What a recorder measures of one field during a run: how far it moved clipped gradients, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError


class Scope(StrEnum):
    """Whose sensitivities a record of a run covers."""

    SAMPLED_BATCH = "sampled-batch"
    """The records that each step happened to draw: the paper's choice, a diagnostic."""
    AUDIT_SET = "audit-set"
    """Chosen records, at every step, drawn or not: holds for these records only."""
    WHOLE_DATA = "whole-data"
    """Every training record at every step."""


@dataclass(frozen=True, slots=True)
class SensitivityRecord:
    """What a recorder accumulated over a run, in units of the clip norm. Private.

    Sums run over the steps first, per record and per pair of values; then the largest is taken.

    Attributes:
        steps: noisy updates seen.
        scope: whose gradients were compared. Under ``SAMPLED_BATCH`` a record counts in the steps
            that drew it, otherwise in all.
        squared_change: largest sum over steps of the squared distance of two clipped gradients.
        mask_term: largest sum over steps of the mask term F (see ``mask_term``), at ``noise_multiplier``.
        largest_mask_term: largest F of a single step.
        published_squared_change: sum over steps of the squared largest distance in the step: ||R||^2 of
            CHERUBIN2024; None where no batch was seen.
        noise_multiplier: at which F was evaluated.
        budget: largest ``mask_term`` that a filter allowed, fixed before training, or None.

    Raises:
        ParameterError: a sum is negative or NaN, or exceeds the budget.
    """

    steps: int
    scope: Scope
    squared_change: float
    mask_term: float
    largest_mask_term: float
    published_squared_change: float | None
    noise_multiplier: float
    budget: float | None = None

    def __post_init__(self) -> None:
        checks.count(steps=self.steps)
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.non_negative(squared_change=self.squared_change)
        if self.published_squared_change is not None:
            checks.non_negative(published_squared_change=self.published_squared_change)
        for name in ("mask_term", "largest_mask_term"):
            if not getattr(self, name) >= 0.0:
                raise ParameterError(name, getattr(self, name), "a number >= 0")
        if self.budget is not None and self.mask_term > checks.non_negative(budget=self.budget):
            raise ParameterError("mask_term", self.mask_term, f"at most the budget {self.budget!r}")
