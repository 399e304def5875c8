"""A number is a proof: an enclosure, theorems and conditions; what may be claimed follows from them.

Nothing here knows what was released or who attacks.
"""

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
from reticent.proofs.proof import Formula, Proof, best

__all__ = [
    "CONDITIONS",
    "Basis",
    "Bearing",
    "Claim",
    "Condition",
    "Formula",
    "Proof",
    "Status",
    "best",
    "claim_of",
    "condition",
    "conditions_by_whom",
    "vouched",
    "worst_first",
]
