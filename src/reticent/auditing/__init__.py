"""Audit statistics: arrays in, results out. See docs/theory/auditing.md for what is proven and how.

A file here judges scores and knows no model, record or run; attacks that produce scores are in ``reticent.attacks``.
"""

from reticent.auditing.curve import EmpiricalTradeOff, empirical_trade_off
from reticent.auditing.files import load_scores, save_scores
from reticent.auditing.importers import ShadowScores, import_lira, import_privacy_meter
from reticent.auditing.intervals import ConfidenceInterval, Validity, proportion
from reticent.auditing.lower_bounds import (
    LowerBound,
    Quantity,
    audit_advantage,
    audit_epsilon,
    audit_epsilon_if_gaussian,
    audit_mu,
)
from reticent.auditing.noise import NoiseBound, audit_noise
from reticent.auditing.one_run import (
    GuessCounts,
    Guesses,
    audit_epsilon_one_run,
    audit_mu_one_run,
    count_guesses,
)
from reticent.auditing.paired import PairedCanaries, audit_claim_paired, audit_epsilon_paired, audit_mu_paired
from reticent.auditing.planning import Plan, Unit, plan_audit
from reticent.auditing.report import AuditReport, audit
from reticent.auditing.roc import auc_interval, delong, tpr_interval
from reticent.auditing.scores import Design, Scores
from reticent.auditing.statistics import STATISTICS, Asked, Statistic
from reticent.auditing.thresholds import Bonferroni, Given, NormalScores, Ranks, Split, ThresholdRule
from reticent.auditing.verdict import Finding, Verdict, audit_claim, audit_claim_one_run

__all__ = [
    "STATISTICS",
    "Asked",
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
    "NoiseBound",
    "NormalScores",
    "PairedCanaries",
    "Plan",
    "Quantity",
    "Ranks",
    "Scores",
    "ShadowScores",
    "Split",
    "Statistic",
    "ThresholdRule",
    "Unit",
    "Validity",
    "Verdict",
    "auc_interval",
    "audit",
    "audit_advantage",
    "audit_claim",
    "audit_claim_one_run",
    "audit_claim_paired",
    "audit_epsilon",
    "audit_epsilon_if_gaussian",
    "audit_epsilon_one_run",
    "audit_epsilon_paired",
    "audit_mu",
    "audit_mu_one_run",
    "audit_mu_paired",
    "audit_noise",
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
