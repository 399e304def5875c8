"""The verbs of the front door. ``import reticent as rt`` shows them; results are tables that print, plot and export.

The file of a verb is loaded when the verb is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_WHERE = {
    "Assessments": "risks",
    "Audited": "evidence",
    "Calibrations": "noise",
    "Certified": "documents",
    "Linted": "watching",
    "Table": "table",
    "Verified": "documents",
    "assess": "risks",
    "audit": "evidence",
    "audit_loop": "evidence",
    "calibrate": "noise",
    "certify": "documents",
    "compare": "noise",
    "dpsgd": "releases",
    "lint": "watching",
    "secure_noise": "watching",
    "verify": "documents",
    "watch": "watching",
}

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
    "secure_noise",
    "verify",
    "watch",
]

if TYPE_CHECKING:
    from reticent.api.documents import Certified, Verified, certify, verify
    from reticent.api.evidence import Audited, audit, audit_loop
    from reticent.api.noise import Calibrations, calibrate, compare
    from reticent.api.releases import dpsgd
    from reticent.api.risks import Assessments, assess
    from reticent.api.table import Table
    from reticent.api.watching import Linted, lint, secure_noise, watch


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found
