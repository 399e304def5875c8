"""Utility, Figure 4: noise for one field of a record beside noise for the whole record, at equal advantage; Adult."""

from experiments.gallery import Entry, Published, Relation
from experiments.utility.attributes import TARGETS
from experiments.utility.report import rows
from experiments.utility.settings import STUDIES

COLOURS = {"the whole record": "black", "sex": "tab:olive", "age": "tab:brown"}


def run(figure):
    """Noise of each field; above each bar the worst-case epsilon for the whole record there."""
    axes, ours, stored = figure.subplots(), {}, rows("attributes", "adult")
    for row in stored:
        where = f"{row['rule']}, advantage {row['target']:g}"
        whole = next(r["noise"] for r in stored if r["target"] == row["target"])
        ours |= {f"{where}: noise": row["noise"], f"{where}: noise ratio": row["noise"] / whole}
        ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
        ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
        ours[f"{where}: largest change of a gradient"] = row["change"]
        place = TARGETS.index(row["target"]) + 0.25 * (list(COLOURS).index(row["rule"]) - 1)
        label = row["rule"] if row["target"] == TARGETS[0] else None
        axes.bar(place, row["noise"], 0.22, color=COLOURS[row["rule"]], label=label)
        axes.text(place, row["noise"], f"{row['worst_epsilon']:.2f}", ha="center", va="bottom", fontsize=6)
    axes.set_xticks(range(len(TARGETS)), TARGETS)
    axes.set(xlabel="advantage allowed to who wants this field", ylabel="noise multiplier")
    axes.set(title="above each bar: worst-case epsilon of the whole record", ylim=(0, 3))
    axes.legend()
    return ours


ENTRY = Entry(
    id="utility/figure-4",
    title="Noise for one field against noise for the whole record",
    run=run,
    published=tuple(
        Published(
            f"{field}, advantage {target:g}: noise ratio",
            0.99,
            "CHERUBIN2024, section 6: an attribute is at less risk; a hundredth less noise is our reading",
            0.0,
            Relation.AT_MOST,
        )
        for field in ("sex", "age")
        for target in TARGETS
    ),
    reason="The gain is real for a field that moves gradients little: sex needs 0.46 of the noise at advantage 0.1. "
    "There is none for a field that moves them much: age at advantage 0.25. The change was measured on public "
    "records and must hold for private ones.",
    stored=("experiments.utility.attributes",),
    settings={
        "steps": STUDIES["adult"].steps,
        "sample rate": STUDIES["adult"].sample_rate,
        "relation": "replacement, for the field and for the whole record",
        "change": "in clip norms, largest over 256 public records, two moments and a grid of values; no training",
    },
    inches=(6.5, 3.4),
)
