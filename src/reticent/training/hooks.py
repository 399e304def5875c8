"""Look at every step of a training run without touching it.

A hook sees the model, the batch and the noisy gradient. It is called with Opacus's own hooks switched
off and with torch's random state put back afterwards; sampling and noise come from generators that a
hook cannot reach. So a run has bit-identical weights with and without hooks (a test holds this).
A hook must not write to the model, the batch or ``.grad`` of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from reticent.data import Dataset
from reticent.training.settings import Settings


class StopTraining(Exception):  # noqa: N818
    """Raised by ``before_step`` of a hook: the run ends before this step, with the steps done so far."""


@dataclass(frozen=True)
class RunContext:
    """What stays the same through a run.

    Attributes:
        settings: of the whole run. Hooks see the records themselves, also where views of them are clipped.
        model: the bare module (not Opacus's wrapper); its weights change in place.
        train_features, train_labels: the training records on the device of the model, in the order to
            which ``Step.indices`` point.
        dataset: all records, or None where ``fit`` was called with bare tensors.
        directory: folder inside the run directory into which a hook may write files (in a folder of
            its own); they become part of the run. None where nothing is written.
    """

    settings: Settings
    model: nn.Module
    train_features: torch.Tensor
    train_labels: torch.Tensor
    dataset: Dataset | None = None
    directory: Path | None = None


@dataclass(frozen=True)
class Step:
    """One step before it is taken: the model holds the weights at which gradients will be computed.

    Attributes:
        index: number of the step, from 0.
        indices: positions of the sampled records among the training records, increasing; may be empty.
        features, labels: those records, on the device of the model.
    """

    index: int
    indices: np.ndarray
    features: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True)
class Update:
    """What a step released.

    Attributes:
        gradient: (sum of clipped gradients + noise) / divisor, one flat vector in the order of
            ``model.parameters()``; a copy.
        norms: gradient norms of the sampled records before clipping, in the order of ``Step.indices``.
    """

    gradient: torch.Tensor
    norms: torch.Tensor


@runtime_checkable
class StepHook(Protocol):
    """What ``train(..., hooks=[...])`` calls. A subclass states what it needs; the rest does nothing."""

    def start(self, context: RunContext) -> None:
        """Called once, before the first step."""
        return

    def before_step(self, step: Step) -> None:
        """Called with the weights of the step still in place; may raise ``StopTraining``."""
        return

    def after_step(self, step: Step, update: Update) -> None:
        """Called after the weights have moved."""
        return

    def finish(self) -> None:
        """Called once, after the last step; the place to write files."""
        return


def flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    """One flat float32 copy of several tensors, detached, on their device."""
    return torch.cat([t.detach().reshape(-1) for t in tensors]).to(torch.float32, copy=True)
