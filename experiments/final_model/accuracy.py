"""What hidden steps save: accuracy at one epsilon, counted in three ways: ``-m experiments.final_model.accuracy``.

The same linear model is trained with as much noise as each way needs for epsilon 1 at delta 1e-5:

* all steps of Poisson batches, as DP-SGD is counted today;
* all steps of the batches in a fixed order, or of the whole data, which is all that is known without hidden steps;
* the final model only, with the same batches as the line before.

Writes ``results/final-model.json`` beside this file, and prints the table of docs/theory/final-model.md.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from reticent.adversaries import FinalModel
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, calibrate
from reticent.facts.hidden_steps import contraction
from reticent.kernel.adversaries import WorstCase
from reticent.training import parse_config, train
from reticent.training.setup import load_dataset, planned_release

TARGET, SEEDS = EpsilonAtDelta(1.0, 1e-5), range(5)
RESULTS = Path(__file__).parent / "results" / "final-model.json"
STUDIES = {
    "breast cancer, whole batches": {
        "data": {"name": "breast-cancer", "normalise_features": True},
        "how": {"sample_rate": 1.0},
        "today": {"batch_size": 91},
        "learning_rate": 3.0,
        "weight_decay": 0.003,
        "epochs": (10, 100, 1000),
    },
    "Adult, 32 cyclic batches": {
        "data": {"name": "adult", "normalise_features": True},
        "how": {"batch_size": 1000, "sampler": "cyclic"},
        "today": {"batch_size": 1000},
        "learning_rate": 3.0,
        "weight_decay": 0.0003,
        "epochs": (5, 20, 80),
    },
}


def configured(study, epochs, noise, how, seed, hidden=False):
    """The configuration of one run."""
    return parse_config(
        {
            "data": study["data"],
            "model": {"kind": "logistic", "bias": False},
            "noise_multiplier": noise,
            "max_grad_norm": 1.0,
            "epochs": epochs,
            "learning_rate": study["learning_rate"],
            "weight_decay": study["weight_decay"],
            "seed": seed,
            "final_model": hidden,
            **how,
        }
    )


def accuracy(config, dataset):
    """Share of test records classified correctly after one run."""
    with tempfile.TemporaryDirectory() as folder:
        return train(config, Path(folder) / "run", dataset=dataset).ledger.utility.test_accuracy


def rows(name):
    """One row for each number of epochs: the noise, and the accuracy of five runs, for each way to count."""
    study = STUDIES[name]
    dataset = load_dataset(configured(study, 1, 1.0, study["how"], 0).data)
    for epochs in study["epochs"]:
        ways = {"Poisson, every step": (study["today"], None), "every step": (study["how"], None)}
        asked = configured(study, epochs, 1.0, study["how"], 0, hidden=True).model_dump(mode="json")
        batch = study["how"].get("batch_size", len(dataset.train))
        factor = contraction(asked, study["learning_rate"], study["weight_decay"], batch)
        ways["final model"] = (study["how"], FinalModel(factor))
        found = {}
        for way, (how, who) in ways.items():
            release = planned_release(configured(study, epochs, 1.0, how, 0), len(dataset.train))
            noise = calibrate(release, NoiseMultiplier(), TARGET, who or WorstCase()).value
            runs = [accuracy(configured(study, epochs, noise, how, s, hidden=who is not None), dataset) for s in SEEDS]
            found[way] = {"noise": noise, "accuracy": float(np.mean(runs)), "spread": float(np.std(runs))}
        yield {"study": name, "epochs": epochs, "contraction": factor, "ways": found}


def main() -> None:
    """Every study, or those named."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in sys.argv[1:] or STUDIES:
        found = list(rows(name))
        known = [row for row in known if row["study"] != name] + found
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    for row in known:
        cells = [
            f"{w['noise']:.3g}: {100 * w['accuracy']:.1f}% ± {100 * w['spread']:.1f}" for w in row["ways"].values()
        ]
        print("|", row["study"], "|", row["epochs"], "|", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
