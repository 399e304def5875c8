"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.pairs.laplace import LaplacePair as LaplacePair
from reticent.pairs.mixed import MixedPair as MixedPair
from reticent.pairs.random_allocation import AllocatedGaussianPair as AllocatedGaussianPair
from reticent.pairs.random_allocation import AllocatedPersonPair as AllocatedPersonPair
from reticent.pairs.runs import Fixed as Fixed
from reticent.pairs.runs import Geometric as Geometric
from reticent.pairs.runs import NegativeBinomial as NegativeBinomial
from reticent.pairs.runs import Poisson as Poisson
from reticent.pairs.runs import Runs as Runs
from reticent.pairs.selected import OneOfPairs as OneOfPairs
from reticent.pairs.selected import SelectedPair as SelectedPair
