"""What each kind of gradients needs in noise, and the accuracy there: ``python -m experiments.utility.reacting NAME``.

Each answer is kept as soon as it is known. Learning rates are chosen on the public records alone, for each noise: there
the noise is scaled so that each record meets as much of it as in the private runs.
"""

import json
import sys
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from experiments.utility.cells import rounded
from experiments.utility.settings import DELTA, RESULTS, STUDIES, private_part, public_part, whole
from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.calibration import Advantage, EpsilonAtDelta, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.mechanisms.gradients import Gradients
from reticent.tasks import write_json
from reticent.training import train

TARGET = Advantage(0.1)
EPSILON = EpsilonAtDelta(3.0, DELTA)
RATES = {"adult-linear": (8.0, 16.0, 32.0, 64.0), "cifar-10-linear": (128.0,)}
SEEDS = {"adult-linear": range(3), "cifar-10-linear": range(1)}
RIDGE = 0.05
"""Added to each variance before whitening."""


def prepared(name: str):
    """The records; those of Adult are moved and whitened by the public ones, so that directions differ more.

    Zero lies between the two classes, at the point of their line at which the mean of signed units of the public
    records tells most of them apart: a model without a bias needs it.
    """
    study, dataset = STUDIES[name], whole(name)
    if not name.startswith("adult"):
        return dataset
    known = dataset.train[study.private :]
    rows, signs = dataset.features[known].astype(float), np.where(dataset.labels[known] == 1, 1.0, -1.0)
    ends = rows[signs > 0].mean(axis=0), rows[signs < 0].mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(rows.T))
    whitening = directions / np.sqrt(variances + RIDGE) @ directions.T

    def right(share: float) -> float:
        units = (rows - share * ends[0] - (1.0 - share) * ends[1]) @ whitening
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        return float((signs * (units @ (signs @ units)) > 0.0).mean())

    best = max(np.linspace(0.5, 0.9, 9), key=right)
    moved = (dataset.features - best * ends[0] - (1.0 - best) * ends[1]) @ whitening
    return replace(dataset, features=moved.astype(np.float32), groups=(), notes=("Whitened by public records.",))


def effective_dimension(records) -> int:
    """Of the directions of 256 public records, labels included where there are two."""
    some = records.test[:256]
    rows = records.features[some].reshape(len(some), -1).astype(float)
    if records.classes == 2:
        rows = rows * np.where(records.labels[some] == 1, 1.0, -1.0)[:, None]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return max(1, int(DirectionLaw.from_gradients(rows, 1.0, public=True).effective_dimension()[0]))


def rules(name: str, measured: int) -> dict:
    """(attacker, target, clipping) by rule."""
    columns = STUDIES[name].parameters // (2 if "adult" in name else 10)
    form = Gradients.ONE_DIRECTION if "adult" in name else Gradients.LINEAR_HEAD
    found = {"no noise": (None, None, "flat"), "any gradients": (WorstCase(), TARGET, "flat")}
    found["any gradients, epsilon 3"] = (WorstCase(), EPSILON, "flat")
    for words, dimension in ((f"d measured, {measured}", measured), (f"d claimed, {columns}", columns)):
        found[f"{form.value}, {words}"] = (Relaxed(dimension, gradients=form), TARGET, "flat")
        if "adult" in name:
            found[f"fixed, normalised, {words}"] = (Relaxed(dimension, gradients=Gradients.FIXED), TARGET, "normalise")
    return found


def noises(name: str) -> list[dict]:
    """One row for each rule, with what the worst case can do at its noise."""
    study, rows = STUDIES[name], []
    release = DPSGD(1.0, study.sample_rate, study.steps)
    for rule, (who, target, clipping) in rules(name, effective_dimension(public_part(prepared(name), study))).items():
        row = {"rule": rule, "clipping": clipping, "noise": 0.0}
        if who is not None:
            row["noise"] = calibrate(release, NoiseMultiplier(), target, who).value
            worst = WorstCase().assess(DPSGD(row["noise"], study.sample_rate, study.steps))
            row["worst_advantage"] = worst.measure(advantage).value
            row["worst_epsilon"] = worst.measure(lambda curve: epsilon_at_delta(curve, DELTA)).value
        rows.append(row)
        print(row, flush=True)
    return rows


def trained(name: str, records, noise: float, seed: int, **changes) -> float:
    """Accuracy on the test records of ``records``."""
    study = STUDIES[name]
    with tempfile.TemporaryDirectory() as folder:
        config = study.config(noise, seed, divisor=study.sample_rate * len(records.train), **changes)
        return train(config, Path(folder) / "run", dataset=records).ledger.utility.test_accuracy


def main(name: str) -> None:
    """Noises, then learning rates, then the private runs."""
    file, study, everything = RESULTS / f"reacting-{name}.json", STUDIES[name], prepared(name)
    document = json.loads(file.read_text()) if file.exists() else {"rows": noises(name)}
    private, public = private_part(everything, study), public_part(everything, study)
    scale = len(public.train) / len(private.train)
    for row in document["rows"]:
        noise, how = rounded(row["noise"]), {"clipping": row["clipping"]}
        if "learning_rate" not in row:
            tried = {rate: trained(name, public, noise * scale, 0, learning_rate=rate, **how) for rate in RATES[name]}
            row |= {"tried": {f"{rate:g}": found for rate, found in tried.items()}}
            row |= {"learning_rate": max(tried, key=tried.__getitem__), "accuracies": []}
            write_json(file, document)
    for seed, row in product(SEEDS[name], document["rows"]):
        if seed >= len(row["accuracies"]):
            rate, how = row["learning_rate"], {"clipping": row["clipping"]}
            row["accuracies"].append(trained(name, private, rounded(row["noise"]), seed, learning_rate=rate, **how))
            print(row, flush=True)
            write_json(file, document)


if __name__ == "__main__":
    main(sys.argv[1])
