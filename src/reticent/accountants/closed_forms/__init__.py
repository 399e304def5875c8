"""Closed forms for the advantage against DP-SGD, each with its status and the direction of its error.

Every form takes ``(noise_multiplier, sample_rate, steps, neighbouring)``, broadcasts its first three
arguments like numpy (finite numbers >= 0, in (0, 1] and >= 1, else ParameterError), answers in their common shape
with numbers >= 0 that grow with risk, and assumes Poisson sampling: the noise multiplier is the noise standard
deviation over the clip norm on the *sum*, and the one-step pair is, with s = 1/noise_multiplier^2,

- ``ADD_REMOVE`` and ``ZERO_OUT``: N(0) against (1-p) N(0) + p N(1),
- ``REPLACE``: (1-p) N(0) + p N(-1) against (1-p) N(0) + p N(1).

The advantage is the total variation distance after ``steps`` steps, ``1 - bayes_security``; it is the
same in both directions. ``gaussian`` holds the forms of Gaussian type, ``bracket`` what is proven. Where no source is
named the derivation is in docs/theory/closed-forms.md.

"Within 1e-3" means: absolute error of the advantage, measured against the exact value over sample rates
in [1e-5, 0.2], noise multipliers in [0.4, 10] and steps in [10, 1e6] (docs/theory/closed-forms.md has the table
and the figure). "Safe" means that the form never claims more privacy than there is.
"""

from reticent.accountants.closed_forms.bracket import proven_upper as proven_upper
from reticent.accountants.closed_forms.gaussian import MuForm as MuForm
from reticent.accountants.closed_forms.gaussian import added_mu as added_mu
from reticent.accountants.closed_forms.gaussian import advantage_at as advantage_at
from reticent.accountants.closed_forms.gaussian import clt_mu as clt_mu
from reticent.accountants.closed_forms.gaussian import published as published
from reticent.accountants.closed_forms.gaussian import rho_form_mu as rho_form_mu
