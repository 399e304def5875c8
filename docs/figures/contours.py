"""Draw docs/figures/contours.svg: where route 1 of the composition sums, and what the sum repeats."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from reticent.kernel.curves import GaussianTradeOff

INK, BLUE, GREY, PAPER = "#1b1b1b", "#00508f", "#8a8f96", "#eef4f9"
PERIOD, PLACE, CONTOUR = 6.0, 0.4, 1.6


def frequencies(axes: Axes) -> None:
    """The plane of the exponent: two poles, three contours, the nodes of each, what is left out."""
    axes.axhspan(2.1, 2.75, color=PAPER)
    axes.axhspan(-2.75, -2.1, color=PAPER)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    for at, text in ((-0.6, "$c<0$"), (0.5, "$c=1/2$"), (1.6, "$c>1$")):
        axes.axvline(at, color=BLUE, linewidth=0.9)
        axes.plot(np.full(11, at), 0.4 * np.arange(-5, 6), "o", color=BLUE, markersize=3.5)
        axes.text(at, 2.95, text, ha="center", color=BLUE)
    for pole in (0.0, 1.0):
        axes.plot(pole, 0.0, "x", color=INK, markersize=9, markeredgewidth=2)
        axes.text(pole, -0.38, f"pole {pole:.0f}", ha="center", size=8.5)
    axes.text(-1.25, 2.42, "lemma 3: beyond the last node", size=8.5, va="center")
    axes.text(1.68, 0.6, "spacing $h=2\\pi/W$", size=8.5, color=BLUE)
    axes.set(xlim=(-1.3, 2.9), ylim=(-2.75, 3.3), xticks=[], yticks=[])
    axes.set_xlabel("Re $\\lambda$ = c")
    axes.set_ylabel("Im $\\lambda$")
    axes.set_title("the nodes $\\lambda_k=c+ikh$", color=BLUE, weight="bold", size=10)


def copies(axes: Axes) -> None:
    """What the sum at one threshold adds up: the payoff at that threshold, and its copies a period apart."""
    y = np.linspace(-9.0, 9.0, 1201)
    payoff = np.exp((CONTOUR - 1.0) * y) * GaussianTradeOff(1.5).delta(y)
    axes.fill_between(y, payoff, color=PAPER)
    axes.plot(y, payoff, color=INK, linewidth=1.8)
    notes = {-1: "closed terms,\nand an alias", 0: "what is wanted", 1: "alias: lemma 2"}
    for m, text in notes.items():
        at = PLACE + m * PERIOD
        value = float(np.exp((CONTOUR - 1.0) * at) * GaussianTradeOff(1.5).delta(np.array(at)))
        axes.plot([at, at], [0.0, value], color=BLUE, linewidth=1.5)
        axes.plot(at, value, "o", color=BLUE, markersize=4)
        axes.text(at, value + 0.05, text, ha="center", size=8.5)
    axes.annotate("", (PLACE, -0.05), (PLACE + PERIOD, -0.05), arrowprops={"arrowstyle": "<->", "color": GREY})
    axes.text(PLACE + 0.5 * PERIOD, -0.13, "W", ha="center", color=GREY)
    axes.set(xlim=(-9.0, 9.0), ylim=(-0.2, 1.0), xticks=[PLACE], xticklabels=["l"], yticks=[])
    axes.set_title("Poisson summation at the threshold l, c > 1", color=BLUE, weight="bold", size=10)


def draw() -> plt.Figure:
    """Both panels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), gridspec_kw={"width_ratios": (1.0, 1.25)})
    frequencies(left)
    copies(right)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "reticent"
    figure = draw()
    folder = Path(__file__).parent
    figure.savefig(folder / "contours.svg", bbox_inches="tight", metadata={"Date": None})
