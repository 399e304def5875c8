"""Distance of every closed form from the exact advantage, on the grid of docs/theory/closed-forms.md.

Run ``python -m experiments.closed_forms.measure`` from the repository root: it rewrites
``experiments/closed_forms/results.json`` and ``docs/figures/closed-forms.svg`` and prints the table.
Exact values: the characteristic-function integral where its transform decays (absolute error about
1e-10), the middle of an enclosure elsewhere (half width below 2e-5 but for 39 points of few sampled
steps, where it is up to 5e-3; the table subtracts it from the errors).
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from experiments.closed_forms.forms import FORMS, proven_bracket
from reticent.accountants.profile import WorstCaseProfile
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.steps import Step
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs import Neighbouring, poisson_gaussian

ROOT = Path(__file__).parents[2]
NOISES = (0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 10.0)
RATES = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.2)
STEPS = (10, 100, 1000, 10_000, 100_000, 1_000_000)


def exact(noise: float, rate: float, steps: int, relation: Neighbouring) -> tuple[float, float]:
    """(advantage, bound on its error)."""
    profile = WorstCaseProfile(noise, rate, steps, relation, 0.0)
    if profile.reliable:
        return float(profile.delta(np.array([0.0]))[0]), 1e-9
    pair = poisson_gaussian(noise, rate, relation)
    bracket = proven_bracket(noise, rate, steps, relation)
    low, high = float(bracket.lower), float(bracket.upper)
    try:
        above, below = Lattice(1e-5, 2**18).answer([Step(pair, steps)]).sides
        low, high = max(low, float(below.delta(0.0))), min(high, float(above.delta(0.0)))
    except NumericalError:
        pass
    return 0.5 * (low + high), 0.5 * (high - low)


def measure() -> list[dict]:
    """One row per grid point and relation: exact value, its error, and value minus exact of each form."""
    rows = []
    for relation in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE):
        for noise in NOISES:
            for rate in RATES:
                for steps in STEPS:
                    truth, error = exact(noise, rate, steps, relation)
                    row = {"relation": relation.value, "noise": noise, "rate": rate, "steps": steps}
                    row |= {"exact": truth, "error": error}
                    row |= {name: float(form(noise, rate, steps, relation)) - truth for name, form in FORMS.items()}
                    rows.append(row)
    return rows


def table(rows: list[dict]) -> str:
    """Per form and relation: largest error on both sides, and the share of the grid within 1e-3."""
    lines = [
        "| form | relation | too small by | too large by | within 1e-3 | of the rest (advantage above 1e-3) |",
        "|---|---|---|---|---|---|",
    ]
    for name in FORMS:
        for relation in ("add-remove", "replace"):
            part = [r for r in rows if r["relation"] == relation]
            errors = np.array([r[name] for r in part])
            slack = np.array([r["error"] for r in part])
            below = max(float(np.max(-errors - slack)), 0.0)
            above = max(float(np.max(errors - slack)), 0.0)
            close = np.abs(errors) <= 1e-3
            busy = np.array([1e-3 < r["exact"] < 1 - 1e-3 for r in part])
            lines.append(
                f"| {name} | {relation} | {below:.2g} | {above:.2g} | {close.mean():.0%} | {close[busy].mean():.0%} |"
            )
    return "\n".join(lines)


def regions(rows: list[dict]) -> str:
    """Per form: the least noise from which on every grid point is within 1e-3, for each rate."""
    head = "| form | relation | " + " | ".join(f"p={rate:g}" for rate in RATES) + " |"
    lines = [head, "|---|---|" + "---|" * len(RATES)]
    for name in FORMS:
        for relation in ("add-remove", "replace"):
            cells = []
            for rate in RATES:
                bad = [
                    r["noise"] for r in rows if r["relation"] == relation and r["rate"] == rate and abs(r[name]) > 1e-3
                ]
                safe = [n for n in NOISES if not bad or n > max(bad)]
                cells.append(f"{safe[0]:g}" if safe else "none")
            lines.append(f"| {name} | {relation} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(rows: list[dict], path: Path) -> None:
    """Error against noise at T = 10,000, one panel per rate, both relations."""
    fig, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, sharey=True)
    for line, relation in enumerate(("add-remove", "replace")):
        for column, rate in enumerate((1e-4, 1e-3, 1e-2)):
            axis = axes[line, column]
            part = [r for r in rows if (r["relation"], r["rate"], r["steps"]) == (relation, rate, 10_000)]
            for name, style in zip(FORMS, ("k--", "C0-", "C1-", "C4:"), strict=True):
                axis.plot([r["noise"] for r in part], [r[name] for r in part], style, label=name.replace("_", " "))
            axis.axhline(0.0, color="0.6", linewidth=0.8)
            axis.set_xscale("log")
            axis.set_yscale("symlog", linthresh=1e-5)
            axis.set_title(f"{relation}, p = {rate:g}, T = 10,000", fontsize=9)
    axes[1, 1].set_xlabel("noise multiplier")
    axes[0, 0].set_ylabel("form minus exact advantage")
    axes[1, 0].set_ylabel("below 0: unsafe")
    axes[0, 2].legend(fontsize=7)
    fig.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, draw, and print the tables."""
    rows = measure()
    rounded = [[float(f"{v:.6g}") if isinstance(v, float) else v for v in row.values()] for row in rows]
    origin = "experiments/closed_forms/measure.py; columns of forms are form minus exact"
    document = {"origin": origin, "columns": list(rows[0]), "rows": rounded}
    (Path(__file__).parent / "results.json").write_text(json.dumps(document) + "\n")
    figure(rows, ROOT / "docs" / "figures" / "closed-forms.svg")
    print(table(rows))
    print()
    print(regions(rows))


if __name__ == "__main__":
    main()
