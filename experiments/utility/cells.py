"""Train every cell that is not stored yet: ``python -m experiments.utility.cells adult``; can be killed at any moment.

A cell is a noise and a seed. Equal noises are trained once, whatever rule asked for them.
"""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from experiments.utility.settings import RESULTS, SEEDS, STUDIES, TRAINED, private_part, whole
from reticent.tasks import write_json
from reticent.training import train


def wanted(name: str) -> list[float]:
    """Noises of all rules, target by target and at a few levels of mu, and none."""
    asked = [row for row in stored("noise", name) if row["target"] in STUDIES[name].targets]
    asked += [row for row in stored("levels", name) if "mu" in row and row["mu"] in TRAINED]
    return list(dict.fromkeys([0.0, *(rounded(row["noise"]) for row in asked)]))


def stored(kind: str, name: str) -> list[dict]:
    """Rows of a result, none where there is none."""
    file = RESULTS / f"{kind}-{name}.json"
    return json.loads(file.read_text())["rows"] if file.exists() else []


def rounded(noise: float) -> float:
    """Three digits, upwards: what is trained has at least the noise that was asked for."""
    return float(f"{noise * 1.005:.3g}") if noise else 0.0


def accuracies(name: str) -> dict[float, list[float]]:
    """Test accuracies by noise, in the order of the seeds."""
    found: dict[float, list[float]] = {}
    for row in json.loads((RESULTS / f"cells-{name}.json").read_text())["rows"]:
        found.setdefault(row["noise"], []).append(row["accuracy"])
    return found


def main(name: str) -> None:
    """One run for each missing cell, seed by seed."""
    file, study = RESULTS / f"cells-{name}.json", STUDIES[name]
    rows = stored("cells", name)
    records, done = private_part(whole(name), study), {(row["noise"], row["seed"]) for row in rows}
    versions = {package: version(package) for package in ("reticent", "torch", "numpy")}
    for noise in wanted(name):
        for seed in SEEDS:
            if (noise, seed) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                ledger = train(study.config(noise, seed), Path(folder) / "run", dataset=records).ledger
            rows.append({"noise": noise, "seed": seed, "accuracy": ledger.utility.test_accuracy})
            print(rows[-1], flush=True)
            write_json(
                file, {"config": study.config(1.0, 0).model_dump(mode="json"), "rows": rows, "versions": versions}
            )


if __name__ == "__main__":
    main(sys.argv[1])
