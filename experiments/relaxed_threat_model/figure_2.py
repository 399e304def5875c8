"""Relaxed threat model, Figure 2: the Gaussian limit, and power over shift/noise with and without subsampling."""

import numpy as np

from experiments.gallery import Entry, Published, Relation, formulas
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled

ALPHA, RATE, DIMENSION, LAM = 1e-3, 0.3, 300, 150 / 25


def run(figure):
    """(a) the limit, (b) power of one Gaussian release, (c) power of one subsampled release."""
    first, second, third = figure.subplots(1, 3)
    alpha, ours = np.linspace(0, 1, 101), {}
    forward = RelaxedGaussianTradeOff(LAM, DIMENSION)
    first.plot(alpha, forward.beta(alpha), color="tab:blue", label="j")
    first.plot(alpha, forward.reversed.beta(alpha), color="tab:green", label="$j^{-1}$")
    first.plot(alpha, 1 - formulas.power_equation_36(alpha, LAM, DIMENSION), "--", color="black", label="Eq. (7)")
    first.set(title="(a) limit, d = 300, N = 150", xlabel="type I error", ylabel="type II error")
    tail = np.logspace(-8, np.log10(0.999), 999)
    gap = forward.power(tail) - formulas.power_equation_36(tail, LAM, DIMENSION)
    ours["(a) distance to the limit, largest"] = np.abs(gap).max()
    ours["(a) power above the limit at alpha 1e-5, factor"] = float(
        forward.power(1e-5) / formulas.power_equation_36(1e-5, LAM, DIMENSION)
    )
    ratios = np.linspace(0.1, 6, 60)
    for axes, letter, rate in ((second, "b", 1.0), (third, "c", RATE)):
        worst = np.array([float(Subsampled(GaussianTradeOff(r), rate).power(ALPHA)) for r in ratios])
        relaxed = np.array([float(Subsampled(RelaxedGaussianTradeOff(r * r, 1), rate).power(ALPHA)) for r in ratios])
        axes.plot(ratios, worst, color="tab:red", label="worst case")
        axes.plot(ratios, relaxed, color="tab:blue", label="relaxed, d = 1")
        axes.set(title=f"({letter}) power at alpha 1e-3, rate {rate:g}", xlabel="shift over noise", ylabel="power")
        ours[f"({letter}) relaxed power above the worst case by at most"] = (relaxed - worst).max()
        ours[f"({letter}) largest loss of power"] = (worst - relaxed).max()
    first.legend()
    second.legend()
    return ours


ENTRY = Entry(
    id="relaxed-threat-model/figure-2",
    title="Gaussian limit and power over the shift",
    run=run,
    published=(
        Published("(a) distance to the limit, largest", 0.0, "section 5: match exactly", 0.001, Relation.AT_MOST),
        Published("(b) relaxed power above the worst case by at most", 0.0, "section 5", 1e-9, Relation.AT_MOST),
        Published("(c) relaxed power above the worst case by at most", 0.0, "section 5", 1e-9, Relation.AT_MOST),
    ),
    reason="The power curves are as stated; the limit in (a) is near but not exact (0.002), and in the tail it "
    "promises too much privacy.",
    settings={
        "(a) shift over noise": "1/5",
        "d": DIMENSION,
        "releases": 150,
        "alpha": ALPHA,
        "sample rate in (c)": RATE,
    },
    inches=(9.0, 3.0),
)
