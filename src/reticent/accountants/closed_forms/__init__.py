"""Closed forms for the advantage against DP-SGD, each with its status and the direction of its error.

Every form takes ``(noise_multiplier, sample_rate, steps, neighbouring)``, broadcasts its first three
arguments like numpy (finite numbers >= 0, in (0, 1] and >= 1, else ParameterError), answers in their common shape
with numbers >= 0 that grow with risk, and assumes Poisson sampling: the noise multiplier is the noise standard
deviation over the clip norm on the *sum*, and the one-step pair is, with s = 1/noise_multiplier^2,

- ``ADD_REMOVE`` and ``ZERO_OUT``: N(0) against (1-p) N(0) + p N(1),
- ``REPLACE``: (1-p) N(0) + p N(-1) against (1-p) N(0) + p N(1).

The advantage is the total variation distance after ``steps`` steps, ``1 - bayes_security``; it is the
same in both directions. ``gaussian`` holds the forms of Gaussian type, ``normal_loss`` two expansions around a normal
privacy loss, ``bracket`` what is proven. Where no source is named the derivation is in docs/theory/closed-forms.md.

"Within 1e-3" means: absolute error of the advantage, measured against the exact value over sample rates
in [1e-5, 0.2], noise multipliers in [0.4, 10] and steps in [10, 1e6] (docs/theory/closed-forms.md has the table
and the figure). "Safe" means that the form never claims more privacy than there is.
"""

from reticent.accountants.closed_forms.bracket import one_step, proven, proven_bracket, proven_upper
from reticent.accountants.closed_forms.gaussian import (
    MuForm,
    added_mu,
    advantage_at,
    bayes_security_at,
    clt,
    clt_mu,
    clt_sample_rate,
    mu_at,
    published,
    published_mu,
    published_sample_rate,
    rho_form,
    rho_form_mu,
)
from reticent.accountants.closed_forms.normal_loss import edgeworth, saddlepoint

__all__ = [
    "MuForm",
    "added_mu",
    "advantage_at",
    "bayes_security_at",
    "clt",
    "clt_mu",
    "clt_sample_rate",
    "edgeworth",
    "mu_at",
    "one_step",
    "proven",
    "proven_bracket",
    "proven_upper",
    "published",
    "published_mu",
    "published_sample_rate",
    "rho_form",
    "rho_form_mu",
    "saddlepoint",
]
