"""Utility, Table 2: what does each threat model buy, and at which true worst-case epsilon?"""

from experiments.gallery import Entry, Published, Relation
from experiments.utility.cells import accuracies, rounded
from experiments.utility.report import gain, rows

TARGET = 0.1
SOURCES = (
    ("noise", "cifar-10", "CIFAR-10"),
    ("noise", "adult", "Adult"),
    ("levels", "adult-once", "Adult, one pass"),
    ("attributes", "adult", "Adult, one field"),
)


def run(figure):
    """One row for each threat model at the target, beside the worst case of the same study and relation."""
    ours, axes = {}, figure.subplots()
    for kind, name, title in SOURCES:
        chosen = [r for r in rows(kind, name) if r["target"] == TARGET]
        base, found = chosen[0], accuracies(name) if kind == "noise" else {}
        for row in chosen:
            where = f"{title}, {row['rule']}"
            ours[f"{where}: noise ratio"] = row["noise"] / base["noise"]
            if kind == "noise":
                better = gain(found[rounded(row["noise"])], found[rounded(base["noise"])])
                ours[f"{where}: gain in points"] = better
                ours[f"{where}: advantage of one unknown sign"] = row["sign_advantage"]
            ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
            ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
    names = [n.removesuffix(": gain in points") for n in ours if n.endswith(": gain in points")][::-1]
    for place, name in enumerate(names):
        better, epsilon = ours[f"{name}: gain in points"], ours[f"{name}: worst-case epsilon"]
        axes.barh(place, better.value, xerr=better.high - better.value, color="tab:blue")
        axes.text(3.6, place, f"epsilon {epsilon:.3g}", va="center", fontsize=6)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="points of accuracy above the worst case of the same data; right: true worst-case epsilon (1e-5)")
    axes.set(xlim=(-0.5, 4.2))
    return ours


ENTRY = Entry(
    id="utility/table-2",
    title="What each threat model buys",
    run=run,
    published=tuple(
        Published(
            f"{data}, as published, step by step: advantage of one unknown sign",
            TARGET,
            "KAISSIS2023, section 5: the nominally same membership inference guarantee",
            1e-3,
            Relation.AT_MOST,
        )
        for data in ("CIFAR-10", "Adult")
    ),
    reason="A weaker attacker buys 1.4 to 2.1 points on CIFAR-10 and nothing on Adult, always at a larger true "
    "worst-case epsilon. The published relaxed rule exceeds the advantage that it names even against its own "
    "attacker: 0.108 and 0.104 instead of 0.1. The worst case reaches 0.19 and 0.17 there.",
    stored=(
        *(f"experiments.utility.{what} {name}" for name in ("cifar-10", "adult") for what in ("noise", "cells")),
        "experiments.utility.levels adult-once",
        "experiments.utility.attributes",
    ),
    settings={"allowed advantage": TARGET, "seeds": "0 to 4", "delta": 1e-5},
    inches=(8.0, 5.0),
)
