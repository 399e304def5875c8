"""``reticent audit-loop``: is somebody's own training loop the DP-SGD that it claims to be?"""

from __future__ import annotations

from reticent.cli._asking import asking, showing
from reticent.verbs.loops import AuditLoop

ASKED = {AuditLoop: showing()}
audit_loop = asking(
    "audit-loop",
    AuditLoop,
    ASKED[AuditLoop],
    help="Run a training loop on records with chosen gradients and test what it releases. Exit code 1: claim refuted.",
)
