"""Draw docs/figures/membership-game.svg, and print the tables of docs/theory/membership-game.md, from the results.

python -m experiments.gaussian_mip.figure
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

HERE = Path(__file__).parent
FIGURE = HERE.parents[1] / "docs" / "figures" / "membership-game.svg"
ATTACKS = {
    "glir_one_step": "GLiR, one step",
    "glir_five_steps": "GLiR, five steps",
    "loss_five_steps": "loss, five steps",
}
CURVES = {"gaussian_gradients": "theory, one step", "published_five_steps": "published, five steps"}
NUMBERS = ("auc", "tpr_at_0.001", "tpr_at_0.01", "tpr_at_0.1")


def draw(one_step: list[dict], power: dict) -> None:
    """Left: simulated against theory; right: TPR on real gradients beside theory."""
    figure = Figure(figsize=(11, 4.2))
    left, right = figure.subplots(1, 2)
    for row in one_step:
        if row["law"] == "gaussian" or row["n"] == 500:
            label = f"n = {row['n']}, d = {row['d']}, {row['law']}"
            (line,) = left.plot(row["fpr"], row["tpr"], ".", markersize=4, label=label)
            left.plot(row["fpr"], row["tpr_theory"], "-", color=line.get_color(), linewidth=0.8)
    left.plot([1e-3, 1], [1e-3, 1], ":", color="grey")
    left.set(xscale="log", yscale="log", xlabel="FPR", ylabel="TPR", title="Simulated (dots) and theory (lines)")
    left.legend(fontsize=7)
    names, width = list(power), 0.16
    for k, key in enumerate([*ATTACKS, *CURVES]):
        at = np.arange(len(names)) + (k - 2) * width
        if key in ATTACKS:
            rows = np.array([power[n]["summary"][key]["tpr_at_0.01"] for n in names])
            error = np.abs(rows[:, 1:] - rows[:, :1]).T
            right.bar(at, rows[:, 0], width, yerr=error, label=ATTACKS[key], capsize=2)
        else:
            right.bar(at, [power[n]["theory"][key]["tpr_at_0.01"] for n in names], width, label=CURVES[key], alpha=0.5)
    right.set_xticks(np.arange(len(names)), names)
    right.set(ylabel="TPR at FPR 0.01", title="Real gradients, five seeds (smallest to largest)")
    right.legend(fontsize=7)
    figure.tight_layout()
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "reticent"}):
        figure.savefig(FIGURE, format="svg", metadata={"Date": None})


def tables(one_step: list[dict], power: dict) -> str:
    """Both tables as Markdown."""
    lines = ["| n, d | gradients | largest gap in TPR | gap of the limit at K = d |", "|---|---|---|---|"]
    lines += [
        f"| {r['n']}, {r['d']} | {r['law']} | {r['largest_gap']:.4f} "
        f"| {r['largest_gap_to_gaussian_limit_at_k_equal_d']:.4f} |"
        for r in one_step
    ]
    lines += [
        "",
        "| data | attack or curve | AUC | TPR at 0.1% | TPR at 1% | TPR at 10% |",
        "|---|---|---|---|---|---|",
    ]
    for name, result in power.items():
        for key, label in ATTACKS.items():
            cells = (f"{m:.3f} ({a:.3f} to {b:.3f})" for m, a, b in (result["summary"][key][k] for k in NUMBERS))
            lines.append(f"| {name} | {label} | " + " | ".join(cells) + " |")
        for key, label in CURVES.items():
            cells = (f"{result['theory'][key][k]:.3f}" for k in NUMBERS)
            lines.append(f"| {name} | {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Read the results, draw and print."""
    one_step = json.loads((HERE / "results" / "one_step.json").read_text())["rows"]
    power = json.loads((HERE / "results" / "power.json").read_text())
    draw(one_step, power)
    print(tables(one_step, power))


if __name__ == "__main__":
    main()
