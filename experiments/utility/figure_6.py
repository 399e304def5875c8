"""Utility, Figure 6: logistic regression on Adult by kinds of gradients; trained beforehand by ``reacting``."""

from experiments.utility.report import kinds_entry

ENTRY = kinds_entry(
    6,
    "adult-linear",
    "Logistic regression on Adult",
    (),
    "REASON",
    {
        "features": "108 columns, moved and whitened by public records",
        "seeds": "0 to 2",
        "model": "linear, no bias, two labels",
    },
)
