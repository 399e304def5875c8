"""What the attribute recorder costs beside an Opacus step, and what its bound becomes, when it samples steps.

    python -m experiments.closed_form_bounds.recorder_cost [--precision single]

Adult, batches of 256 by Poisson sampling, hidden layer of 128, the settings of ``settings.adult``. Loops with
``every`` = 1, 3 and 10 and one without a recorder run in turn. CPU seconds of this process: other work on the machine
counts little. The rows after them sum the squared largest distances over one epoch.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Iterator

import torch
from opacus import PrivacyEngine
from torch import nn

from experiments.closed_form_bounds.settings import Setting, adult
from reticent.sensitivity import Precision, SensitiveAttribute
from reticent.sensitivity.recorder import AttributeRecorder

EVERY = (1, 3, 10)
GROUPS = ("native-country", "age")
ROUNDS, STEPS = 7, 30


class Loop:
    """An Opacus loop with a recorder that measures every so manieth step; 0 is a loop without."""

    def __init__(self, setting: Setting, attribute: SensitiveAttribute, every: int, precision: Precision) -> None:
        torch.manual_seed(0)
        data = setting.data
        x, y = torch.from_numpy(data.features[data.train]), torch.from_numpy(data.labels[data.train])
        model = nn.Sequential(nn.Linear(x.shape[1], setting.width), nn.Tanh(), nn.Linear(setting.width, data.classes))
        records = torch.utils.data.TensorDataset(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model, self.optimiser, self.loader = PrivacyEngine().make_private(
                module=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=setting.learning_rate),
                data_loader=torch.utils.data.DataLoader(records, batch_size=setting.batch_size),
                noise_multiplier=setting.noise_multiplier,
                max_grad_norm=1.0,
                noise_generator=torch.Generator().manual_seed(1),
            )
        self.batches, self.recorder = self._batches(), None
        if every:
            self.recorder = AttributeRecorder(
                self.model, attribute, noise_multiplier=setting.noise_multiplier, precision=precision, every=every
            )

    def _batches(self) -> Iterator[list[torch.Tensor]]:
        while True:
            yield from self.loader

    def run(self, steps: int) -> float:
        """CPU seconds of a step."""
        start = time.process_time()
        for _ in range(steps):
            x, y = next(self.batches)
            self.optimiser.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            if self.recorder is not None:
                self.recorder.observe(x, y)
            self.optimiser.step()
        return (time.process_time() - start) / steps


def cost(setting: Setting, attribute: SensitiveAttribute, precision: Precision) -> tuple[float, dict[int, list[float]]]:
    """(milliseconds of a bare step, what each recorder adds in steps: one number per round)."""
    loops = {every: Loop(setting, attribute, every, precision) for every in (0, *EVERY)}
    for loop in loops.values():
        loop.run(STEPS)
    bare, added = [], {every: [] for every in EVERY}
    for _ in range(ROUNDS):
        seconds = {every: loop.run(STEPS) for every, loop in loops.items()}
        bare.append(1e3 * seconds[0])
        for every in EVERY:
            added[every].append(seconds[every] / seconds[0] - 1.0)
    return statistics.median(bare), added


def sums(setting: Setting, attribute: SensitiveAttribute, precision: Precision) -> dict[int, tuple[int, float, float]]:
    """By ``every``: steps of one epoch, sum of R_t squared, and the sum of mask terms of the worst record."""
    found = {}
    for every in EVERY:
        loop = Loop(setting, attribute, every, precision)
        loop.run(setting.steps_per_epoch)
        record = loop.recorder.record()
        found[every] = record.steps, record.published_squared_change, record.mask_term
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("single", "double"), default="double")
    precision = Precision[parser.parse_args().precision.upper()]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Full backward hook")
    setting = adult(0)
    for group in GROUPS:
        attribute = SensitiveAttribute.from_group(setting.data.group(group))
        name = f"{group} ({len(attribute.values)} values)"
        bare, added = cost(setting, attribute, precision)
        for every, ratios in added.items():
            spread = f"{min(ratios):.2f} / {statistics.median(ratios):.2f} / {max(ratios):.2f}"
            print(f"| {name} | {every} | {bare:.1f} | {spread} |", flush=True)
        for every, (steps, squares, mask) in sums(setting, attribute, precision).items():
            print(f"| {name} | {every} | {steps} | {squares:.4f} | {mask:.5f} |", flush=True)


if __name__ == "__main__":
    main()
