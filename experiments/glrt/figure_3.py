"""GLRT Figure 3: dimension 1 against dimension 30 at shift = noise = 1."""

import numpy as np

from experiments.gallery import Entry, Published
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff, symmetrised
from reticent.kernel.risk import epsilon_at_delta


def run(figure):
    """Both curves, with the worst case, which knows no dimension."""
    axes, fpr, ours = figure.subplots(), np.linspace(0, 1, 201), {}
    worst = GaussianTradeOff(1.0)
    ours["epsilon, worst case"] = epsilon_at_delta(worst, 1e-4)
    for dimension, colour in ((1, "tab:red"), (30, "tab:blue")):
        curve = symmetrised(RelaxedGaussianTradeOff(1.0, dimension))
        ours[f"epsilon, d = {dimension}"] = epsilon = epsilon_at_delta(curve, 1e-4)
        axes.plot(fpr, curve.power(fpr), color=colour, label=f"GLRT, d = {dimension}: ({epsilon:.2f}, 1e-4)-DP")
    label = f"worst case, every d: ({ours['epsilon, worst case']:.2f}, 1e-4)-DP"
    axes.plot(fpr, worst.power(fpr), "--", color="grey", label=label)
    axes.set(xlabel="probability of false positive", ylabel="probability of detection", aspect="equal")
    axes.legend()
    return ours


ENTRY = Entry(
    id="glrt/figure-3",
    title="Dimension 1 against dimension 30",
    run=run,
    published=(
        Published("epsilon, d = 1", 3.11, "caption", 0.005),
        Published("epsilon, d = 30", 0.46, "caption", 0.005),
    ),
    reason="Both printed epsilons come out; the worst case, drawn beside them, is 3.80 at every dimension.",
    settings={"shift": 1, "noise variance": 1, "delta": 1e-4},
    inches=(4.2, 4.0),
)
