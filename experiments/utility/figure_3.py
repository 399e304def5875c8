"""Utility, Figure 3: GDP against membership privacy over mu, as published and as it is sound; Adult."""

from experiments.utility.cells import accuracies, rounded
from experiments.utility.report import gain, interval, rows
from experiments.utility.settings import STUDIES
from reticent.gallery import Entry, Published, Relation

NAME, ONCE = "adult-random", "adult-once"
LOOKS = {"GDP, published": ("black", "o"), "GMIP, published": ("tab:red", "x"), "sound": ("tab:blue", "s")}


def run(figure):
    """Many passes over the data on the left, one pass on the right."""
    (left, right), ours = figure.subplots(1, 2), {}
    found, base = accuracies(NAME), {}
    for rule, (colour, marker) in LOOKS.items():
        for row in (r for r in rows("levels", NAME) if r["rule"] == rule):
            cell, where = found[rounded(row["noise"])], f"{rule}, mu {row['mu']:.3g}"
            here = interval(cell)
            ours |= {f"{where}: noise": row["noise"], f"{where}: accuracy": here}
            ours[f"{where}: gain in points"] = gain(cell, base.setdefault(row["mu"], cell))
            ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
            if row["worst_epsilon"] is not None:
                ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
            label = rule if row["mu"] < 0.5 else None
            left.errorbar(row["mu"], here.value, yerr=here.high - here.value, color=colour, marker=marker, label=label)
    once, base = accuracies(ONCE), {}
    for row in rows("levels", ONCE):
        cell, where = once[rounded(row["noise"])], f"one pass, {row['rule']}, advantage {row['target']:g}"
        here, game = interval(cell), row["rule"] == "membership game"
        ours |= {f"{where}: noise": row["noise"], f"{where}: accuracy": here}
        ours[f"{where}: gain in points"] = gain(cell, base.setdefault(row["target"], cell))
        ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
        ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
        look = {"color": "tab:pink" if game else "black", "marker": "D" if game else "o"}
        label = f"{row['rule']}, one pass" if row["target"] < 0.2 else None
        right.errorbar(row["target"], here.value, yerr=here.high - here.value, label=label, linestyle="none", **look)
    left.set(xscale="log", xlabel="mu (many passes)", ylabel="test accuracy")
    right.set(xlabel="allowed advantage (each record used once)", ylabel="test accuracy")
    for axes in (left, right):
        axes.legend()
    ours["GMIP, published: largest worst-case advantage"] = max(
        r["worst_advantage"] for r in rows("levels", NAME) if r["rule"] == "GMIP, published"
    )
    return ours


ENTRY = Entry(
    id="utility/figure-3",
    title="GDP against membership privacy",
    run=run,
    published=(
        Published(
            "GMIP, published: largest worst-case advantage",
            0.999,
            "LEEMANN2023, Figure 3: the same attack success rates as mu-GDP, 0.9989 at mu 6.5",
            0.0,
            Relation.AT_MOST,
        ),
    ),
    reason="REASON3",
    settings={
        "steps": STUDIES[NAME].steps,
        "batch": 1000,
        "parameters": 1026,
        "seeds": "0 to 4",
        "model": "linear on 512 fixed random features",
    },
    inches=(9.0, 3.6),
)
