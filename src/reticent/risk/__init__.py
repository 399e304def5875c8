"""Curve to number: one function per risk, each read off a trade-off curve.

Nothing here knows where the curve comes from.
"""

from reticent.risk.conversions import advantage_bound, least_epsilon
from reticent.risk.measures import (
    GROWING,
    MU_FLOOR,
    advantage,
    auc,
    bayes_security,
    blind_guess,
    delta_at_epsilon,
    epsilon_at_delta,
    mu,
    mu_above,
    power_of_ppv,
    ppv,
    ppv_of_power,
    reconstruction_success,
    secret_success,
    success,
    tpr_at_fpr,
)

__all__ = [
    "GROWING",
    "MU_FLOOR",
    "advantage",
    "advantage_bound",
    "auc",
    "bayes_security",
    "blind_guess",
    "delta_at_epsilon",
    "epsilon_at_delta",
    "least_epsilon",
    "mu",
    "mu_above",
    "power_of_ppv",
    "ppv",
    "ppv_of_power",
    "reconstruction_success",
    "secret_success",
    "success",
    "tpr_at_fpr",
]
