"""Closed-form bounds, Figure 2: distance of one subsampled step to the Gaussian with the same mean."""

import numpy as np
from scipy.stats import norm

from experiments.gallery import Entry, Measured, Published, Relation
from experiments.gallery.mixture_as_gaussian import mixture_error
from experiments.worst_advantage import advantage
from reticent.kernel.pairs import Neighbouring

NOISES, RATES = (0.5, 0.7, 1.0, 2.0, 4.0), np.logspace(-4, -0.3, 20)


def run(figure):
    """Left: one step, as printed; right: what the closed form misses after one epoch per 1/p steps, 50 epochs."""
    left, right = figure.subplots(1, 2)
    one = np.array([[mixture_error(noise, rate)[0] for rate in RATES] for noise in NOISES])
    rates = RATES[RATES < 0.05]
    many = np.array(
        [
            [
                advantage(noise, rate, round(50 / rate), Neighbouring.REPLACE)
                - (1 - 2 * norm.sf(rate * np.sqrt(round(50 / rate)) / noise))
                for rate in rates
            ]
            for noise in NOISES
        ]
    )
    for noise, row, later in zip(NOISES, one, many, strict=True):
        left.loglog(RATES, row, label=f"noise {noise}")
        right.semilogx(rates, later, label=f"noise {noise}")
    left.set(xlabel="sample rate p", ylabel="total variation", title="one step")
    right.set(
        xlabel="sample rate p",
        ylabel="exact advantage minus closed form",
        title="50 epochs: the closed form is too small",
    )
    left.legend()
    small = RATES[None, :] / np.array(NOISES)[:, None] <= 0.01
    # An integral, and the middle of enclosures: they keep five digits from machine to machine.
    return {
        "one step, rate over noise at most 0.01: largest error": Measured(one[small].max(), drift=1e-7),
        "one step, all of the grid: largest error": Measured(one.max(), drift=1e-7),
        "50 epochs, noise 0.5: closed form too small by at most": Measured(many[0].max(), drift=1e-5),
        "50 epochs, noise 1: closed form too small by at most": Measured(many[2].max(), drift=1e-5),
        "50 epochs, noise 4: closed form too small by at most": Measured(many[4].max(), drift=1e-7),
    }


ENTRY = Entry(
    id="closed-form-bounds/figure-2",
    title="Error of replacing a mixture of Gaussians by one Gaussian",
    run=run,
    published=(
        Published(
            "one step, rate over noise at most 0.01: largest error", 0.01, "caption: negligible", 0.0, Relation.AT_MOST
        ),
    ),
    reason="For one step a small ratio of rate to noise makes the error negligible, as stated; over many steps the "
    "errors add up, and below noise 1 the closed form claims too little risk however small the rate is.",
    settings={"steps": "1, and 50/p"},
    inches=(8.0, 3.2),
)
