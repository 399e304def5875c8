"""Accumulate, along a training run, how much one field of each record could have shown.

Three lines on any loop, Opacus or plain:

    recorder = AttributeRecorder(model, attribute, noise_multiplier=1.0, sample_rate=0.01)
    ...
        recorder.observe(features, labels, indices)      # before optimizer.step()
    ...
    assessment = Attribute(recorder.record()).assess(mechanism)

Nothing here draws a random number or touches weights, gradients or hooks of the model: with and without
a recorder the trained weights are bit-identical. Everything recorded is private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.mechanisms.mask_terms import LARGEST_CHANGE, worst_mask_term
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.sensitivity.attribute import SensitiveAttribute
from reticent.sensitivity.brute import Loss
from reticent.sensitivity.diameter import Diameter
from reticent.sensitivity.meter import GradientSensitivity, Precision
from reticent.sensitivity.recorder_sums import EVERYBODY, Sums, largest_changes, rows


@dataclass(frozen=True)
class AuditSet:
    """Records that are looked at in every step, drawn or not.

    Attributes:
        features, labels: the records, on the device of the model.
        whole: these are all training records.

    Raises:
        ParameterError: no records, or not as many labels.
    """

    features: torch.Tensor
    labels: torch.Tensor
    whole: bool = False

    def __post_init__(self) -> None:
        if len(self.features) == 0 or len(self.labels) != len(self.features):
            raise ParameterError("audit", f"{len(self.features)} records", "one or more records, with a label each")


class AttributeRecorder:
    """Sums of squared changes and mask terms, per record and per pair of values, over all steps.

    Without an audit set the records of each drawn batch are measured, as CHERUBIN2024 does: a diagnostic.
    With one, each of its records is measured in every step; with a ``budget`` fixed before training,
    ``observe`` says when to stop, and the record carries a guarantee for the audited records.
    """

    def __init__(
        self,
        model: nn.Module,
        attribute: SensitiveAttribute,
        *,
        noise_multiplier: float,
        max_grad_norm: float = 1.0,
        audit: AuditSet | None = None,
        budget: float | None = None,
        batches: bool = True,
        method: Diameter = Diameter.EXACT,
        loss: Loss | None = None,
        precision: Precision = Precision.DOUBLE,
        memory: int = 256 * 2**20,
        every: int = 1,
    ) -> None:
        """Attach to ``model``; its weights are read at every ``observe``.

        Args:
            model: the bare module or Opacus's wrapper.
            attribute: what to vary.
            noise_multiplier: noise standard deviation over ``max_grad_norm``, > 0.
            max_grad_norm: clip norm.
            audit: records to measure in every step; None for the drawn batches.
            budget: largest sum of mask terms of any audited record and pair, fixed before training.
            batches: with an audit set, also measure the drawn batches, for the published formula.
            method: exact, or an upper bound on each step's largest distance by name.
            loss: each record's own loss, or None for cross-entropy on logits.
            precision: of the distances; sums are kept in double.
            memory: bytes for one block; pairs are summed only where all of them fit as well.
            every: measure steps 0, ``every``, 2 ``every``, ... only. A step in between counts with the most that
                clipping allows (distance 2, and the worst mask term at it), so that all sums stay upper bounds.

        Raises:
            ParameterError: a budget without an audit set or in single precision, or an argument of another type or out
                of range.
            UnsupportedError: see ``GradientSensitivity``.
        """
        if not isinstance(method, Diameter):
            raise ParameterError("method", method, "a Diameter, such as Diameter.EXACT")
        if audit is not None and not isinstance(audit, AuditSet):
            raise ParameterError("audit", type(audit).__name__, "an AuditSet or None")
        self._noise = checks.positive(noise_multiplier=noise_multiplier)
        if budget is not None:
            checks.positive(budget=budget)
            if audit is None:
                raise ParameterError("budget", budget, "given together with an audit set", shown=False)
            if precision is Precision.SINGLE:  # its slack is checked on a few records, so no budget is kept by it
                raise ParameterError("precision", precision, "Precision.DOUBLE where a budget is kept", shown=False)
        self._meter = GradientSensitivity(
            model, attribute, max_grad_norm=max_grad_norm, loss=loss, precision=precision, memory=memory
        )
        self._every = checks.count(every=every)
        worst = worst_mask_term(LARGEST_CHANGE, self._noise)
        self._worst = np.array(LARGEST_CHANGE**2), np.array(worst)  # what a step shows that is not measured
        self._audit, self._budget, self._method = audit, budget, method
        self._batches = batches or audit is None
        self._sums = self._new_sums(len(attribute.values), memory)
        self.largest_per_step: list[float] = []
        """R_t over the clip norm, rounding included: the largest distance in each drawn batch, 0 for an empty one."""
        self.steps = 0
        self._refused = False
        self._spoiled: str | None = None

    def observe(self, features: torch.Tensor, labels: torch.Tensor, indices: np.ndarray | None = None) -> bool:
        """Measure the step that is about to be taken, at the weights of now.

        Args:
            features, labels: the drawn records.
            indices: their positions among the training records; without them the sums over the drawn
                steps take the largest record of every batch, an upper bound.

        Returns:
            True to take the step. False when it would exceed the budget: stop training before it; the
            step is then not counted.

        Raises:
            ParameterError: the three do not fit together; nothing is counted then.
            NumericalError: a gradient is not finite.
            UnsupportedError: the model cannot be measured; what was recorded before is not given out either.
        """
        at = None if indices is None else _positions(indices, len(features))
        if self.steps % self._every:
            return self._take_for_granted(len(features), at)
        try:
            if self._audit is not None and not self._observe_audit(self._audit):
                self._refused = True
                return False
            if self._batches:
                self._observe_batch(features, labels, at)
        except UnsupportedError as error:
            self._spoiled = str(error)
            raise
        self.steps += 1
        return True

    def record(self) -> SensitivityRecord:
        """What was accumulated, with the rounding of squared distances added in each step on the safe side.

        Raises:
            ParameterError: no step was observed, or the budget did not allow the first.
            UnsupportedError: a step was refused: the model cannot be measured.
        """
        if self._spoiled is not None:
            raise UnsupportedError(f"the record is not complete: {self._spoiled}")
        if self._refused and self.steps == 0:
            raise ParameterError("budget", self._budget, "larger: the first step alone exceeds it")
        if self.steps == 0:
            raise ParameterError("steps", 0, "at least 1: call observe before each step")
        sums = self._sums
        return SensitivityRecord(
            steps=checks.count(steps=self.steps),
            scope=self.scope,
            squared_change=sums.squared_change(),
            mask_term=sums.mask_term(),
            largest_mask_term=sums.largest_mask_term,
            published_squared_change=sum(r**2 for r in self.largest_per_step) if self._batches else None,
            noise_multiplier=self._noise,
            budget=self._budget,
        )

    @property
    def scope(self) -> Scope:
        """Whose gradients are compared."""
        if self._audit is None:
            return Scope.SAMPLED_BATCH
        return Scope.WHOLE_DATA if self._audit.whole else Scope.AUDIT_SET

    def per_record(self) -> np.ndarray:
        """Largest sum of squared changes of each record, in the order of the audit set. Private."""
        return self._sums.per_record()

    def _new_sums(self, values: int, memory: int) -> Sums:
        count = 0 if self._audit is None else len(self._audit.features)
        pairs = self._audit is not None and self._method is Diameter.EXACT and 16 * count * values**2 <= memory
        return Sums(count, self._noise, self._method, values if pairs else None)

    def _take_for_granted(self, size: int, at: np.ndarray | None) -> bool:
        """Count a step that is not measured with the most that it can show."""
        audited = self._audit is not None
        if self._budget is not None and self._sums.mask_term() + float(self._worst[1]) > self._budget:
            self._refused = True
            return False
        if audited or size:
            self._sums.count(self._worst, EVERYBODY if audited or at is None else at)
        if self._batches:
            self.largest_per_step.append(LARGEST_CHANGE if size else 0.0)
        self.steps += 1
        return True

    def _observe_audit(self, audit: AuditSet) -> bool:
        if self._budget is not None:
            # The step may still be refused: measure twice rather than undo.
            blocks = self._meter.blocks(audit.features, audit.labels, self._method)
            if max(map(self._sums.after, blocks), default=0.0) > self._budget:
                return False
        for block in self._meter.blocks(audit.features, audit.labels, self._method):
            self._sums.count(self._sums.step(block), rows(block))
        return True

    def _observe_batch(self, features: torch.Tensor, labels: torch.Tensor, at: np.ndarray | None) -> None:
        blocks = self._meter.blocks(features, labels, self._method)
        if self._audit is not None:
            changes = [float(largest_changes(block, self._method).max()) for block in blocks]
            self.largest_per_step.append(max(changes, default=0.0))
            return
        found = [(np.zeros(0), np.zeros(0)), *map(self._sums.step, blocks)]
        squares, terms = (np.concatenate(part) for part in zip(*found, strict=True))
        if at is None:  # whose change was the largest is not known
            self._sums.count((squares.max(initial=0.0), terms.max(initial=0.0)))
        else:
            self._sums.count((squares, terms), at)
        self.largest_per_step.append(float(np.sqrt(squares.max(initial=0.0))))


def _positions(indices: object, records: int) -> np.ndarray:
    """Positions of the drawn records as int64."""
    found = np.asarray(indices)
    if found.shape != (records,) or (found.dtype.kind not in "iu" and records):
        allowed = f"{records} whole numbers, one per drawn record"
        raise ParameterError("indices", f"{found.dtype} of shape {found.shape}", allowed)
    if records and (int(found.min()) < 0 or len(np.unique(found)) != records):
        raise ParameterError("indices", "negative or repeated ones", "distinct positions >= 0")
    return found.astype(np.int64)
