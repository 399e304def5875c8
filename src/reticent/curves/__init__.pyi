"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.curves.algebra import Mixture as Mixture
from reticent.curves.algebra import Subsampled as Subsampled
from reticent.curves.algebra import subsampled as subsampled
from reticent.curves.base import LogErrors as LogErrors
from reticent.curves.base import Reversed as Reversed
from reticent.curves.base import TradeOff as TradeOff
from reticent.curves.gaussian import GaussianTradeOff as GaussianTradeOff
from reticent.curves.laplace import LaplaceTradeOff as LaplaceTradeOff
from reticent.curves.laplace import RelaxedLaplaceTradeOff as RelaxedLaplaceTradeOff
from reticent.curves.membership_step import MembershipStepTradeOff as MembershipStepTradeOff
from reticent.curves.piecewise import PiecewiseLinearTradeOff as PiecewiseLinearTradeOff
from reticent.curves.piecewise import PolygonTradeOff as PolygonTradeOff
from reticent.curves.piecewise import SymmetricPolygon as SymmetricPolygon
from reticent.curves.piecewise import from_advantage as from_advantage
from reticent.curves.piecewise import no_privacy as no_privacy
from reticent.curves.relaxed_gaussian import RelaxedGaussianTradeOff as RelaxedGaussianTradeOff
from reticent.curves.worst import Symmetrised as Symmetrised
from reticent.curves.worst import symmetrised as symmetrised
