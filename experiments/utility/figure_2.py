"""Utility, Figure 2: accuracy on Adult at the noise that each attacker allows; trained beforehand by ``cells``."""

from experiments.gallery import Published, Relation
from experiments.utility.report import accuracy_entry

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
    "On Adult no threat model buys accuracy. At advantage 0.1 even a worst-case run is within 0.2 points of training "
    "without noise. All that a weaker attacker changes is the true worst-case epsilon, from 1.06 up to 149.",
    {"model": "64 hidden units"},
)
