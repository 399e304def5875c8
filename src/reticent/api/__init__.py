"""The verbs of the front door. ``import reticent as rt`` shows them; results are tables that print, plot and export."""

from reticent.api.documents import Certified, Verified, certify, verify
from reticent.api.evidence import Audited, audit, audit_loop
from reticent.api.noise import Calibrations, calibrate, compare
from reticent.api.releases import dpsgd
from reticent.api.risks import Assessments, assess
from reticent.api.table import Table
from reticent.api.watching import Linted, lint, watch

__all__ = [
    "Assessments",
    "Audited",
    "Calibrations",
    "Certified",
    "Linted",
    "Table",
    "Verified",
    "assess",
    "audit",
    "audit_loop",
    "calibrate",
    "certify",
    "compare",
    "dpsgd",
    "lint",
    "verify",
    "watch",
]
