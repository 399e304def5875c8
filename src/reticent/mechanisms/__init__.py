"""What was released, as frozen data, and the pairs that dominate it. What follows from a release is not said here."""

from reticent.mechanisms.base import MECHANISMS, Mechanism
from reticent.mechanisms.dpsgd import DPSGD
from reticent.mechanisms.filtered import FilteredGaussian, GaussianFilter
from reticent.mechanisms.gaussian import Gaussian
from reticent.mechanisms.gradients import Gradients
from reticent.mechanisms.guarantee import Guarantee
from reticent.mechanisms.laplace import Laplace
from reticent.mechanisms.ledger import Ledger
from reticent.mechanisms.matrix import MatrixMechanism
from reticent.mechanisms.one_of import OneOf
from reticent.mechanisms.randomised_response import RandomisedResponse
from reticent.mechanisms.sampling import Sampler
from reticent.mechanisms.selection import Selection
from reticent.pairs import Neighbouring, Part

for _kind in (Gaussian, Laplace, DPSGD, RandomisedResponse, MatrixMechanism, Guarantee, FilteredGaussian):
    MECHANISMS.add(_kind)

__all__ = [
    "DPSGD",
    "MECHANISMS",
    "FilteredGaussian",
    "Gaussian",
    "GaussianFilter",
    "Gradients",
    "Guarantee",
    "Laplace",
    "Ledger",
    "MatrixMechanism",
    "Mechanism",
    "Neighbouring",
    "OneOf",
    "Part",
    "RandomisedResponse",
    "Sampler",
    "Selection",
]
