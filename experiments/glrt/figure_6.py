"""GLRT Figure 6: privacy profiles of both adversaries at shift = noise = 1."""

import numpy as np

from experiments.gallery import Entry, Published, Relation
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff, symmetrised


def run(figure):
    """Two profiles, and the floor below which no unknown sign can push the GLRT profile."""
    axes, epsilon = figure.subplots(), np.linspace(0, 5, 101)
    worst, relaxed = GaussianTradeOff(1.0), symmetrised(RelaxedGaussianTradeOff(1.0, 1))
    floor = worst.delta(epsilon + np.log(2))
    axes.semilogy(epsilon, worst.delta(epsilon), color="tab:red", label="worst case")
    axes.semilogy(epsilon, relaxed.delta(epsilon), color="tab:blue", label="GLRT, d = 1")
    axes.semilogy(epsilon, floor, ":", color="grey", label="worst case at epsilon + log 2: the floor for d = 1")
    axes.set(xlabel="epsilon", ylabel="delta")
    axes.legend()
    ratio = relaxed.delta(epsilon) / worst.delta(epsilon)
    return {
        "GLRT delta over worst-case delta, largest": ratio.max(),
        "the same at epsilon 1": ratio[20],
        "the same at epsilon 0": ratio[0],
        "GLRT delta under its floor by at most": (floor - relaxed.delta(epsilon)).max(),
    }


ENTRY = Entry(
    id="glrt/figure-6",
    title="Privacy profiles of both adversaries",
    run=run,
    published=(
        Published("GLRT delta over worst-case delta, largest", 1.0, "caption: reduction", 0.0, Relation.AT_MOST),
        Published("the same at epsilon 1", 0.75, "text: considerably lower for epsilon < 2", 0.0, Relation.AT_MOST),
    ),
    reason="The GLRT profile lies below the worst case everywhere; an unknown sign is worth at most log 2 in epsilon.",
    settings={"shift": 1, "noise variance": 1, "dimension": 1},
    inches=(5.0, 3.4),
)
