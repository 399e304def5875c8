"""Advantage against the stated dimension, for one run: docs/figures/relaxed-dimension.svg.

Run from the repository root: ``python experiments/relaxed_dimension/figure.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring

RUN = DPSGD(noise_multiplier=1.1, sample_rate=256 / 60000, steps=14000)
DIMENSIONS = np.unique(np.geomspace(1, 1e6, 25).astype(int))
TARGET = Path(__file__).parents[2] / "docs" / "figures" / "relaxed-dimension.svg"


def main() -> None:
    """Draw both ends of the enclosure, and the worst case beside them."""
    found = [relaxed_in(RUN, int(d)) for d in DIMENSIONS]
    ends = np.array([[float(curve.delta(0.0)) for curve in (e.optimistic, e.pessimistic)] for e in found])
    worst = certified_advantage(RUN.noise_multiplier, RUN.sample_rate, RUN.steps, Neighbouring.ADD_REMOVE)[1]
    plt.rcParams["svg.hashsalt"] = "reticent"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.fill_between(DIMENSIONS, ends[:, 0], ends[:, 1], color="#7aa6c2", label="relaxed, enclosed")
    axes.plot(DIMENSIONS, ends[:, 1], color="#1f4e79", label="relaxed, what is claimed")
    axes.axhline(worst, color="#a33", linestyle="--", label="worst case")
    axes.set(xscale="log", yscale="log", xlabel="stated dimension d", ylabel="advantage")
    axes.set_title("noise 1.1, sample rate 256/60000, 14,000 steps", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
