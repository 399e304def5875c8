"""Every name of this package, and where it is read from: see ``reticent.lazy``."""

from reticent.proofs.claims import Basis as Basis
from reticent.proofs.claims import Claim as Claim
from reticent.proofs.claims import claim_of as claim_of
from reticent.proofs.conditions import CONDITIONS as CONDITIONS
from reticent.proofs.conditions import Bearing as Bearing
from reticent.proofs.conditions import Condition as Condition
from reticent.proofs.conditions import Kind as Kind
from reticent.proofs.conditions import Status as Status
from reticent.proofs.conditions import condition as condition
from reticent.proofs.conditions import conditions_by_whom as conditions_by_whom
from reticent.proofs.conditions import vouched as vouched
from reticent.proofs.conditions import worst_first as worst_first
from reticent.proofs.proof import Formula as Formula
from reticent.proofs.proof import Proof as Proof
from reticent.proofs.proof import best as best
from reticent.proofs.proof import without_repeats as without_repeats
