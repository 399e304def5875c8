"""Composition: many releases, one curve, with a bound on each numerical error."""

from reticent.composition.bracket import Bracket
from reticent.composition.compose import compose
from reticent.composition.sampling import sampling_notes

__all__ = ["Bracket", "compose", "sampling_notes"]
