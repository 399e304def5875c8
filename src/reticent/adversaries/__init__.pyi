"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.adversaries.base import ADVERSARIES as ADVERSARIES
from reticent.adversaries.base import Adversary as Adversary
from reticent.adversaries.base import Assessment as Assessment
from reticent.adversaries.base import Method as Method
from reticent.adversaries.base import everybody as everybody
from reticent.adversaries.base import style_of as style_of
from reticent.adversaries.side_by_side import assess as assess
from reticent.adversaries.side_by_side import assess_answerable as assess_answerable
from reticent.adversaries.side_by_side import check_dominance as check_dominance
from reticent.curves.enclosure import Interval as Interval
from reticent.proofs import Claim as Claim

# isort: off
# kinds: in the order in which certificates and tables show them
from reticent.adversaries.worst_case import WorstCase as WorstCase
from reticent.adversaries.relaxed.adversary import Relaxed as Relaxed
from reticent.adversaries.mixed import Mixed as Mixed
from reticent.adversaries.membership import Membership as Membership
from reticent.adversaries.game.adversary import MembershipGame as MembershipGame
from reticent.adversaries.relaxed.norm_only import NormOnly as NormOnly
from reticent.adversaries.final_model import FinalModel as FinalModel
from reticent.adversaries.attribute.adversary import Attribute as Attribute
