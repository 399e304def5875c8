"""Many pairs, one curve, with a bound on each numerical error. A route is one way; no mechanism here."""

from reticent.kernel.accountants.compose import Composed as Composed
from reticent.kernel.accountants.compose import certified_advantage as certified_advantage
from reticent.kernel.accountants.compose import compose as compose
from reticent.kernel.accountants.compose import worst_case as worst_case
from reticent.kernel.accountants.mu_limits import mu_limits as mu_limits
