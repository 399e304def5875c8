"""Which way of measuring may be believed for a model: the fastest one that agrees with brute force on it."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import nn

from reticent.kernel.errors import ReticentError, UnsupportedError
from reticent.sensitivity.brute import Loss, Truth, borrowed, complete, cross_entropy, truth
from reticent.sensitivity.dense import DenseEngine, dense_layers
from reticent.sensitivity.layered import LayeredEngine
from reticent.sensitivity.single import SingleEngine

_RECORDS, _LATER_RECORDS, _VALUES, _COMPANY = 3, 1, 6, 32


class Route(StrEnum):
    """A way of measuring, from the fastest to the slowest."""

    DENSE = "dense"
    """Hand-written passes for fully connected networks."""
    LAYERED = "layered"
    """Factors of known layers; ``torch.func`` for all other parameters."""
    SINGLE = "single"
    """The gradient of each completion, by one backward pass each: brute force itself."""


Engine = DenseEngine | LayeredEngine | SingleEngine
"""What a route gives.

Its ``scale`` is, of the last block, the largest squared length of an input times that of a clipped error, of any two
completions of a record, summed over layers. Squared distances are rounded in units of it, or of 1.
"""


def build(
    route: Route, model: nn.Module, loss: Loss | None, columns: torch.Tensor, values: torch.Tensor
) -> Engine | None:
    """The engine of a route in the dtype of ``values``, or None where the route does not fit the model."""
    match route:
        case Route.DENSE:
            layers = dense_layers(model)
            return DenseEngine(layers, loss, columns, values) if layers else None
        case Route.LAYERED:
            try:
                return LayeredEngine(model, loss, columns, values)
            except Exception:  # a module that cannot be copied; the next route needs no copy
                return None
        case Route.SINGLE:
            return SingleEngine(model, loss, columns, values)


@dataclass(frozen=True)
class _Exam:
    """A few records, and what brute force says about them.

    Attributes:
        features, labels: the records.
        at: which of the attribute's values were taken.
        dtype: in which precision.
        shaken: whether the weights were moved.
        truth: the result.
    """

    features: torch.Tensor
    labels: torch.Tensor
    at: torch.Tensor
    dtype: torch.dtype
    shaken: bool
    truth: Truth


class Examiner:
    """Compares engines with brute force on a few records of the batch at hand."""

    def __init__(
        self, model: nn.Module, loss: Loss | None, columns: torch.Tensor, values: torch.Tensor, clip: float, memory: int
    ) -> None:
        """Prepare; ``values`` in double, ``clip`` the clip norm, ``memory`` in bytes for brute force."""
        self._model, self._loss, self._columns, self._values, self._clip = model, loss, columns, values, clip
        self._rng = np.random.default_rng(0)
        size = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self._most = max(2, min(_VALUES, memory // max(1, 24 * size)))

    def choose(self, features: torch.Tensor, labels: torch.Tensor) -> tuple[Route, torch.dtype]:
        """The fastest route that agrees, and the precision in which the model runs.

        The comparison is in double, at the weights of now and at weights close to them. Where the model
        casts to its own precision inside, it is in that.

        Raises:
            ParameterError, NumericalError: the batch does not fit the model, or a gradient is not finite.
            UnsupportedError: no gradient per record exists, or the model does not run on one record alone.
        """
        self._check_dense(features, labels)
        try:
            return self._choose(features, labels, torch.float64)
        except _CannotRunError:
            if {p.dtype for p in self._model.parameters()} != {torch.float32}:
                raise
        return self._choose(features, labels, torch.float32)

    def agrees(self, engine: Engine, dtype: torch.dtype, features: torch.Tensor, labels: torch.Tensor) -> bool:
        """Whether an engine in ``dtype`` agrees with brute force on a random record, at the weights of now.

        Raises:
            UnsupportedError: no gradient per record exists any more.
        """
        return self._passes(engine, self._exam(features, labels, dtype, _LATER_RECORDS, shaken=False))

    def is_precise(self, engine: Engine, features: torch.Tensor, labels: torch.Tensor) -> bool:
        """Whether an engine in single precision is within its slack of brute force in double, on a few records.

        A network whose units nearly cancel loses more. Nothing else would see it: brute force in single loses as much.

        Raises:
            UnsupportedError: no gradient per record exists any more.
        """
        exam = self._exam(features, labels, torch.float64, _RECORDS, shaken=False)
        return self._passes(engine, exam, torch.float32)

    def _choose(self, features: torch.Tensor, labels: torch.Tensor, dtype: torch.dtype) -> tuple[Route, torch.dtype]:
        exams = [self._exam(features, labels, dtype, _RECORDS, shaken=False)]
        # Weights close to those of now may be impossible for the model.
        with contextlib.suppress(ReticentError):
            exams.append(self._exam(features, labels, dtype, _RECORDS, shaken=True))
        values = self._values.to(dtype)
        for route in Route:
            engine = build(route, self._model, self._loss, self._columns, values)
            if engine is not None and all(self._passes(engine, exam) for exam in exams):
                return route, dtype
        raise AssertionError("brute force agrees with itself")

    def _exam(
        self, features: torch.Tensor, labels: torch.Tensor, dtype: torch.dtype, records: int, *, shaken: bool
    ) -> _Exam:
        rows = torch.from_numpy(self._rng.permutation(len(features))[:records]).to(features.device)
        at = self._some_values().to(features.device)
        x, y = features[rows], labels[rows]
        company = features[:_COMPANY].to(dtype) if features.is_floating_point() else features[:_COMPANY]
        with borrowed(self._model, dtype, _shake(shaken)):
            try:
                found = truth(
                    self._model,
                    self._loss or cross_entropy,
                    complete(x, self._columns, self._values.to(dtype)[at]),
                    y.repeat_interleave(len(at), dim=0),
                    len(rows),
                    (company, labels[:_COMPANY]),
                )
            except ReticentError:
                raise
            except Exception as error:  # whatever the model's own code raises
                raise _CannotRunError(self._model, error) from None
        return _Exam(x, y, at, dtype, shaken, found)

    def _passes(self, engine: Engine, exam: _Exam, dtype: torch.dtype | None = None) -> bool:
        """``dtype``: of the engine, where it is not that of the exam.

        Whether a route is right is asked in units of the longest gradient. Whether it is precise is asked as it is
        used, in clip norms: of a record whose answer is nearly certain, rounding leaves no digit of a gradient that is
        next to nothing.
        """
        if isinstance(engine, SingleEngine) and dtype is None:
            return True
        double, scale = (dtype or exam.dtype) is torch.float64, exam.truth.scale
        unit = scale if dtype is None else max(scale, self._clip)
        with borrowed(self._model, exam.dtype, _shake(exam.shaken)), torch.no_grad():
            try:
                few = engine.on(exam.at)
                few.refresh()
                squared, norms = few.measure(exam.features, exam.labels, unit)
            except Exception:  # a route that does not fit is one that is not taken
                return False
        squared, norms = squared.double(), norms.double()
        distances, own = exam.truth.distances * (scale / unit), exam.truth.norms * (scale / unit)
        if double:
            pairs = (squared.sqrt(), distances), (norms, own)
            return all(torch.allclose(found, right, rtol=1e-6, atol=1e-7) for found, right in pairs)
        room = slack(self._model, torch.float32, few.scale)
        pairs = (squared, distances.square()), (norms, own)
        return all(torch.allclose(found, right, rtol=0.0, atol=room) for found, right in pairs)

    def _some_values(self) -> torch.Tensor:
        """Positions of a few values, the two ends among them."""
        n = len(self._values)
        inner = self._rng.permutation(np.arange(1, n - 1))[: self._most - 2]
        return torch.from_numpy(np.sort(np.concatenate([[0, n - 1], inner]).astype(np.int64)))

    def _check_dense(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        """Name what does not fit a fully connected network, in the words of that engine."""
        engine = build(Route.DENSE, self._model, self._loss, self._columns, self._values)
        if engine is not None:
            with torch.no_grad():
                engine.refresh()
                engine.measure(features[:1], labels[:1], 1.0, pairs=False)


def slack(model: nn.Module, dtype: torch.dtype, scale: float) -> float:
    """How far rounding may move a squared distance, in squared clip norms: a distance is at most sqrt(D^2 + slack).

    A square is a sum over layers of products of squared lengths: of an input and an error, of their differences, or
    of products with a reference. None exceeds 24 ``scale``, each is rounded a few times, and sums of rounded terms lose
    about the root of their number. So the error is some epsilons of ``scale``, whatever is left of the terms:
    where clipping makes two gradients equal that were multiples of each other, the square is 0 and all terms
    cancel. Rounding in the passes before moves a gradient by some epsilons e of its own length, which is at most 1, and
    so a square by 4 e D at most. That part is no theorem: ``Examiner.is_precise`` looks at single precision.

    Args:
        scale: of the block; see ``Engine``.
    """
    depth = sum(1 for p in model.parameters() if p.requires_grad)
    return 64.0 * torch.finfo(dtype).eps * math.sqrt(depth) * max(1.0, scale)


def _shake(shaken: bool) -> np.random.Generator | None:
    """The same moves every time."""
    return np.random.default_rng(1) if shaken else None


class _CannotRunError(UnsupportedError):
    """The model does not run on one record in the precision asked for."""

    def __init__(self, model: nn.Module, error: Exception) -> None:
        words = " ".join(str(error).split())
        super().__init__(
            f"{type(model).__name__} does not run on one record alone: {type(error).__name__}: {words[:200]}"
        )
