"""GLRT Figure 2: R, R', their symmetrised envelope, and the worst case at shift = noise = 1."""

import numpy as np

from experiments.gallery import Entry, Published, Relation
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff, symmetrised


def run(figure):
    """Four curves; R' must be R mirrored at the off-diagonal, R_s its own mirror image."""
    axes, fpr = figure.subplots(), np.linspace(0, 1, 201)
    forward = RelaxedGaussianTradeOff(1.0, 1)
    both, worst = symmetrised(forward), GaussianTradeOff(1.0)
    axes.plot(fpr, forward.power(fpr), color="tab:blue", label="R")
    axes.plot(fpr, forward.reversed.power(fpr), color="tab:green", label="R'")
    axes.plot(fpr, both.power(fpr), "--", color="black", label="$R_s$, GLRT")
    axes.plot(fpr, worst.power(fpr), color="tab:red", label="$R_N$, worst case")
    axes.set(xlabel="probability of false positive", ylabel="probability of detection", aspect="equal")
    axes.legend()
    inner = np.linspace(0.001, 0.999, 999)
    mirrored = forward.reversed.beta(forward.beta(inner))
    return {
        "R' against R mirrored, largest distance": np.abs(mirrored - inner).max(),
        "R_s against R_s mirrored, largest distance": np.abs(both.beta(both.beta(inner)) - inner).max(),
        "R itself against R mirrored, largest distance": np.abs(forward.beta(forward.beta(inner)) - inner).max(),
        "R_s above the worst case by at most": (both.power(inner) - worst.power(inner)).max(),
    }


ENTRY = Entry(
    id="glrt/figure-2",
    title="R, R' and their symmetrised envelope beside the worst case",
    run=run,
    published=(
        Published("R' against R mirrored, largest distance", 0.0, "caption", 1e-6),
        Published("R_s against R_s mirrored, largest distance", 0.0, "caption: symmetric", 1e-6),
        Published(
            "R itself against R mirrored, largest distance", 0.02, "caption: not symmetric", 0, Relation.AT_LEAST
        ),
        Published("R_s above the worst case by at most", 0.0, "caption: R_N for reference", 1e-9, Relation.AT_MOST),
    ),
    reason="The four curves have the symmetries that the caption states, and the worst case lies above all of them.",
    settings={"shift": 1, "noise variance": 1, "dimension": 1},
    inches=(4.2, 4.0),
)
