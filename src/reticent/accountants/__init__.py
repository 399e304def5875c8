"""Accountants: many pairs, one curve, with a bound on each numerical error. One file per route; no mechanism here."""

from reticent.accountants.compose import Composed as Composed
from reticent.accountants.compose import certified_advantage as certified_advantage
from reticent.accountants.compose import compose as compose
from reticent.accountants.compose import worst_case as worst_case
from reticent.accountants.mu_limits import mu_limits as mu_limits
