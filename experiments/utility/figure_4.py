"""Utility, Figure 4: noise for one field of a record beside noise for the whole record, at equal advantage; Adult."""

from experiments.utility.cells import accuracies, rounded
from experiments.utility.report import gain, interval, rows
from experiments.utility.settings import STUDIES
from reticent.gallery import Entry, Published, Relation

TARGETS = (0.1, 0.25)
COLOURS = {"the whole record": "black", "sex": "tab:olive", "age": "tab:brown"}


def run(figure):
    """Noise on the left, accuracy on the right."""
    (left, right), ours = figure.subplots(1, 2), {}
    found, base = accuracies("adult"), {}
    stored = rows("attributes", "adult")
    for row in stored:
        cell, where = found[rounded(row["noise"])], f"{row['rule']}, advantage {row['target']:g}"
        whole = next(r["noise"] for r in stored if r["target"] == row["target"])
        here = interval(cell)
        ours |= {f"{where}: noise": row["noise"], f"{where}: noise ratio": row["noise"] / whole}
        ours |= {f"{where}: accuracy": here, f"{where}: gain in points": gain(cell, base.setdefault(whole, cell))}
        ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
        ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
        place = TARGETS.index(row["target"]) + 0.25 * (list(COLOURS).index(row["rule"]) - 1)
        look = {"color": COLOURS[row["rule"]], "label": row["rule"] if row["target"] == TARGETS[0] else None}
        left.bar(place, row["noise"], 0.22, **look)
        right.errorbar(place, here.value, yerr=here.high - here.value, marker="o", **look)
    for axes, what in ((left, "noise multiplier"), (right, "test accuracy")):
        axes.set_xticks(range(len(TARGETS)), TARGETS)
        axes.set(xlabel="allowed advantage", ylabel=what)
    left.legend()
    return ours | {f"{r['rule']}: largest change of a clipped gradient": r["change"] for r in stored[:3]}


ENTRY = Entry(
    id="utility/figure-4",
    title="Noise for one field against noise for the whole record",
    run=run,
    published=tuple(
        Published(
            f"{field}, advantage 0.1: noise ratio",
            1.0,
            "CHERUBIN2024, section 6: an attribute is at less risk than membership",
            0.0,
            Relation.AT_MOST,
        )
        for field in ("sex", "age")
    ),
    reason="REASON4",
    settings={
        "steps": STUDIES["adult"].steps,
        "sample rate": STUDIES["adult"].sample_rate,
        "seeds": "0 to 4",
        "relation": "replacement, for the field and for the whole record",
    },
    inches=(9.0, 3.4),
)
