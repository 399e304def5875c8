"""What was released: mechanisms as frozen data, their sampling, and the neighbouring relation."""

from reticent.mechanisms.base import MECHANISMS, Mechanism
from reticent.mechanisms.dpsgd import DPSGD
from reticent.mechanisms.gaussian import Gaussian
from reticent.mechanisms.gradients import Gradients
from reticent.mechanisms.laplace import Laplace
from reticent.mechanisms.ledger import Ledger
from reticent.mechanisms.matrix import MatrixMechanism
from reticent.mechanisms.randomised_response import RandomisedResponse
from reticent.mechanisms.sampling import Sampler
from reticent.pairs import Neighbouring, Part

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
