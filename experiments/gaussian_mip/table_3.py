"""Gaussian MIP, Table 3: privacy levels of the verification experiment."""

import numpy as np

from experiments.gallery import Entry, Published
from reticent.kernel.curves import GaussianTradeOff

SETTINGS = {"CIFAR-10": (650, 500), "Purchase": (2580, 1970), "Adult": (1026, 790)}


def run(figure):
    """mu of one step and of five, and the curves that they stand for."""
    axes, ours, fpr = figure.subplots(), {}, np.linspace(0, 1, 101)
    for name, (d, n) in SETTINGS.items():
        one = np.sqrt(2 * d / (2 * n + 1))
        ours[f"{name}: mu of one step"], ours[f"{name}: mu of five steps"] = one, np.sqrt(5) * one
        for mu, style in ((one, "-"), (np.sqrt(5) * one, "--")):
            axes.plot(fpr, GaussianTradeOff(mu).beta(fpr), style, label=f"{name}, mu = {mu:.3f}")
    axes.set(xlabel="type I error", ylabel="type II error")
    axes.legend()
    return ours


ENTRY = Entry(
    id="gaussian-mip/table-3",
    title="Parameters of the verification experiment",
    run=run,
    published=tuple(
        Published(f"{name}: mu of {steps}", value, "caption", 0.005)
        for name in SETTINGS
        for steps, value in (("one step", 1.13), ("five steps", 2.54))
    ),
    reason="Corollary 5.1 gives 1.140, 1.144 and 1.139 for one step, which round to 1.14, and 2.55 to 2.56 for five; "
    "the text of appendix C.1 has 1.14 too.",
    settings={"sizes": "as printed", "K": "d", "noise": 0},
    inches=(4.6, 3.6),
)
