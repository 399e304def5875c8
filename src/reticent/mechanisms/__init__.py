"""What was released: mechanisms as frozen data, their sampling, and the neighbouring relation.

A file here gives the pairs that dominate a release, and the theorems that say so. What an attacker makes of them is in
``reticent.adversaries``; what really ran is in ``reticent.records``.
"""

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

for _kind in (Gaussian, Laplace, DPSGD, RandomisedResponse, MatrixMechanism):
    MECHANISMS.add(_kind)

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
