"""Record the sensitivity of one attribute along a run, and keep it with the run, privately."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reticent.io import strict
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.mechanisms.sensitivity import Scope
from reticent.sensitivity import Diameter, Precision, SensitiveAttribute
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.training.config import SensitiveConfig
from reticent.training.hooks import RunContext, Step, StepHook, StopTraining
from reticent.training.rundir import SENSITIVITY


class AttributeHook(StepHook):
    """An ``AttributeRecorder`` as a hook of ``reticent.training``; stops the run when the budget is spent.

    What it records is private and stays in memory.

    Attributes:
        recorder: the recorder, once the run has started.
    """

    def __init__(
        self,
        attribute: SensitiveAttribute,
        *,
        audit: np.ndarray | None = None,
        whole: bool = False,
        budget: float | None = None,
        method: Diameter = Diameter.EXACT,
        precision: Precision = Precision.DOUBLE,
        every: int = 1,
    ) -> None:
        """Prepare.

        Args:
            attribute: what to vary.
            audit: positions among the training records.
            whole: take all of them.
            budget: of an ``AttributeRecorder``.
            method, precision, every: of one.
        """
        self._attribute, self._audit, self._whole, self._budget = attribute, audit, whole, budget
        self._how: dict[str, Any] = {"method": method, "precision": precision, "every": every}
        self.recorder: AttributeRecorder | None = None

    @property
    def ends_runs(self) -> bool:
        """Whether a budget of private gradients may end the run."""
        return self._budget is not None

    def start(self, context: RunContext) -> None:
        """Attach to the model of the run.

        Raises:
            UnsupportedError: the run clips mean gradients of several views, or normalises gradients, which nothing here
                measures.
        """
        if context.settings.augmentation is not None:
            raise UnsupportedError("the sensitivity of an attribute is not measured with augmentation: leave one out")
        if context.settings.normalise:
            raise UnsupportedError("the sensitivity of an attribute is not measured with clipping: normalise")
        chosen = np.arange(len(context.train_labels)) if self._whole else self._audit
        audit = None
        if chosen is not None:
            at = torch.from_numpy(_audited(chosen, len(context.train_labels))).to(context.train_labels.device)
            audit = AuditSet(context.train_features[at], context.train_labels[at], whole=self._whole)
        self.recorder = AttributeRecorder(
            context.model,
            self._attribute,
            noise_multiplier=context.settings.noise_multiplier,
            max_grad_norm=context.settings.max_grad_norm,
            audit=audit,
            budget=self._budget,
            **self._how,
        )

    def before_step(self, step: Step) -> None:
        """Measure; raises ``StopTraining`` when the step would exceed the budget."""
        if self.recorder is not None and not self.recorder.observe(step.features, step.labels, step.indices):
            raise StopTraining("the attribute budget is spent")


def _audited(chosen: np.ndarray, records: int) -> np.ndarray:
    at = np.asarray(chosen)
    if at.ndim != 1 or at.dtype.kind not in "iu" or not len(at) or int(at.min()) < 0 or int(at.max()) >= records:
        shown = f"{at.dtype} of shape {at.shape}"
        raise ParameterError("audit", shown, f"positions among the {records} training records")
    return at.astype(np.int64)


class SensitivityFileHook(AttributeHook):
    """An ``AttributeHook`` from a configuration, which writes what it recorded into the run directory.

    The file depends on private data. ``RunLedger.public`` and public certificates leave it out.
    """

    def __init__(self, config: SensitiveConfig, attribute: SensitiveAttribute) -> None:
        audit = np.arange(config.records) if config.scope is Scope.AUDIT_SET and config.records else None
        whole = config.scope is Scope.WHOLE_DATA
        super().__init__(attribute, audit=audit, whole=whole, budget=config.budget, every=config.every)
        self._directory: Path | None = None

    def start(self, context: RunContext) -> None:
        """Attach to the model of the run.

        Raises:
            ParameterError: the audit set is larger than the training data.
        """
        self._directory = context.directory
        count = len(context.train_labels)
        if self._audit is not None and len(self._audit) > count:
            raise ParameterError("sensitive.records", len(self._audit), f"at most {count}, the training records")
        super().start(context)

    def finish(self) -> None:
        """Write the record; nothing where no step ran."""
        if self.recorder is not None and self._directory is not None:
            document = {"schema": "reticent.sensitivity/1", **asdict(self.recorder.record())}
            (self._directory / SENSITIVITY).write_text(strict.dumps(document), encoding="utf-8")
