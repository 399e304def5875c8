"""Gaussian MIP, Figure 6: the loss attack beside GLiR after five steps; from stored runs."""

import json

import numpy as np

from experiments.where import results
from reticent.papers import Entry, Measured, Published, Relation

RATES = (0.001, 0.01, 0.1)


def run(figure):
    """One panel for each data set: both attacks and the analytical curve of one step at three rates."""
    power, ours = json.loads((results(__file__) / "power.json").read_text()), {}
    for axes, (name, result) in zip(figure.subplots(1, 3), power.items(), strict=True):
        means = {}
        for attack, label in (("glir_five_steps", "GLiR"), ("loss_five_steps", "loss")):
            mean, low, high = np.array([result["summary"][attack][f"tpr_at_{r}"] for r in RATES]).T
            axes.errorbar(RATES, np.maximum(mean, 1e-4), [mean - low, high - mean], fmt="o-", markersize=3, label=label)
            means[label] = mean[1]
            if label == "loss":
                ours[f"{name}: TPR of the loss attack at FPR 0.01"] = Measured(mean[1], low[1], high[1], "five seeds")
        axes.plot(
            RATES, [result["theory"]["limit"][f"tpr_at_{r}"] for r in RATES], "--", color="black", label="analytical"
        )
        axes.plot(RATES, RATES, ":", color="grey", label="guessing")
        axes.set(title=name, xlabel="FPR", ylabel="TPR", xscale="log", yscale="log", ylim=(5e-5, 1))
        ours[f"{name}: GLiR over loss at FPR 0.01"] = means["GLiR"] / means["loss"]
    axes.legend()
    return ours


ENTRY = Entry(
    id="gaussian-mip/figure-6",
    title="Loss-based attacks beside the analytical curves",
    run=run,
    published=(
        *(
            Published(f"{n}: TPR of the loss attack at FPR 0.01", 0.01, "C.4: do not work at all", 0.005)
            for n in ("Location-30", "Adult", "CIFAR-10")
        ),
        Published("Adult: GLiR over loss at FPR 0.01", 10.0, "C.4: up to 10 times", 0.0, Relation.AT_MOST),
    ),
    reason="Panel (a) comes out: after five steps the loss attack is at guessing on Adult and Location-30 and GLiR is "
    "four to seven times stronger; on CIFAR-10 it already finds a few members.",
    needs="shadow models trained as long as those of Figure 3 for panel (b), and LiRA on them",
    stored=("experiments.gaussian_mip.power",),
    settings={"seeds": "0 to 4", "stored": "results/power.json"},
    inches=(9.0, 3.2),
)
