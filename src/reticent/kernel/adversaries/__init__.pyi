"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.adversaries.base import ADVERSARIES as ADVERSARIES
from reticent.kernel.adversaries.base import Adversary as Adversary
from reticent.kernel.adversaries.base import Assessment as Assessment
from reticent.kernel.adversaries.base import Method as Method
from reticent.kernel.adversaries.base import everybody as everybody
from reticent.kernel.adversaries.base import style_of as style_of
from reticent.kernel.adversaries.side_by_side import assess as assess
from reticent.kernel.adversaries.side_by_side import assess_answerable as assess_answerable
from reticent.kernel.adversaries.side_by_side import check_dominance as check_dominance
from reticent.kernel.adversaries.worst_case import WorstCase as WorstCase
