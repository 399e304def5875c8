"""Draw docs/figures/idea.svg: release x attacker -> curve -> numbers, calibration, audit, certificate."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from reticent.kernel.curves import GaussianTradeOff

INK, BLUE, PAPER = "#1b1b1b", "#00508f", "#eef4f9"


def box(axes: Axes, x: float, y: float, title: str, text: str, width: float = 2.75, height: float = 1.15) -> None:
    axes.add_patch(plt.Rectangle((x, y), width, height, facecolor=PAPER, edgecolor=BLUE, linewidth=1.2))
    axes.text(x + width / 2, y + height - 0.3, title, ha="center", va="center", weight="bold", color=BLUE)
    axes.text(x + width / 2, y + 0.38, text, ha="center", va="center", size=8.5, color=INK)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "-|>") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": style, "color": INK, "linewidth": 1.2})


def draw() -> plt.Figure:
    figure, axes = plt.subplots(figsize=(9.6, 4.3))
    axes.set(xlim=(0, 12), ylim=(0, 5.2))
    axes.axis("off")
    box(axes, 0.0, 3.6, "what was released", "noise, sampling, steps\n(a fact)")
    box(axes, 0.0, 0.5, "who attacks", "knows what, wants what\n(an assumption)")
    axes.text(1.37, 2.6, "$\\times$", ha="center", va="center", size=20, color=INK)
    arrow(axes, (2.85, 2.6), (3.65, 2.6))
    inner = axes.inset_axes((4.25, 0.7, 3.1, 3.6), transform=axes.transData)
    rate = np.linspace(0.0, 1.0, 200)
    inner.plot(rate, 1 - rate, color="#999999", linewidth=1, linestyle=":")
    inner.plot(rate, GaussianTradeOff(1.0).beta(rate), color=INK, linewidth=2)
    inner.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1])
    inner.set_xlabel("false positive rate", size=8.5, labelpad=-6)
    inner.set_ylabel("false negative rate", size=8.5, labelpad=-6)
    inner.set_title("trade-off curve", color=BLUE, weight="bold", size=10)
    boxes = (
        ("risk numbers", "read off the curve"),
        ("calibration", "number in, noise out"),
        ("audit", "measures the curve"),
        ("certificate", "bundles and states it"),
    )
    for k, (title, text) in enumerate(boxes):
        y = 4.15 - 1.25 * k
        box(axes, 8.7, y, title, text, width=3.1, height=0.95)
        arrow(axes, (7.5, 2.6), (8.65, y + 0.47), "<|-" if title in {"audit"} else "-|>")
    return figure


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "reticent"
    draw().savefig(Path(__file__).parent / "idea.svg", bbox_inches="tight", metadata={"Date": None})
