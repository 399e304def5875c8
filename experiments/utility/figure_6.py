"""Utility, Figure 6: logistic regression on Adult by kinds of gradients; trained beforehand by ``reacting``."""

from experiments.utility.report import kinds_entry
from reticent.gallery import Published, Relation

ENTRY = kinds_entry(
    6,
    "adult-linear",
    "Logistic regression on Adult",
    (
        Published(
            "one-direction, d measured, 37: gain in points",
            1.0,
            "KAISSIS2023, section 5: substantially improved accuracy; a point is our reading",
            0.0,
            Relation.AT_LEAST,
        ),
    ),
    "REASON",
    {
        "features": "108 columns, moved and whitened by public records",
        "seeds": "0 to 2",
        "model": "linear, no bias, two labels",
    },
)
