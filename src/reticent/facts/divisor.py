"""What the noisy sum is divided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """One number for all steps, or of our trainer one for each stage of the plan."""
    return {"public-divisor": Status.CHECKED} if run.config is not None or run.divisor is not None else {}


PRIVATE_DIVISOR = Fact("divided-by-the-batch-size", vouches=_vouches)
