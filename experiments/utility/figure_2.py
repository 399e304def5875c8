"""Utility, Figure 2: accuracy on Adult at the noise that each attacker allows; trained beforehand by ``cells``."""

from experiments.utility.report import accuracy_entry
from reticent.papers import Published, Relation

ENTRY = accuracy_entry(
    2,
    "adult",
    "Adult",
    Published(
        "as published, step by step, advantage 0.1: gain in points",
        1.0,
        "KAISSIS2023, section 5: substantially improved accuracy; a point is our reading",
        0.0,
        Relation.AT_LEAST,
    ),
    "On Adult no threat model buys anything: at advantage 0.1 even a worst-case run is within 0.2 points of "
    "training without noise, so all that a weaker attacker changes is the price (true epsilon 1.06 to 149).",
    {"model": "64 hidden units"},
)
