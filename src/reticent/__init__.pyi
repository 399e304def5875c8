"""Every name of the front door and where it is read from: ``reticent.lazy`` reads this file, and type checkers do."""

__version__: str

from reticent.adversaries import Attribute as Attribute
from reticent.adversaries import Membership as Membership
from reticent.adversaries import MembershipGame as MembershipGame
from reticent.adversaries import Mixed as Mixed
from reticent.adversaries import Relaxed as Relaxed
from reticent.adversaries import WorstCase as WorstCase
from reticent.api import assess as assess
from reticent.api import audit as audit
from reticent.api import audit_loop as audit_loop
from reticent.api import calibrate as calibrate
from reticent.api import calibrate_samplers as calibrate_samplers
from reticent.api import certify as certify
from reticent.api import compare as compare
from reticent.api import dpsgd as dpsgd
from reticent.api import lint as lint
from reticent.api import random_allocation as random_allocation
from reticent.api import secure_noise as secure_noise
from reticent.api import verify as verify
from reticent.api import watch as watch
from reticent.api.measures import advantage as advantage
from reticent.api.measures import bayes_security as bayes_security
from reticent.api.measures import delta_at_epsilon as delta_at_epsilon
from reticent.api.measures import epsilon_at_delta as epsilon_at_delta
from reticent.api.measures import mu as mu
from reticent.api.measures import ppv as ppv
from reticent.api.measures import secret_success as secret_success
from reticent.api.measures import success as success
from reticent.api.measures import tpr_at_fpr as tpr_at_fpr
from reticent.mechanisms import DPSGD as DPSGD
from reticent.mechanisms import FilteredGaussian as FilteredGaussian
from reticent.mechanisms import Gaussian as Gaussian
from reticent.mechanisms import GaussianFilter as GaussianFilter
from reticent.mechanisms import Gradients as Gradients
from reticent.mechanisms import Guarantee as Guarantee
from reticent.mechanisms import Laplace as Laplace
from reticent.mechanisms import Ledger as Ledger
from reticent.mechanisms import Neighbouring as Neighbouring
from reticent.mechanisms import RandomisedResponse as RandomisedResponse
from reticent.mechanisms import Sampler as Sampler
from reticent.mechanisms import Selection as Selection
from reticent.pairs import Fixed as Fixed
from reticent.pairs import Geometric as Geometric
from reticent.pairs import NegativeBinomial as NegativeBinomial
from reticent.pairs import Poisson as Poisson
