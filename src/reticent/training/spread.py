"""Hold to limits on the gradients of a public pool: the run ends before a step that would break them.

What is looked at is public: the weights, which earlier steps released, and the pool. So to stop tells nothing about the
training records. docs/theory/relaxed/networks.md has what follows for an attacker who knows the pool.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from reticent.data import Dataset
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.sensitivity.brute import without_hooks
from reticent.sensitivity.checks import is_random
from reticent.training.config import SpreadConfig
from reticent.training.hooks import RunContext, Step, StepHook, StopTraining
from reticent.training.models import record_gradients

_CHUNK = 64  # gradients at a time
_ROUNDING = 1e-5  # in clip norms, for single precision


class SpreadHook(StepHook):
    """Measures the clipped gradients of a pool of test records before each step.

    Attributes:
        spent: squared length of the mean gradient, summed over the steps so far, in squared clip norms; one number for
            each group of candidates.
        largest: second moment, the largest so far.
    """

    def __init__(self, config: SpreadConfig, dataset: Dataset) -> None:
        """Take the pool.

        Raises:
            ParameterError: there are too few test records, or a label has none where each label counts by itself.
        """
        if len(dataset.test) < config.pool:
            raise ParameterError("spread.pool", config.pool, f"at most {len(dataset.test)}, the test records")
        where = dataset.test[: config.pool]
        self._config, self._features, self._labels = config, dataset.features[where], dataset.labels[where]
        every = range(dataset.classes) if config.each_label else ()
        self._groups = [np.flatnonzero(self._labels == label) for label in every] or [np.arange(config.pool)]
        if not all(len(group) for group in self._groups):
            raise ParameterError("spread.pool", config.pool, "large enough to hold each label")
        self.spent, self.largest = np.zeros(len(self._groups)), 0.0

    def start(self, context: RunContext) -> None:
        """Attach to the model of the run.

        Raises:
            UnsupportedError: a layer draws random numbers, so a gradient is no function of weights and record.
        """
        if any(is_random(layer) for layer in context.model.modules()):
            raise UnsupportedError("spread: a layer of the model draws random numbers, and the limits are about none")
        self._context, device = context, context.train_features.device
        self._pool = [torch.from_numpy(part).to(device) for part in (self._features, self._labels)]
        self._most = self._config.mean_gradient**2 * context.settings.steps

    def before_step(self, step: Step) -> None:
        """Measure; raises ``StopTraining`` where the step would break a limit."""
        rows = self._clipped()
        for number, group in enumerate(self._groups):
            gram = (rows[group] @ rows[group].T).double() / len(group)
            self.spent[number] += (math.sqrt(max(float(gram.sum()), 0.0) / len(group)) + _ROUNDING) ** 2
            self.largest = max(self.largest, float(torch.linalg.eigvalsh(gram)[-1]) + _ROUNDING)
        if not (np.all(self.spent <= self._most) and self.largest <= self._config.second_moment):
            if step.index == 0:
                seen = f"mean_gradient {math.sqrt(self.spent.max()):.3g}, second_moment {self.largest:.3g}"
                raise ParameterError("spread", seen, "within the limits at the first step")
            raise StopTraining("the gradients of the pool leave the limits of spread")

    def _clipped(self) -> torch.Tensor:
        """Gradients of the pool in clip norms, clipped as those of the training records: shape (pool, weights)."""
        model, norm = self._context.model, self._context.settings.max_grad_norm
        trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
        parts = []
        with without_hooks(model):
            for rows in record_gradients(model, trained, *self._pool, chunk=_CHUNK):
                lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
                parts.append(rows * (norm / (lengths + 1e-6)).clamp(max=1.0) / norm)
        return torch.cat(parts).cpu()
