"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.kernel.proofs.claims import Basis as Basis
from reticent.kernel.proofs.claims import Claim as Claim
from reticent.kernel.proofs.claims import claim_of as claim_of
from reticent.kernel.proofs.conditions import CONDITIONS as CONDITIONS
from reticent.kernel.proofs.conditions import Bearing as Bearing
from reticent.kernel.proofs.conditions import Condition as Condition
from reticent.kernel.proofs.conditions import Kind as Kind
from reticent.kernel.proofs.conditions import Status as Status
from reticent.kernel.proofs.conditions import condition as condition
from reticent.kernel.proofs.conditions import conditions_by_whom as conditions_by_whom
from reticent.kernel.proofs.conditions import vouched as vouched
from reticent.kernel.proofs.conditions import worst_first as worst_first
from reticent.kernel.proofs.proof import Formula as Formula
from reticent.kernel.proofs.proof import Proof as Proof
from reticent.kernel.proofs.proof import best as best
from reticent.kernel.proofs.proof import without_repeats as without_repeats
