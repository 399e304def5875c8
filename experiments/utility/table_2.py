"""Utility, Table 2: what does each threat model buy, and at which true worst-case epsilon?"""

from experiments.utility.cells import accuracies, rounded
from experiments.utility.report import gain, rows
from reticent.gallery import Entry, Published, Relation

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
        found, chosen = accuracies(name), [r for r in rows(kind, name) if r["target"] == TARGET]
        base = chosen[0]
        for row in chosen:
            where = f"{title}, {row['rule']}"
            ours[f"{where}: noise ratio"] = row["noise"] / base["noise"]
            if kind == "noise":
                better = gain(found[rounded(row["noise"])], found[rounded(base["noise"])])
                ours[f"{where}: gain in points"] = better
            ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
            ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
    names = [n.removesuffix(": gain in points") for n in ours if n.endswith(": gain in points")]
    for place, name in enumerate(reversed(names)):
        better = ours[f"{name}: gain in points"]
        axes.barh(place, better.value, xerr=max(better.high - better.value, 0.0), color="tab:blue")
        epsilon = ours.get(f"{name}: worst-case epsilon")
        axes.text(
            0.99,
            place,
            "no bound" if epsilon is None else f"epsilon {epsilon:.3g}",
            va="center",
            ha="right",
            transform=axes.get_yaxis_transform(),
            fontsize=6,
        )
    axes.set_yticks(range(len(names)), list(reversed(names)))
    axes.set(xlabel="points of accuracy above the first row of the same group; right: true worst-case epsilon (1e-5)")
    axes.margins(x=0.25)
    return ours


ENTRY = Entry(
    id="utility/table-2",
    title="What each threat model buys",
    run=run,
    published=tuple(
        Published(
            f"{data}, as published, step by step: worst-case advantage",
            TARGET,
            "KAISSIS2023, section 5: the nominally same membership inference guarantee",
            1e-3,
            Relation.AT_MOST,
        )
        for data in ("CIFAR-10", "Adult")
    ),
    reason="REASON5",
    settings={"allowed advantage": TARGET, "seeds": "0 to 4", "delta": 1e-5},
    inches=(8.0, 5.0),
)
