"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.pairs.antipodal import AntipodalGaussianPair as AntipodalGaussianPair
from reticent.kernel.pairs.base import Drawn as Drawn
from reticent.kernel.pairs.base import Pair as Pair
from reticent.kernel.pairs.curve import CurvePair as CurvePair
from reticent.kernel.pairs.disclosure import Disclosure as Disclosure
from reticent.kernel.pairs.gaussian import GaussianPair as GaussianPair
from reticent.kernel.pairs.gaussian import SymmetrisedGaussianPair as SymmetrisedGaussianPair
from reticent.kernel.pairs.losses import LossMasses as LossMasses
from reticent.kernel.pairs.neighbouring import Neighbouring as Neighbouring
from reticent.kernel.pairs.part import Part as Part
from reticent.kernel.pairs.poisson import poisson_gaussian as poisson_gaussian
from reticent.kernel.pairs.whole_user import WholeUserGaussianPair as WholeUserGaussianPair
