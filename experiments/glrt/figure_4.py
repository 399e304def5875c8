"""GLRT Figure 4: epsilon over the dimension at shift = noise = 1."""

import numpy as np

from experiments.gallery import Entry, Published, Relation
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff, symmetrised
from reticent.kernel.risk import epsilon_at_delta

DIMENSIONS = (1, 2, 5, 10, 20, 50, 100, 200, 300, 500)


def run(figure):
    """Epsilon at the printed delta, and at a delta where it is not zero."""
    axes, ours = figure.subplots(), {}
    for delta, style in ((1e-1, "o-"), (1e-4, "s--")):
        values = np.array([epsilon_at_delta(symmetrised(RelaxedGaussianTradeOff(1.0, d)), delta) for d in DIMENSIONS])
        worst = epsilon_at_delta(GaussianTradeOff(1.0), delta)
        (line,) = axes.plot(DIMENSIONS, values, style, markersize=3, label=f"GLRT, delta = {delta:g}")
        axes.axhline(
            worst, color=line.get_color(), linewidth=0.7, linestyle=":", label=f"worst case, delta = {delta:g}"
        )
        ours[f"dimensions with epsilon above 0, delta {delta:g}"] = float((values > 0).sum())
        ours[f"largest step upwards, delta {delta:g}"] = float(np.diff(values).max())
        ours |= {
            f"epsilon at d = {d}, delta {delta:g}": v
            for d, v in zip(DIMENSIONS, values, strict=True)
            if d in (1, 5, 500)
        }
    axes.set(xscale="log", xlabel="dimension d of the query", ylabel="epsilon")
    axes.legend()
    return ours


ENTRY = Entry(
    id="glrt/figure-4",
    title="Epsilon over the dimension of the query",
    run=run,
    published=(
        Published("largest step upwards, delta 0.1", 0.0, "caption: decrease", 1e-9, Relation.AT_MOST),
        Published("dimensions with epsilon above 0, delta 0.1", 10.0, "caption: curve over d up to 500"),
    ),
    reason="Epsilon falls with the dimension, but at the printed delta of 0.1 it is exactly 0 at seven of the ten "
    "points (the total variation is below 0.1 from d = 7 on), so another delta was probably drawn.",
    settings={
        "shift": 1,
        "noise variance": 1,
        "d": "1, 2, 5, 10, 20, 50, 100, 200, 300, 500",
        "delta": "0.1 (printed), 1e-4",
    },
    inches=(5.0, 3.4),
)
