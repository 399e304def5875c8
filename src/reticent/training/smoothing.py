"""What is done to noisy steps afterwards: a learning rate that changes, and an average of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.optim import Optimizer

from reticent.training.config import Decay, LearningRateConfig
from reticent.training.hooks import RunContext, Step, StepHook, Update


def rate_factor(schedule: LearningRateConfig, step: int, steps: int) -> float:
    """Share of the full learning rate at ``step`` (from 0) of ``steps``; the last step has ``schedule.final``."""
    rising = round(schedule.warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    if schedule.decay is Decay.CONSTANT:
        return 1.0
    done = (step - rising) / max(1, steps - 1 - rising)
    left = 1.0 - done if schedule.decay is Decay.LINEAR else 0.5 * (1.0 + math.cos(math.pi * done))
    return schedule.final + (1.0 - schedule.final) * left


def follow(optimizer: Optimizer, schedule: LearningRateConfig, steps: int) -> None:
    """Let the learning rate of ``optimizer`` follow ``schedule``, one place for each step that it takes."""
    full = [group["lr"] for group in optimizer.param_groups]

    def put(taken: int) -> None:
        for group, rate in zip(optimizer.param_groups, full, strict=True):
            group["lr"] = rate * rate_factor(schedule, min(taken, steps - 1), steps)
            group["taken"] = taken  # in the optimizer's own state, so that a checkpoint carries it

    put(0)
    optimizer.register_step_post_hook(lambda *_: put(optimizer.param_groups[0]["taken"] + 1))


class WeightAverage(StepHook):
    """A hook that keeps the mean of the weights after each of the last steps. It writes none; ``install`` does.

    Args:
        share: of the planned steps; a run that stops before they begin keeps its last weights.
    """

    def __init__(self, share: float) -> None:
        self._share, self._count = share, 0

    def start(self, context: RunContext) -> None:
        """Remember the model; nothing is averaged yet."""
        self.begin([p for p in context.model.parameters() if p.requires_grad], context.settings.steps)

    def begin(self, weights: Sequence[torch.Tensor], steps: int) -> None:
        """Remember the weights of a run of this many steps; nothing is averaged yet."""
        self._weights = list(weights)
        self._sums = [torch.zeros_like(p, dtype=torch.float64) for p in self._weights]
        self._first = steps - max(1, round(self._share * steps))

    def after_step(self, step: Step, update: Update) -> None:
        self.add(step.index)

    def add(self, index: int) -> None:
        """Add the weights as they are after step ``index``, if it is one of the last."""
        if index >= self._first:
            self._count += 1
            for total, p in zip(self._sums, self._weights, strict=True):
                total += p.detach()

    def tensors(self) -> dict[str, torch.Tensor]:
        """What a checkpoint keeps."""
        sums = {str(place): total for place, total in enumerate(self._sums)}
        return sums | {"count": torch.tensor(self._count, dtype=torch.int64)}

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from ``tensors``."""
        self._count = int(tensors["count"])
        for place, total in enumerate(self._sums):
            total.copy_(tensors[str(place)])

    def install(self) -> None:
        """Put the mean into the model."""
        with torch.no_grad():
            for total, p in zip(self._sums, self._weights, strict=True):
                if self._count:
                    p.copy_((total / self._count).to(p.dtype))
