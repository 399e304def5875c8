"""What a real DP-SGD run shows about one attribute, epoch by epoch: Figures 1 and 9 of CHERUBIN2024.

    python -m experiments.closed_form_bounds.attribute_runs adult --seed 0

writes ``results/adult-0.json``. Sensitivities are exact at every step; the batch maxima (the paper's
choice), their centroid approximation and the fixed audit set are measured in the same run. What follows
from the sums is for ``attribute_report``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from experiments.closed_form_bounds.settings import EPOCHS, SETTINGS, Setting
from experiments.where import results
from reticent.sensitivity import Diameter, GradientSensitivity, Precision, diameters
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.training.hooks import RunContext, Step, StepHook, Update
from reticent.training.loop import FitRecord, fit
from reticent.training.randomness import SeededSource, Stream, torch_seed
from reticent.training.settings import Settings

RESULTS = results(__file__)
BATCH_METHODS = (Diameter.EXACT, Diameter.CENTROID)


class Watch:
    """Measures every step; notes accuracy and sums at the end of every epoch."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.squares = dict.fromkeys(BATCH_METHODS, 0.0)
        self.epochs: list[dict] = []
        self.seconds = dict.fromkeys(("batch", "audit"), 0.0)

    def start(self, context: RunContext) -> None:
        setting = self.setting
        self.context = context
        count = len(context.train_labels) if setting.audit is None else setting.audit
        self.audit = AttributeRecorder(
            context.model,
            setting.attribute,
            noise_multiplier=setting.noise_multiplier,
            audit=AuditSet(context.train_features[:count], context.train_labels[:count], whole=setting.audit is None),
            batches=False,
            precision=Precision.SINGLE,
            memory=2**30,
        )
        self.meter = GradientSensitivity(context.model, setting.attribute, precision=Precision.SINGLE)
        test = setting.data.test
        self.test = torch.from_numpy(setting.data.features[test]), torch.from_numpy(setting.data.labels[test])

    def before_step(self, step: Step) -> None:
        started = time.perf_counter()
        largest = dict.fromkeys(BATCH_METHODS, 0.0)
        for block in self.meter.blocks(step.features, step.labels):
            for method in BATCH_METHODS:
                largest[method] = max(largest[method], min(2.0, float(diameters(block.squared, method).max())))
        for method, value in largest.items():
            self.squares[method] += (value + 2.0 * self.meter.slack) ** 2
        between = time.perf_counter()
        self.audit.observe(step.features, step.labels, step.indices)
        self.seconds["batch"] += between - started
        self.seconds["audit"] += time.perf_counter() - between

    def after_step(self, step: Step, update: Update) -> None:
        if (step.index + 1) % self.setting.steps_per_epoch == 0:
            self.epochs.append(self._note(step.index + 1))

    def finish(self) -> None: ...

    def _note(self, steps: int) -> dict:
        x, y = self.test
        with torch.no_grad():
            accuracy = float((self.context.model(x).argmax(1) == y).double().mean())
        sums = self.audit.record()
        return {
            "epoch": steps // self.setting.steps_per_epoch,
            "accuracy": accuracy,
            "batch_squared_change": {m.value: self.squares[m] for m in BATCH_METHODS},
            "audit_squared_change": sums.squared_change,
            "audit_mask_term": sums.mask_term,
            "audit_largest_mask_term": sums.largest_mask_term,
            "audit_median_squared_change": float(np.median(self.audit.per_record())),
        }


def train(setting: Setting, seed: int, epochs: int, hook: StepHook) -> FitRecord:
    """One run of a setting on one thread, watched by ``hook``."""
    torch.set_num_threads(1)
    data = setting.data
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(seed, Stream.INITIALISATION))
        model = _model(data.features.shape[1], setting.width, data.classes)
    x, y = torch.from_numpy(data.features[data.train]), torch.from_numpy(data.labels[data.train])
    steps = epochs * setting.steps_per_epoch
    noise, rate = setting.noise_multiplier, setting.sample_rate
    settings = Settings(noise, 1.0, rate, float(setting.batch_size), steps)
    return fit(
        RunContext(settings, model, x, y, data),
        lambda p: torch.optim.SGD(p, lr=setting.learning_rate),
        SeededSource(seed, Stream.SAMPLING),
        SeededSource(seed, Stream.NOISE),
        [hook],
    )


def run(name: str, seed: int, epochs: int = EPOCHS) -> dict:
    """Train once and return everything that a figure or table needs."""
    setting = SETTINGS[name](seed)
    data = setting.data
    watch = Watch(setting)
    fitted = train(setting, seed, epochs, watch)
    records = len(data.train)
    return {
        "data": data.name,
        "source": data.source,
        "seed": seed,
        "records": records,
        "noise_multiplier": setting.noise_multiplier,
        "sample_rate": setting.sample_rate,
        "steps_per_epoch": setting.steps_per_epoch,
        "values_of_the_attribute": len(setting.attribute.values),
        "audited_records": records if setting.audit is None else setting.audit,
        "seconds": {"total": fitted.seconds, **watch.seconds},
        "epochs": watch.epochs,
    }


def _model(columns: int, width: int, classes: int) -> nn.Module:
    if width == 0:
        return nn.Sequential(nn.Linear(columns, classes))
    return nn.Sequential(nn.Linear(columns, width), nn.Tanh(), nn.Linear(width, classes))


def write(result: dict, path: Path) -> None:
    """Strict JSON, in one step."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    os.replace(partial, path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=list(SETTINGS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    result = run(given.data, given.seed, given.epochs)
    write(result, given.out / f"{given.data}-{given.seed}.json")
    print(json.dumps({"accuracy": result["epochs"][-1]["accuracy"], **result["seconds"]}))


if __name__ == "__main__":
    main()
