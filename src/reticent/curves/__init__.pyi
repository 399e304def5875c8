"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.curves.laplace import LaplaceTradeOff as LaplaceTradeOff
from reticent.curves.laplace import RelaxedLaplaceTradeOff as RelaxedLaplaceTradeOff
from reticent.curves.membership_step import MembershipStepTradeOff as MembershipStepTradeOff
from reticent.curves.relaxed_gaussian import RelaxedGaussianTradeOff as RelaxedGaussianTradeOff
