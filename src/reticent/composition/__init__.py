"""Composition: many releases, one curve, with a bound on each numerical error."""

from reticent.composition.all_rates import mu_limits
from reticent.composition.bracket import Bracket
from reticent.composition.compose import Composed, certified_advantage, compose, worst_case
from reticent.composition.mixture_as_gaussian import mixture_error, published_order
from reticent.composition.norm_only import norm_only, norm_only_both
from reticent.composition.profile import WorstCaseProfile, advantage
from reticent.composition.sign import common_direction, common_sign, noncentrality, relaxed_dpsgd

__all__ = [
    "Bracket",
    "Composed",
    "WorstCaseProfile",
    "advantage",
    "certified_advantage",
    "common_direction",
    "common_sign",
    "compose",
    "mixture_error",
    "mu_limits",
    "noncentrality",
    "norm_only",
    "norm_only_both",
    "published_order",
    "relaxed_dpsgd",
    "worst_case",
]
