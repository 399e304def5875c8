"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

# isort: off
# kinds: in the order in which certificates and tables show them
from reticent.kernel.adversaries.worst_case import WorstCase as WorstCase
from reticent.adversaries.relaxed.adversary import Relaxed as Relaxed
from reticent.adversaries.relaxed.population import Population as Population
from reticent.adversaries.mixed import Mixed as Mixed
from reticent.adversaries.membership import Membership as Membership
from reticent.adversaries.game.adversary import MembershipGame as MembershipGame
from reticent.adversaries.relaxed.norm_only import NormOnly as NormOnly
from reticent.adversaries.final_model import FinalModel as FinalModel
from reticent.adversaries.attribute.adversary import Attribute as Attribute
