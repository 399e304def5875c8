"""How batches were drawn. Only what was proven for a sampler may be claimed for it."""

from reticent.samplers.allocated_once import AllocatedOnce as AllocatedOnce
from reticent.samplers.base import SAMPLERS as SAMPLERS
from reticent.samplers.base import Run as Run
from reticent.samplers.base import Sampler as Sampler
from reticent.samplers.base import by_coins as by_coins
from reticent.samplers.base import of_draws as of_draws
from reticent.samplers.block_allocation import BlockAllocation as BlockAllocation
from reticent.samplers.cyclic import Cyclic as Cyclic
from reticent.samplers.fixed_size import FixedSize as FixedSize
from reticent.samplers.poisson import Poisson as Poisson
from reticent.samplers.random_allocation import RandomAllocation as RandomAllocation
from reticent.samplers.shuffled import Shuffled as Shuffled
from reticent.samplers.truncated_poisson import TruncatedPoisson as TruncatedPoisson

for _kind in (Poisson, TruncatedPoisson, FixedSize, RandomAllocation, BlockAllocation, AllocatedOnce, Shuffled, Cyclic):
    SAMPLERS.add(_kind)

INDEPENDENT: Sampler = Poisson()
"""Each record by a coin of its own: what is meant where nothing is said."""
