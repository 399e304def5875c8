"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.mechanisms.base import MECHANISMS as MECHANISMS
from reticent.kernel.mechanisms.base import Mechanism as Mechanism
from reticent.kernel.mechanisms.dpsgd import DPSGD as DPSGD
from reticent.kernel.mechanisms.gaussian import Gaussian as Gaussian
from reticent.kernel.mechanisms.ledger import Ledger as Ledger
