"""What moves Corollary 10 on Adult: learning rate, width and the scale of age, none of them printed.

    python -m experiments.closed_form_bounds.attribute_variations

writes ``results/variations.json``. One seed. To keep it cheap the drawn batch is measured, exactly, at every
fourth step, and the sums of squares are four times those measured: R_t moves slowly, and for the base setting
the result can be compared with ``results/adult-0.json``, which measures every step.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from experiments.closed_form_bounds.attribute_runs import BATCH_METHODS, RESULTS, train, write
from experiments.closed_form_bounds.settings import TARGET_EPOCHS, Setting, adult
from reticent.sensitivity import GradientSensitivity, Precision, SensitiveAttribute, diameters
from reticent.training.hooks import RunContext, Step, Update

EVERY = 4
SEED = 0
_CENTRE, _WIDTH = 40.0, 15.0
"""The public constants by which ``reticent.data`` moves age."""

SCALES = {"(age - 40)/15": (_CENTRE, _WIDTH), "raw years": (0.0, 1.0), "[0, 1]": (17.0, 73.0)}
"""Name of a scale of age: centre and width, in years."""


class _Watch:
    """Largest changes of every fourth drawn batch."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.squares = dict.fromkeys(BATCH_METHODS, 0.0)

    def start(self, context: RunContext) -> None:
        self.model = context.model
        self.meter = GradientSensitivity(context.model, self.setting.attribute, precision=Precision.SINGLE)

    def before_step(self, step: Step) -> None:
        if step.index % EVERY:
            return
        largest = dict.fromkeys(BATCH_METHODS, 0.0)
        for block in self.meter.blocks(step.features, step.labels):
            for method in BATCH_METHODS:
                largest[method] = max(largest[method], min(2.0, float(diameters(block.squared, method).max())))
        for method, value in largest.items():
            self.squares[method] += EVERY * value**2

    def after_step(self, step: Step, update: Update) -> None: ...

    def finish(self) -> None:
        data = self.setting.data
        with torch.no_grad():
            guess = self.model(torch.from_numpy(data.features[data.test])).argmax(1)
        self.accuracy = float((guess.numpy() == data.labels[data.test]).mean())


def rescaled(setting: Setting, centre: float, width: float) -> Setting:
    """The same people with age as (years - centre)/width."""

    def move(x: np.ndarray) -> np.ndarray:
        return (x.astype(float) * _WIDTH + _CENTRE - centre) / width

    (column,) = setting.attribute.columns
    features = setting.data.features.copy()
    features[:, column] = move(features[:, column])
    attribute = SensitiveAttribute((column,), move(setting.attribute.values))
    return replace(setting, data=replace(setting.data, features=features), attribute=attribute)


def measure(scale: str, learning_rate: float, width: int) -> dict:
    """Train for 20 epochs and evaluate Corollary 10."""
    setting = rescaled(replace(adult(SEED), learning_rate=learning_rate, width=width), *SCALES[scale])
    watch = _Watch(setting)
    seconds = train(setting, SEED, TARGET_EPOCHS, watch).seconds
    found = {}
    for method, square in watch.squares.items():
        mu = setting.sample_rate * math.sqrt(square) / setting.noise_multiplier
        found[method.value] = {"security": math.erfc(mu / (2.0 * math.sqrt(2.0))), "squared_change": square}
    return {
        "scale": scale,
        "learning_rate": learning_rate,
        "width": width,
        "accuracy": watch.accuracy,
        "seconds": seconds,
        **found,
    }


def variations() -> list[tuple[str, float, int]]:
    """One thing at a time from the base setting, then those that moved most together."""
    base = "(age - 40)/15"
    return [
        (base, 2.0, 128),
        (base, 0.5, 128),
        (base, 0.1, 128),
        (base, 2.0, 32),
        ("raw years", 2.0, 128),
        ("[0, 1]", 2.0, 128),
        ("[0, 1]", 0.5, 128),
    ]


def main() -> None:
    """Run all and write the results after each."""
    rows = []
    for scale, learning_rate, width in variations():
        rows.append(measure(scale, learning_rate, width))
        print(rows[-1], flush=True)
        write({"seed": SEED, "epochs": TARGET_EPOCHS, "every": EVERY, "rows": rows}, RESULTS / "variations.json")


if __name__ == "__main__":
    main()
