"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

# isort: off
# kinds: in the order in which people see them
from reticent.kernel.samplers.poisson import Poisson as Poisson
from reticent.samplers.truncated_poisson import TruncatedPoisson as TruncatedPoisson
from reticent.samplers.fixed_size import FixedSize as FixedSize
from reticent.samplers.random_allocation import RandomAllocation as RandomAllocation
from reticent.samplers.block_allocation import BlockAllocation as BlockAllocation
from reticent.samplers.allocated_once import AllocatedOnce as AllocatedOnce
from reticent.samplers.shuffled import Shuffled as Shuffled
from reticent.samplers.cyclic import Cyclic as Cyclic
