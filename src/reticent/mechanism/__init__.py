"""What was released: mechanisms as frozen data, their sampling, and the neighbouring relation."""

from reticent.mechanism.neighbouring import Neighbouring
from reticent.mechanism.releases import DPSGD, Gaussian, Laplace, Ledger, Mechanism
from reticent.mechanism.sampling import Sampler

__all__ = ["DPSGD", "Gaussian", "Laplace", "Ledger", "Mechanism", "Neighbouring", "Sampler"]
