"""Composition: many releases, one curve, with a bound on each numerical error."""

from reticent.composition.all_rates import mu_limits
from reticent.composition.bracket import Bracket
from reticent.composition.common_direction import common_direction, noncentrality
from reticent.composition.common_sign import common_sign, relaxed_dpsgd
from reticent.composition.compose import compose
from reticent.composition.composed import Composed, certified_advantage
from reticent.composition.norm_only import norm_only, norm_only_both
from reticent.composition.profile import WorstCaseProfile, advantage

__all__ = [
    "Bracket",
    "Composed",
    "WorstCaseProfile",
    "advantage",
    "certified_advantage",
    "common_direction",
    "common_sign",
    "compose",
    "mu_limits",
    "noncentrality",
    "norm_only",
    "norm_only_both",
    "relaxed_dpsgd",
]
