"""The relaxed adversary of sampled runs in the dimension that the user states, from above and from below."""

from reticent.adversaries.relaxed.dimension.chain import relaxed_replace as relaxed_replace
from reticent.adversaries.relaxed.dimension.directions import DirectionLaw as DirectionLaw
from reticent.adversaries.relaxed.dimension.directions import relaxed_under as relaxed_under
from reticent.adversaries.relaxed.dimension.enclose import relaxed_advantage as relaxed_advantage
from reticent.adversaries.relaxed.dimension.enclose import relaxed_estimate as relaxed_estimate
from reticent.adversaries.relaxed.dimension.enclose import relaxed_in as relaxed_in
