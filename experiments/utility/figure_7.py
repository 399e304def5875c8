"""Utility, Figure 7: a linear head on CIFAR-10 by kinds of gradients; trained beforehand by ``reacting``."""

from experiments.utility.report import kinds_entry
from reticent.gallery import Published, Relation

ENTRY = kinds_entry(
    7,
    "cifar-10-linear",
    "A linear head on CIFAR-10",
    (
        Published(
            "any gradients, epsilon 3: accuracy",
            0.67,
            "Tramer and Boneh, Differentially Private Learning Needs Better Features (2021): a linear model on fixed "
            "features reaches 67 to 69 % at epsilon 3",
            0.0,
            Relation.AT_LEAST,
        ),
    ),
    "REASON",
    {"features": "random patches, data-free, 9000 columns", "seeds": "0 and 1", "model": "linear, no bias, ten labels"},
)
