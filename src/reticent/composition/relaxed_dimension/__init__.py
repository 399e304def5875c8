"""The relaxed adversary of sampled runs in the dimension that the user states, from above and from below."""

from reticent.composition.relaxed_dimension.chain import relaxed_replace
from reticent.composition.relaxed_dimension.directions import DirectionLaw, relaxed_under
from reticent.composition.relaxed_dimension.enclose import relaxed_advantage, relaxed_estimate, relaxed_in
from reticent.composition.relaxed_dimension.reacting import reacting_advantage, reacting_in, reacting_replace

__all__ = [
    "DirectionLaw",
    "reacting_advantage",
    "reacting_in",
    "reacting_replace",
    "relaxed_advantage",
    "relaxed_estimate",
    "relaxed_in",
    "relaxed_replace",
    "relaxed_under",
]
