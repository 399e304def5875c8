"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.mechanisms.base import MECHANISMS as MECHANISMS
from reticent.mechanisms.base import Mechanism as Mechanism
from reticent.mechanisms.filtered import GaussianFilter as GaussianFilter
from reticent.mechanisms.gradients import Gradients as Gradients
from reticent.mechanisms.ledger import Ledger as Ledger
from reticent.mechanisms.one_of import OneOf as OneOf
from reticent.mechanisms.selection import Selection as Selection
from reticent.pairs import Neighbouring as Neighbouring
from reticent.pairs import Part as Part

# isort: off
# kinds: in the order in which people see them
from reticent.mechanisms.gaussian import Gaussian as Gaussian
from reticent.mechanisms.laplace import Laplace as Laplace
from reticent.mechanisms.dpsgd import DPSGD as DPSGD
from reticent.mechanisms.randomised_response import RandomisedResponse as RandomisedResponse
from reticent.mechanisms.matrix import MatrixMechanism as MatrixMechanism
from reticent.mechanisms.guarantee import Guarantee as Guarantee
from reticent.mechanisms.filtered import FilteredGaussian as FilteredGaussian
