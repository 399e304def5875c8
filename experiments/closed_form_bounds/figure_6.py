"""Closed-form bounds, Figure 6: the advantage bound of several epsilons against one minus Bayes security."""

import numpy as np
from scipy.special import erf

from experiments.gallery import Entry, Published, Relation
from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage_bound

RATE, NOISES, EPSILONS = 10 / 100_000, np.linspace(0.3, 3, 28), (2.0, 1.0, 0.5, 0.1, 0.0)


def run(figure):
    """(e^eps - 1 + 2 delta)/(e^eps + 1) over the noise; epsilon = 0 is the exact advantage."""
    axes = figure.subplots()
    curves = [compose(DPSGD(noise, RATE, 1), Neighbouring.REPLACE).pessimistic for noise in NOISES]
    bounds = {}
    for epsilon in EPSILONS:
        delta = np.array([float(curve.delta(epsilon)) for curve in curves])
        bounds[epsilon] = advantage_bound(epsilon, delta)
        axes.semilogy(NOISES, bounds[epsilon], label=f"epsilon = {epsilon:g}")
    printed = erf(RATE / (np.sqrt(2) * NOISES))
    axes.semilogy(NOISES, printed, "--", color="black", label="1 - Bayes security by Corollary 7")
    axes.set(xlabel="noise multiplier", ylabel="bound on the advantage")
    axes.legend()
    others = np.min([bounds[e] for e in EPSILONS[:-1]], axis=0)
    return {
        "bound at epsilon 0 above the best other one, at most": (bounds[0.0] - others).max(),
        "advantage at noise 1, exact": float(np.interp(1.0, NOISES, bounds[0.0])),
        "Corollary 7 over exact, smallest": (printed / bounds[0.0]).min(),
        "Corollary 7 over exact, largest": (printed / bounds[0.0]).max(),
    }


ENTRY = Entry(
    id="closed-form-bounds/figure-6",
    title="Advantage from (epsilon, delta) and from Bayes security",
    run=run,
    published=(
        Published(
            "bound at epsilon 0 above the best other one, at most",
            0.0,
            "section 4.2: tightest",
            1e-12,
            Relation.AT_MOST,
        ),
        Published("Corollary 7 over exact, smallest", 1.0, "Corollary 7 as a bound, T = 1", 1e-9, Relation.AT_LEAST),
    ),
    reason="The bound from epsilon = 0 is the tightest, and for a single step Corollary 7 does stay above the exact "
    "advantage.",
    settings={"N": 100_000, "L": 10, "C": 1, "steps": 1, "neighbouring": "replace"},
    inches=(5.2, 3.6),
)
