"""The relaxed adversary of sampled runs in the dimension that the user states, from above and from below."""

from reticent.adversaries.relaxed.dimension.chain import relaxed_replace
from reticent.adversaries.relaxed.dimension.directions import DirectionLaw, relaxed_under
from reticent.adversaries.relaxed.dimension.enclose import relaxed_advantage, relaxed_estimate, relaxed_in

__all__ = ["DirectionLaw", "relaxed_advantage", "relaxed_estimate", "relaxed_in", "relaxed_replace", "relaxed_under"]
