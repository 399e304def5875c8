"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.curves.algebra import Mixture as Mixture
from reticent.kernel.curves.algebra import Subsampled as Subsampled
from reticent.kernel.curves.algebra import subsampled as subsampled
from reticent.kernel.curves.base import LogErrors as LogErrors
from reticent.kernel.curves.base import Reversed as Reversed
from reticent.kernel.curves.base import TradeOff as TradeOff
from reticent.kernel.curves.gaussian import GaussianTradeOff as GaussianTradeOff
from reticent.kernel.curves.piecewise import PiecewiseLinearTradeOff as PiecewiseLinearTradeOff
from reticent.kernel.curves.piecewise import PolygonTradeOff as PolygonTradeOff
from reticent.kernel.curves.piecewise import SymmetricPolygon as SymmetricPolygon
from reticent.kernel.curves.piecewise import from_advantage as from_advantage
from reticent.kernel.curves.piecewise import no_privacy as no_privacy
from reticent.kernel.curves.worst import Symmetrised as Symmetrised
from reticent.kernel.curves.worst import symmetrised as symmetrised
