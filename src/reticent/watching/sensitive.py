"""What ``rt.watch(..., sensitive=...)`` is to record about one attribute."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.sensitivity import Loss, Precision, SensitiveAttribute
from reticent.sensitivity.recorder import AuditSet


@dataclass(frozen=True)
class Sensitive:
    """What ``watch`` is to record about one attribute.

    Attributes:
        attribute: the columns, and the values to compare.
        loss: each record's own loss, or None for cross-entropy; it is compared with the gradients of the loop.
        audit: records to measure in every step, drawn or not; None for the drawn batches, a diagnostic.
        precision: of the distances.
        every: measure one step in this many; the others count with the most that clipping allows, so that the
            record stays an upper bound.
    """

    attribute: SensitiveAttribute
    loss: Loss | None = None
    audit: AuditSet | None = None
    precision: Precision = Precision.DOUBLE
    every: int = 1
