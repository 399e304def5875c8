"""Accountants: many pairs, one curve, with a bound on each numerical error. One file per route; no mechanism here."""

from reticent.accountants.compose import Composed, certified_advantage, compose, worst_case
from reticent.accountants.mu_limits import mu_limits
from reticent.accountants.profile import WorstCaseProfile, advantage

__all__ = [
    "Composed",
    "WorstCaseProfile",
    "advantage",
    "certified_advantage",
    "compose",
    "mu_limits",
    "worst_case",
]
