"""GLRT Figure 7: subsampling, 100 compositions, rate 0.2, noise 6."""

import numpy as np

from experiments.gallery import Entry, Measured, Published, Relation
from reticent.adversaries import NormOnly
from reticent.adversaries.relaxed.sign import unknown_sign
from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring


def run(figure):
    """Profiles: worst case, GLRT composed as published, and one unknown sign shared by all releases."""
    axes, epsilon = figure.subplots(), np.linspace(0, 0.5, 51)
    mechanism = DPSGD(noise_multiplier=6.0, sample_rate=0.2, steps=100)
    brackets = {
        "worst case": (compose(mechanism, Neighbouring.ADD_REMOVE), "tab:red", "-"),
        "GLRT as published: releases composed one by one": (NormOnly().assess(mechanism).truth, "tab:blue", "-"),
        "GLRT, one sign in all releases (enclosure)": (unknown_sign(mechanism), "black", "--"),
    }
    ours = {}
    for name, (bracket, colour, style) in brackets.items():
        high, low = bracket.pessimistic, bracket.optimistic
        axes.semilogy(epsilon, high.delta(epsilon), style, color=colour, label=name)
        ends = [float(low.delta(0.2)), float(high.delta(0.2))]
        ours[f"delta at epsilon 0.2, {name}"] = Measured(ends[1], *ends, "enclosure", 1e-3 * ends[1])
    published, shared = (list(ours.values())[i] for i in (1, 2))
    ours["true delta over the published one at epsilon 0.2, at least"] = Measured(
        shared.low / published.high, drift=0.01 * shared.low / published.high
    )
    axes.set(xlabel="epsilon", ylabel="delta", ylim=(1e-10, 1))
    axes.legend()
    return ours


ENTRY = Entry(
    id="glrt/figure-7",
    title="Subsampling amplification over 100 compositions",
    run=run,
    published=(
        Published(
            "true delta over the published one at epsilon 0.2, at least",
            1.0,
            "section 4.6: profiles compose losslessly",
            0.0,
            Relation.AT_MOST,
        ),
    ),
    reason="Composing release by release answers for a direction drawn anew each time; against the paper's own "
    "adversary, one sign in all releases, delta at epsilon 0.2 is 3.25e-3, not 1.35e-7.",
    settings={"shift": 1, "noise variance": 36, "sample rate": 0.2, "compositions": 100},
    inches=(5.4, 3.6),
)
