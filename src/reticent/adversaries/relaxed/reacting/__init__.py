"""The relaxed adversary where gradients react to the model: linear models and linear heads, from above."""

from reticent.adversaries.relaxed.reacting.enclose import reacting_in as reacting_in
