"""Audit statistics: arrays in, results out. See docs/auditing.md for what is proven and how."""

from reticent._callable import make_callable
from reticent.audit.curve import EmpiricalTradeOff, empirical_trade_off
from reticent.audit.files import load_scores, save_scores
from reticent.audit.importers import ShadowScores, import_lira, import_privacy_meter
from reticent.audit.intervals import ConfidenceInterval, Validity, proportion
from reticent.audit.lower_bounds import (
    LowerBound,
    Quantity,
    audit_advantage,
    audit_epsilon,
    audit_epsilon_if_gaussian,
    audit_mu,
)
from reticent.audit.one_run import (
    GuessCounts,
    Guesses,
    audit_epsilon_one_run,
    audit_mu_one_run,
    count_guesses,
)
from reticent.audit.planning import Plan, Unit, plan_audit
from reticent.audit.report import AuditReport, audit
from reticent.audit.roc import auc_interval, delong, tpr_interval
from reticent.audit.scores import Design, Scores
from reticent.audit.thresholds import Bonferroni, Given, Ranks, Split, ThresholdRule
from reticent.audit.verdict import Finding, Verdict, audit_claim, audit_claim_one_run

__all__ = [
    "AuditReport",
    "Bonferroni",
    "ConfidenceInterval",
    "Design",
    "EmpiricalTradeOff",
    "Finding",
    "Given",
    "GuessCounts",
    "Guesses",
    "LowerBound",
    "Plan",
    "Quantity",
    "Ranks",
    "Scores",
    "ShadowScores",
    "Split",
    "ThresholdRule",
    "Unit",
    "Validity",
    "Verdict",
    "auc_interval",
    "audit",
    "audit_advantage",
    "audit_claim",
    "audit_claim_one_run",
    "audit_epsilon",
    "audit_epsilon_if_gaussian",
    "audit_epsilon_one_run",
    "audit_mu",
    "audit_mu_one_run",
    "count_guesses",
    "delong",
    "empirical_trade_off",
    "import_lira",
    "import_privacy_meter",
    "load_scores",
    "plan_audit",
    "proportion",
    "save_scores",
    "tpr_interval",
]

make_callable(__name__)
