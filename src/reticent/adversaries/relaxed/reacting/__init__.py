"""The relaxed adversary where gradients react to the model: linear models and linear heads, from above."""

from reticent.adversaries.relaxed.reacting.enclose import reacting_advantage, reacting_in, reacting_replace

__all__ = ["reacting_advantage", "reacting_in", "reacting_replace"]
