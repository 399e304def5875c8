"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.samplers.base import SAMPLERS as SAMPLERS
from reticent.kernel.samplers.base import Run as Run
from reticent.kernel.samplers.base import Sampler as Sampler
from reticent.kernel.samplers.base import by_coins as by_coins
from reticent.kernel.samplers.base import of_draws as of_draws
from reticent.kernel.samplers.poisson import INDEPENDENT as INDEPENDENT
from reticent.kernel.samplers.poisson import Poisson as Poisson
