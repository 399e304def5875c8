"""What was released: mechanisms as frozen data, their sampling, and the neighbouring relation."""

from reticent.mechanism.base import MECHANISMS, Mechanism, Neighbouring, Part
from reticent.mechanism.dpsgd import DPSGD
from reticent.mechanism.gaussian import Gaussian
from reticent.mechanism.gradients import Gradients
from reticent.mechanism.laplace import Laplace
from reticent.mechanism.ledger import Ledger
from reticent.mechanism.matrix import MatrixMechanism
from reticent.mechanism.randomised_response import RandomisedResponse
from reticent.mechanism.sampling import Sampler

__all__ = [
    "DPSGD",
    "MECHANISMS",
    "Gaussian",
    "Gradients",
    "Laplace",
    "Ledger",
    "MatrixMechanism",
    "Mechanism",
    "Neighbouring",
    "Part",
    "RandomisedResponse",
    "Sampler",
]
