"""Stored cells as numbers with intervals, and the entry that two data sets share."""

import json
from functools import partial

import numpy as np
from scipy.stats import t

from experiments.gallery import Entry, Measured
from experiments.utility.cells import accuracies, rounded
from experiments.utility.settings import RESULTS, STUDIES

LOOKS = {
    "worst case": ("black", "o"),
    "one unknown sign": ("tab:orange", "s"),
    "d measured": ("tab:blue", "^"),
    "d claimed: every parameter": ("tab:purple", "v"),
    "as published, step by step": ("tab:red", "x"),
}


def rows(kind, name):
    """Noises with their worst case, as stored."""
    return json.loads((RESULTS / f"{kind}-{name}.json").read_text())["rows"]


def interval(values):
    """Mean over the seeds with Student's 95 % interval; one seed has none."""
    values = np.asarray(values)
    if len(values) == 1:
        value = float(values[0])
        return Measured(value, value, value, "one seed, no interval")
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    mean = float(values.mean())
    return Measured(mean, mean - half, mean + half, f"95 %, {len(values)} seeds")


def gain(values, base):
    """Difference in percentage points, seed by seed: equal seeds share their first weights."""
    seeds = min(len(values), len(base))
    return interval(100 * (np.asarray(values[:seeds]) - np.asarray(base[:seeds])))


def accuracy_entry(number, name, title, published, reason, settings):
    """The entry about accuracy over targets of one study."""
    study = STUDIES[name]
    shared = {"steps": study.steps, "sample rate": study.sample_rate, "seeds": "0 to 4"}
    return Entry(
        id=f"utility/figure-{number}",
        title=f"{title}: accuracy at the noise that each attacker allows",
        run=partial(over_targets, name=name),
        published=(published,),
        reason=reason,
        stored=(f"experiments.utility.noise {name}", f"experiments.utility.cells {name}"),
        settings=shared | {"private records": study.private} | settings,
        inches=(9.0, 3.6),
    )


def over_targets(figure, name):
    """Accuracy over the target of each rule, and over the worst-case epsilon that its noise really has."""
    found, ours, (left, right) = accuracies(name), {}, figure.subplots(1, 2, sharey=True)
    targets = STUDIES[name].targets
    base = {r["target"]: found[rounded(r["noise"])] for r in rows("noise", name) if r["rule"] == "worst case"}
    for shift, (rule, (colour, marker)) in enumerate(LOOKS.items()):
        for row in (r for r in rows("noise", name) if r["rule"] == rule and r["target"] in targets):
            cell, where = found[rounded(row["noise"])], f"{rule}, advantage {row['target']:g}"
            here = interval(cell)
            ours |= {f"{where}: noise": row["noise"], f"{where}: accuracy": here}
            ours[f"{where}: gain in points"] = gain(cell, base[row["target"]])
            ours[f"{where}: worst-case advantage"] = row["worst_advantage"]
            ours[f"{where}: worst-case epsilon"] = row["worst_epsilon"]
            look = {"color": colour, "marker": marker, "markersize": 4, "yerr": here.high - here.value}
            left.errorbar(targets.index(row["target"]) + 0.12 * (shift - 2), here.value, **look)
            label = rule if row["target"] == targets[0] else None
            right.errorbar(row["worst_epsilon"], here.value, label=label, linestyle="none", **look)
    if 0.0 in found:
        none = ours["no noise: accuracy"] = interval(found[0.0])
        for axes in (left, right):
            axes.axhline(none.value, color="grey", linestyle=":")
    left.set_xticks(range(len(targets)), targets)
    left.set(xlabel="allowed advantage of the attacker that the noise is chosen for", ylabel="test accuracy")
    right.set(xlabel="true worst-case epsilon at delta 1e-5 (dotted: no noise)", xscale="log")
    right.legend(loc="lower right")
    return ours


def kinds_entry(number, name, title, published, reason, settings):
    """The entry about kinds of gradients of one study."""
    study = STUDIES[name]
    shared = {"steps": study.steps, "sample rate": study.sample_rate, "allowed advantage": 0.1}
    return Entry(
        id=f"utility/figure-{number}",
        title=f"{title}: what each kind of gradients needs",
        run=partial(over_kinds, name=name),
        published=published,
        reason=reason,
        stored=(f"experiments.utility.reacting {name}",),
        settings=shared | {"private records": study.private} | settings,
        inches=(9.0, 3.6),
    )


def over_kinds(figure, name):
    """Noise of each kind, and the accuracy there over the worst-case epsilon that the noise really has."""
    ours, (left, right) = {}, figure.subplots(1, 2)
    base = next((row["accuracies"] for row in rows("reacting", name) if row["rule"] == "any gradients"), None)
    for place, row in enumerate(rows("reacting", name)):
        rule, here = row["rule"], interval(row["accuracies"])
        ours[f"{rule}: accuracy"] = here
        if not row["noise"]:
            right.axhline(here.value, color="grey", linestyle=":")
            continue
        ours |= {f"{rule}: noise": row["noise"], f"{rule}: worst-case advantage": row["worst_advantage"]}
        ours[f"{rule}: worst-case epsilon"] = row["worst_epsilon"]
        if base is not None:
            ours[f"{rule}: gain in points"] = gain(row["accuracies"], base)
        look = {"color": f"C{place}", "marker": "os^vDx*"[place % 7], "linestyle": "none"}
        left.barh(-place, row["noise"], color=look["color"])
        left.text(row["noise"], -place, f" {rule}", va="center", fontsize=7)
        right.errorbar(row["worst_epsilon"], here.value, yerr=here.high - here.value, label=rule, **look)
    left.set(xlabel="noise multiplier", yticks=[], xlim=(0.0, 9.0))
    right.set(xlabel="true worst-case epsilon at delta 1e-5 (dotted: no noise)", ylabel="test accuracy", xscale="log")
    right.legend(loc="lower right", fontsize=7)
    return ours
