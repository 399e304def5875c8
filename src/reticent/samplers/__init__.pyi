"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.samplers.base import SAMPLERS as SAMPLERS
from reticent.samplers.base import Run as Run
from reticent.samplers.base import Sampler as Sampler
from reticent.samplers.base import by_coins as by_coins
from reticent.samplers.base import of_draws as of_draws
from reticent.samplers.poisson import INDEPENDENT as INDEPENDENT

# isort: off
# kinds: in the order in which people see them
from reticent.samplers.poisson import Poisson as Poisson
from reticent.samplers.truncated_poisson import TruncatedPoisson as TruncatedPoisson
from reticent.samplers.fixed_size import FixedSize as FixedSize
from reticent.samplers.random_allocation import RandomAllocation as RandomAllocation
from reticent.samplers.block_allocation import BlockAllocation as BlockAllocation
from reticent.samplers.allocated_once import AllocatedOnce as AllocatedOnce
from reticent.samplers.shuffled import Shuffled as Shuffled
from reticent.samplers.cyclic import Cyclic as Cyclic
