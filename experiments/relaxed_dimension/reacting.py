"""Advantage against the dimension when gradients react: docs/figures/relaxed-reacting.svg.

Run from the repository root: ``python experiments/relaxed_dimension/reacting.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.adversaries.relaxed.reacting import reacting_in
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms.gradients import Gradients

RUN = DPSGD(noise_multiplier=6.0, sample_rate=0.2, steps=100)
DIMENSIONS = np.unique(np.geomspace(1, 1e5, 21).astype(int))
KINDS = {
    Gradients.LINEAR_HEAD: ("linear head", "#7aa6c2"),
    Gradients.HARD_LABEL_HEAD: ("with hard labels", "#4a7fa3"),
    Gradients.ONE_DIRECTION: ("one direction", "#1f4e79"),
}
TARGET = Path(__file__).parents[2] / "docs" / "figures" / "relaxed-reacting.svg"


def main() -> None:
    """Draw what is claimed for each kind, what attacks reach, the old condition, and the worst case."""
    worst = certified_advantage(RUN.noise_multiplier, RUN.sample_rate, RUN.steps, Neighbouring.ADD_REMOVE)[1]
    fixed = [float(relaxed_in(RUN, int(d)).pessimistic.delta(0.0)) for d in DIMENSIONS]
    plt.rcParams["svg.hashsalt"] = "reticent"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.axhline(worst, color="#a33", linestyle="--", label="worst case")
    for kind, (name, colour) in KINDS.items():
        found = [reacting_in(RUN, int(d), kind) for d in DIMENSIONS]
        ends = np.array([[float(curve.delta(0.0)) for curve in (e.optimistic, e.pessimistic)] for e in found])
        axes.plot(DIMENSIONS, ends[:, 1], color=colour, label=f"{name}, claimed")
        axes.plot(DIMENSIONS, ends[:, 0], color=colour, linestyle=":", label=f"{name}, an attack reaches")
    axes.plot(DIMENSIONS, fixed, color="#888", linestyle="-.", label="fixed length: no bound for training")
    axes.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="advantage")
    axes.set_title("noise 6, sample rate .2, 100 steps", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
