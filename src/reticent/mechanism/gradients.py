"""How a record's gradient may react to the weights: what is known of it decides which theorems hold for training."""

from __future__ import annotations

from enum import StrEnum


class Gradients(StrEnum):
    """How the gradient of one record may change along a run. The first needs a condition, the others hold by form."""

    FIXED = "fixed"
    """One direction, and a length that does not depend on it: a fixed query, or a condition that nobody checked."""
    ONE_DIRECTION = "one-direction"
    """One direction, any length that reacts to anything: a linear model with one output."""
    LINEAR_HEAD = "linear-head"
    """The record's features times any vector: a last linear layer on frozen features, several outputs."""
    ANY = "any"
    """Anything: what is proven is the worst case."""
