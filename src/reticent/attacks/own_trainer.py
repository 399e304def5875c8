"""reticent's own training loop as a subject of white-box audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.utils.data import TensorDataset

from reticent.attacks.white_box import check_claim
from reticent.kernel.mechanisms import DPSGD
from reticent.training import RunContext, Settings, Step, StepHook, Update, fit
from reticent.training.randomness import SystemSource


@dataclass(frozen=True)
class OwnTrainer:
    """``reticent.training.fit``: Opacus's clipping, reticent's batches and noise. See ``white_box.TrainFunction``.

    The learning rate is zero: what is audited is what each step releases, and the weights stay where they are.

    Attributes:
        progress: called with (steps done, steps planned) after each step.
    """

    progress: Callable[[int, int], None] | None = None

    def __call__(self, model: nn.Module, data: TensorDataset, claim: DPSGD) -> torch.Tensor:
        """One run with fresh randomness of the operating system."""
        check_claim(claim)
        settings = Settings(
            noise_multiplier=claim.noise_multiplier,
            max_grad_norm=claim.max_grad_norm,
            sample_rate=claim.sample_rate,
            divisor=float(claim.batch_size or 1),
            steps=claim.steps,
            sampler=claim.sampler,
            batch_size=claim.batch_size,
        )
        recorder = _Recorder()
        features, labels = data.tensors
        context = RunContext(settings, model, features, labels)
        still = partial(torch.optim.SGD, lr=0.0)
        fit(context, still, SystemSource(), SystemSource(), hooks=(recorder,), progress=self.progress)
        return torch.stack(recorder.gradients)


class _Recorder(StepHook):
    def __init__(self) -> None:
        self.gradients: list[torch.Tensor] = []

    def after_step(self, step: Step, update: Update) -> None:
        self.gradients.append(update.gradient)
