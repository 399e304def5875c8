"""How far one field of one record can move a clipped gradient, exactly and without the gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import nn

from reticent import _check
from reticent.data import ColumnGroup
from reticent.errors import ParameterError
from reticent.train import sensitivity_checks as checks
from reticent.train.sensitivity_dense import DenseEngine, Loss, dense_layers
from reticent.train.sensitivity_diameter import Diameter, diameters
from reticent.train.sensitivity_layers import LayeredEngine

__all__ = ["Diameter", "Distances", "GradientSensitivity", "Precision", "SensitiveAttribute", "diameters"]

_MEMORY = 256 * 2**20
_CACHE = 20 * 2**20
_CACHE_LAYERED = 8 * 2**20


class Precision(Enum):
    """The arithmetic of all passes, forward included."""

    SINGLE = torch.float32
    """Distances to about 1e-6 of the clip norm, absolute; ``GradientSensitivity.slack`` covers the error."""
    DOUBLE = torch.float64
    """Distances to about 1e-14 of the clip norm."""


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """One field of a person, or several jointly, as columns of the features, with the values to compare.

    Attributes:
        columns: indices into one record's flattened features.
        values: candidate values in the scale that the model sees, (candidates, columns); at least two.

    Raises:
        ParameterError: columns that are no distinct positions, or values that do not fit them or do not differ.
    """

    columns: tuple[int, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        checks.columns_and_values(self.columns, self.values)

    @classmethod
    def from_group(cls, group: ColumnGroup, *, extremes: bool = False) -> SensitiveAttribute:
        """All values of an attribute of a data set, or only its two ends.

        The two ends are a lower bound on what all values show: a choice of the paper, for speed, that is
        safe only if the gradient moves furthest between them.
        """
        return cls(group.columns, np.asarray(group.extremes if extremes else group.encoded, dtype=float))

    @classmethod
    def number(cls, column: int, low: float, high: float, count: int) -> SensitiveAttribute:
        """``count`` >= 2 equally spaced values from ``low`` to ``high``, both included."""
        if _check.count(count=count) < 2:
            raise ParameterError("count", count, "at least 2")
        return cls((column,), np.linspace(_check.finite(low=low), _check.finite(high=high), count)[:, None])

    @classmethod
    def observed(cls, columns: Sequence[int], features: np.ndarray) -> SensitiveAttribute:
        """All distinct values in ``features`` (records, ...). They are themselves private."""
        flat = np.asarray(features).reshape(len(features), -1)
        if any(not 0 <= column < flat.shape[1] for column in columns):
            raise ParameterError("columns", tuple(columns), f"in 0 to {flat.shape[1] - 1}")
        return cls(tuple(columns), np.unique(flat[:, list(columns)], axis=0).astype(float))

    @classmethod
    def jointly(cls, *parts: SensitiveAttribute) -> SensitiveAttribute:
        """Several attributes at once: every combination of their values."""
        if not parts:
            raise ParameterError("parts", "none", "one or more attributes")
        rows = [np.concatenate(rows) for rows in itertools.product(*(p.values for p in parts))]
        return cls(tuple(itertools.chain.from_iterable(p.columns for p in parts)), np.array(rows))


@dataclass(frozen=True)
class Distances:
    """Clipped gradients of a block of records, in units of the clip norm; overwritten by the next block.

    Attributes:
        first: position of the block's first record.
        squared: squared distances between completions, (records, n, n).
        norms: norms, (records, n), at most 1.
    """

    first: int
    squared: torch.Tensor
    norms: torch.Tensor


class GradientSensitivity:
    """Distances between the clipped gradients of all completions of each record, at the model's weights.

    No gradient is stored for plain fully connected networks; other modules go layer by layer, and
    layers of unknown type through torch.func. Nothing is drawn at random, and neither the weights nor the
    gradients of ``model`` are touched.
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
            precision: of all arithmetic.
            memory: bytes of working memory that a block may take; at least one record is always taken.

        Raises:
            ParameterError: ``precision`` is not of its type, or a number is out of range.
            UnsupportedError: nothing is trained, or a layer is random (dropout) or mixes records (BatchNorm).
        """
        if not isinstance(precision, Precision):
            raise ParameterError("precision", precision, "a Precision, such as Precision.SINGLE")
        self.attribute = attribute
        self._clip = _check.positive(max_grad_norm=max_grad_norm)
        self._memory = _check.count(memory=memory)
        bare = getattr(model, "_module", model)
        checks.model_is_fit(bare)
        device = next(bare.parameters()).device
        values = torch.as_tensor(attribute.values, dtype=precision.value, device=device)
        columns = torch.as_tensor(attribute.columns, device=device)
        layers = dense_layers(bare)
        self._engine: DenseEngine | LayeredEngine = (
            DenseEngine(layers, loss, columns, values) if layers else LayeredEngine(bare, loss, columns, values)
        )
        depth = sum(1 for p in bare.parameters() if p.requires_grad)
        # Measured errors stay below half of this; a margin, not a theorem.
        self.slack = 64.0 * torch.finfo(precision.value).eps * math.sqrt(depth)

    def blocks(self, features: torch.Tensor, labels: torch.Tensor) -> Iterator[Distances]:
        """Distances of all records, block by block, at the weights of now.

        Args:
            features: (records, ...), on the device of the model; the attribute's own values are ignored.
            labels: (records, ...).

        Raises:
            ParameterError: shapes or types that do not fit together, or a loss that is not one per record.
            NumericalError: a gradient is not finite.
        """
        checks.batch_fits(features, labels, self.attribute.columns)
        with torch.no_grad():
            self._engine.refresh()
        first = 0
        while first < len(features):
            last = first + self._block_size(len(features) - first)
            # Not around the yield: the caller's own code between two blocks keeps its gradient mode.
            with torch.no_grad():
                part = self._engine.measure(features[first:last], labels[first:last], self._clip)
            yield Distances(first, part.squared, part.norms)
            first = last

    def diameters(
        self, features: torch.Tensor, labels: torch.Tensor, method: Diameter = Diameter.EXACT
    ) -> torch.Tensor:
        """Largest distance of each record in units of the clip norm, (records,); see ``diameters``."""
        parts = [diameters(block.squared, method) for block in self.blocks(features, labels)]
        return torch.cat(parts) if parts else torch.zeros(0)

    def largest(self, features: torch.Tensor, labels: torch.Tensor, *, prune: bool = True) -> float:
        """Largest distance over all records, R_t of CHERUBIN2024 over the clip norm; 0 for no records.

        Exact either way. With ``prune``, fully connected networks skip records that the triangle inequality
        excludes, if that pays; without it every pair of every record is compared.

        Raises:
            ParameterError, NumericalError: as ``blocks``.
        """
        engine = self._engine
        if isinstance(engine, LayeredEngine):
            squares = [float(block.squared.amax()) for block in self.blocks(features, labels)]
            return math.sqrt(max(squares, default=0.0))
        checks.batch_fits(features, labels, self.attribute.columns)
        best, step = 0.0, self._block_size(max(1, len(features)))
        with torch.no_grad():
            engine.refresh()
            for first in range(0, len(features), step):
                part = slice(first, first + step)
                best, prune = engine.largest_square(features[part], labels[part], self._clip, best, prune=prune)
        return math.sqrt(best)

    def _block_size(self, left: int) -> int:
        """Records of the next block, ``left`` > 0 of them in blocks of nearly the same size."""
        per_record = self._engine.bytes_per_record()
        most = _CACHE if isinstance(self._engine, DenseEngine) else _CACHE_LAYERED
        limit = 1 if per_record == 0 else max(1, min(self._memory, most) // per_record)
        return math.ceil(left / math.ceil(left / limit)) if per_record else 1
