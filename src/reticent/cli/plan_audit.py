"""``reticent plan-audit``: how large an audit must be."""

from __future__ import annotations

from reticent.cli._asking import asking, showing
from reticent.verbs.planning import PlanAudit

ASKED = {PlanAudit: showing()}
plan_audit = asking("plan-audit", PlanAudit, ASKED[PlanAudit])
