"""Measure how far one field of one record can move a clipped gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import nn

from reticent.kernel.checks import count, positive
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.sensitivity import checks
from reticent.sensitivity.attribute import SensitiveAttribute
from reticent.sensitivity.brute import Loss
from reticent.sensitivity.dense import DenseEngine
from reticent.sensitivity.diameter import Diameter, diameters
from reticent.sensitivity.gram import Measured
from reticent.sensitivity.trust import Engine, Examiner, Route, build, slack

_MEMORY = 256 * 2**20
_CACHE = 20 * 2**20
_CACHE_LAYERED = 8 * 2**20
EXAMINED = 0.02
"""Share of later batches that are compared with brute force again."""


class Precision(Enum):
    """The arithmetic of all passes, forward included."""

    SINGLE = torch.float32
    """Squared distances to about 1e-6 of the squared clip norm; ``GradientSensitivity.slack`` covers the error.

    Double where that is seen not to be so, as in a network whose units nearly cancel. It is looked for on a few records
    only: another one with saturated answers, large features and a small clip norm can be off by 2e-3. So no guarantee
    should rest on it."""
    DOUBLE = torch.float64
    """Squared distances to about 1e-14 of the squared clip norm."""


@dataclass(frozen=True)
class Distances:
    """Clipped gradients of a block of records, in units of the clip norm.

    Attributes:
        first: position of the block's first record.
        squared: squared distances between completions, (records, n, n); for ``Diameter.CENTROID`` to their mean,
            (records, n).
        norms: norms, (records, n), at most 1.
        slack: how far rounding may have moved a squared distance or norm.
    """

    first: int
    squared: torch.Tensor
    norms: torch.Tensor
    slack: float


class GradientSensitivity:
    """Distances between the clipped gradients of all completions of each record, at the model's weights.

    Right, or refused. The first batch, and about one in fifty later ones, is compared on a few records with
    brute force: one backward pass per completion on the model itself. The fastest way of computing that agrees
    is taken. A model that draws random numbers, mixes records or changes itself in ``forward`` is refused.
    What brute force cannot see is named in docs/theory/attribute.md.

    Nothing is drawn from a global generator, and weights, gradients and buffers of ``model`` are as before
    when a method returns.
    """

    def __init__(
        self,
        model: nn.Module,
        attribute: SensitiveAttribute,
        *,
        max_grad_norm: float = 1.0,
        loss: Loss | None = None,
        precision: Precision = Precision.DOUBLE,
        memory: int = _MEMORY,
    ) -> None:
        """Prepare.

        Args:
            model: the bare module or Opacus's wrapper of it.
            attribute: what to vary.
            max_grad_norm: clip norm of training.
            loss: each record's own loss, or None for cross-entropy on logits.
            precision: of all arithmetic; a model that casts inside is measured in single precision.
            memory: bytes of working memory that a block may take; at least one record is always taken.

        Raises:
            ParameterError: ``precision`` is not of its type, or a number is out of range.
            UnsupportedError: nothing is trained, or a layer is random (dropout), mixes records (BatchNorm), has a
                hook, or changes its weights in forward.
        """
        if not isinstance(precision, Precision):
            raise ParameterError("precision", precision, "a Precision, such as Precision.SINGLE")
        self.attribute = attribute
        self._clip = positive(max_grad_norm=max_grad_norm)
        self._memory = count(memory=memory)
        self._model, self._loss, self._precision = checks.bare(model), loss, precision
        checks.model_is_fit(self._model)
        device = next(self._model.parameters()).device
        self._values = torch.as_tensor(attribute.values, dtype=torch.float64, device=device)
        self._columns = torch.as_tensor(attribute.columns, device=device)
        self._rng = np.random.default_rng(0)
        self._examined: tuple[object, ...] | None = None
        self.slack = slack(self._model, precision.value, 1.0)
        """How far rounding may have moved a squared distance, in squared clip norms, in all blocks so far: no distance
        exceeds sqrt(D^2 + slack)."""

    @property
    def route(self) -> Route | None:
        """How distances are computed; None before the first batch."""
        return self._route if self._examined is not None else None

    def blocks(
        self, features: torch.Tensor, labels: torch.Tensor, method: Diameter = Diameter.EXACT
    ) -> Iterator[Distances]:
        """Distances of all records, block by block, at the weights of now.

        Args:
            features: (records, ...), on the device of the model; the attribute's own values are ignored.
            labels: (records, ...).
            method: what the distances are for; the centroid needs no pairs, so time and memory grow with n alone.

        Raises:
            ParameterError: shapes or types that do not fit together, or a loss that is not one per record.
            NumericalError: a gradient is not finite.
            UnsupportedError: no way of measuring agrees with brute force, or no gradient per record exists.
        """
        self._prepare(features, labels)
        first, pairs = 0, method is not Diameter.CENTROID
        while first < len(features):
            last = first + self._block_size(len(features) - first, pairs=pairs)
            # Not around the yield: the caller's own code between two blocks keeps its gradient mode.
            part = self._measure(features[first:last], labels[first:last], pairs=pairs)
            yield Distances(first, part.squared, part.norms, self._rounded())
            first = last

    def diameters(
        self, features: torch.Tensor, labels: torch.Tensor, method: Diameter = Diameter.EXACT
    ) -> torch.Tensor:
        """Largest distance of each record in units of the clip norm, (records,); see ``diameters``."""
        parts = [diameters(block.squared, method) for block in self.blocks(features, labels, method)]
        return torch.cat(parts) if parts else torch.zeros(0)

    def _prepare(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """Check the batch, choose the engine or examine it again, and read the weights."""
        checks.batch_fits(features, labels, self.attribute.columns)
        if not len(features):
            return
        now = checks.signature(self._model)
        if self._examined != now:
            checks.model_is_fit(self._model)
            self._choose(features, labels)
            self._examined = now
        elif self._rng.random() < EXAMINED and not self._agrees(features, labels):
            self._examined = None
            raise UnsupportedError(
                f"the gradients of {type(self._model).__name__} no longer agree with one backward pass per record: "
                "earlier measurements cannot be trusted either"
            )
        with torch.no_grad():
            self._engine.refresh()

    def _choose(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        self._examiner = Examiner(self._model, self._loss, self._columns, self._values, self._clip, self._memory)
        self._route, self._dtype = self._examiner.choose(features, labels)
        wanted = self._precision.value if self._dtype is torch.float64 else torch.float32
        self._engine = self._build(wanted)
        if wanted is not self._dtype and not self._examiner.is_precise(self._engine, features, labels):
            self._engine, wanted = self._build(self._dtype), self._dtype  # single is not enough for this network
        self._arithmetic = wanted

    def _agrees(self, features: torch.Tensor, labels: torch.Tensor) -> bool:
        """Whether later gradients are still right, and precise."""
        if self._arithmetic is self._dtype:
            return self._examiner.agrees(self._engine, self._dtype, features, labels)
        return self._examiner.is_precise(self._engine, features, labels)

    def _build(self, dtype: torch.dtype) -> Engine:
        engine = build(self._route, self._model, self._loss, self._columns, self._values.to(dtype))
        if engine is None:
            raise AssertionError(f"route {self._route} was chosen for this model")
        return engine

    def _measure(self, features: torch.Tensor, labels: torch.Tensor, *, pairs: bool) -> Measured:
        drawn = torch.get_rng_state()
        with torch.no_grad():
            part = self._engine.measure(features, labels, self._clip, pairs=pairs)
        if not torch.equal(drawn, torch.get_rng_state()):
            torch.set_rng_state(drawn)
            raise UnsupportedError(f"{type(self._model).__name__} draws random numbers in forward")
        return part

    def _rounded(self) -> float:
        """The slack of the block that was measured last."""
        found = slack(self._model, self._arithmetic, self._engine.scale)
        self.slack = max(self.slack, found)
        return found

    def _block_size(self, left: int, *, pairs: bool = True) -> int:
        """Records of the next block, ``left`` > 0 of them in blocks of nearly the same size."""
        per_record = self._engine.bytes_per_record(pairs=pairs)
        most = _CACHE if isinstance(self._engine, DenseEngine) else _CACHE_LAYERED
        limit = 1 if per_record == 0 else max(1, min(self._memory, most) // per_record)
        return math.ceil(left / math.ceil(left / limit)) if per_record else 1
