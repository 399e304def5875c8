"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.mechanisms.filtered import GaussianFilter as GaussianFilter
from reticent.mechanisms.gradients import Gradients as Gradients
from reticent.mechanisms.one_of import OneOf as OneOf
from reticent.mechanisms.selection import Selection as Selection

# isort: off
# kinds: in the order in which people see them
from reticent.kernel.mechanisms.gaussian import Gaussian as Gaussian
from reticent.mechanisms.laplace import Laplace as Laplace
from reticent.kernel.mechanisms.dpsgd import DPSGD as DPSGD
from reticent.mechanisms.randomised_response import RandomisedResponse as RandomisedResponse
from reticent.mechanisms.matrix import MatrixMechanism as MatrixMechanism
from reticent.mechanisms.guarantee import Guarantee as Guarantee
from reticent.mechanisms.zcdp import ZCDP as ZCDP
from reticent.mechanisms.rdp import RDP as RDP
from reticent.mechanisms.privacy_profile import PrivacyProfile as PrivacyProfile
from reticent.mechanisms.filtered import FilteredGaussian as FilteredGaussian
