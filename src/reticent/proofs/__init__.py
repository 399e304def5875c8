"""A number is a proof: an enclosure, theorems and conditions; what may be claimed follows from them."""

from reticent.proofs.claims import Basis, Claim, claim_of
from reticent.proofs.conditions import (
    CONDITIONS,
    Bearing,
    Condition,
    Status,
    condition,
    conditions_by_whom,
    vouched,
    worst_first,
)

__all__ = [
    "CONDITIONS",
    "Basis",
    "Bearing",
    "Claim",
    "Condition",
    "Status",
    "claim_of",
    "condition",
    "conditions_by_whom",
    "vouched",
    "worst_first",
]
