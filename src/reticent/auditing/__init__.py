"""Audit statistics: arrays in, results out. See docs/theory/auditing.md for what is proven and how.

A file here judges scores and knows no model, record or run; attacks that produce scores are in ``reticent.attacks``.
"""

from reticent.auditing.curve import EmpiricalTradeOff as EmpiricalTradeOff
from reticent.auditing.curve import empirical_trade_off as empirical_trade_off
from reticent.auditing.files import load_scores as load_scores
from reticent.auditing.files import save_scores as save_scores
from reticent.auditing.importers import ShadowScores as ShadowScores
from reticent.auditing.importers import import_lira as import_lira
from reticent.auditing.importers import import_privacy_meter as import_privacy_meter
from reticent.auditing.intervals import ConfidenceInterval as ConfidenceInterval
from reticent.auditing.intervals import Validity as Validity
from reticent.auditing.intervals import proportion as proportion
from reticent.auditing.lower_bounds import LowerBound as LowerBound
from reticent.auditing.lower_bounds import Quantity as Quantity
from reticent.auditing.lower_bounds import audit_advantage as audit_advantage
from reticent.auditing.lower_bounds import audit_epsilon as audit_epsilon
from reticent.auditing.lower_bounds import audit_epsilon_if_gaussian as audit_epsilon_if_gaussian
from reticent.auditing.lower_bounds import audit_mu as audit_mu
from reticent.auditing.one_run import GuessCounts as GuessCounts
from reticent.auditing.one_run import Guesses as Guesses
from reticent.auditing.one_run import audit_epsilon_one_run as audit_epsilon_one_run
from reticent.auditing.one_run import audit_mu_one_run as audit_mu_one_run
from reticent.auditing.one_run import count_guesses as count_guesses
from reticent.auditing.planning import Plan as Plan
from reticent.auditing.planning import Unit as Unit
from reticent.auditing.planning import plan_audit as plan_audit
from reticent.auditing.report import AuditReport as AuditReport
from reticent.auditing.report import audit as audit
from reticent.auditing.roc import auc_interval as auc_interval
from reticent.auditing.roc import delong as delong
from reticent.auditing.roc import tpr_interval as tpr_interval
from reticent.auditing.scores import Design as Design
from reticent.auditing.scores import Scores as Scores
from reticent.auditing.statistics import STATISTICS as STATISTICS
from reticent.auditing.statistics import Asked as Asked
from reticent.auditing.statistics import Statistic as Statistic
from reticent.auditing.thresholds import Bonferroni as Bonferroni
from reticent.auditing.thresholds import Given as Given
from reticent.auditing.thresholds import NormalScores as NormalScores
from reticent.auditing.thresholds import Ranks as Ranks
from reticent.auditing.thresholds import Split as Split
from reticent.auditing.thresholds import ThresholdRule as ThresholdRule
from reticent.auditing.verdict import Finding as Finding
from reticent.auditing.verdict import Verdict as Verdict
from reticent.auditing.verdict import audit_claim as audit_claim
from reticent.auditing.verdict import audit_claim_one_run as audit_claim_one_run
