"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.pairs.antipodal import AntipodalGaussianPair as AntipodalGaussianPair
from reticent.pairs.base import Drawn as Drawn
from reticent.pairs.base import Pair as Pair
from reticent.pairs.curve import CurvePair as CurvePair
from reticent.pairs.disclosure import Disclosure as Disclosure
from reticent.pairs.gaussian import GaussianPair as GaussianPair
from reticent.pairs.gaussian import SymmetrisedGaussianPair as SymmetrisedGaussianPair
from reticent.pairs.laplace import LaplacePair as LaplacePair
from reticent.pairs.losses import LossMasses as LossMasses
from reticent.pairs.mixed import MixedPair as MixedPair
from reticent.pairs.neighbouring import Neighbouring as Neighbouring
from reticent.pairs.part import Part as Part
from reticent.pairs.poisson import poisson_gaussian as poisson_gaussian
from reticent.pairs.random_allocation import AllocatedGaussianPair as AllocatedGaussianPair
from reticent.pairs.random_allocation import AllocatedPersonPair as AllocatedPersonPair
from reticent.pairs.runs import Fixed as Fixed
from reticent.pairs.runs import Geometric as Geometric
from reticent.pairs.runs import NegativeBinomial as NegativeBinomial
from reticent.pairs.runs import Poisson as Poisson
from reticent.pairs.runs import Runs as Runs
from reticent.pairs.selected import OneOfPairs as OneOfPairs
from reticent.pairs.selected import SelectedPair as SelectedPair
from reticent.pairs.whole_user import WholeUserGaussianPair as WholeUserGaussianPair
