"""Clipped per-record gradients of any torch module, flat, at given weights; optionally sketched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import nn

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.training.models import record_gradients


@dataclass(frozen=True, eq=False)
class Sketch:
    """A linear map that adds coordinates up, with random signs, into ``size`` groups of nearly equal number.

    Rows are orthogonal and of length 1, so white noise stays white with the same standard deviation. Applied to the
    released sum and to every gradient it is post-processing: the attack stays valid and may only lose power.

    Attributes:
        matrix: shape (dimension, size), one number in each row.
    """

    matrix: csr_array

    @classmethod
    def draw(cls, dimension: int, size: int, rng: np.random.Generator) -> Sketch:
        """A random sketch of ``dimension`` coordinates into ``size``.

        Raises:
            ParameterError: ``size`` exceeds the number of coordinates, or either is below 1.
        """
        if checks.count(size=size) > checks.count(dimension=dimension):
            raise ParameterError("size", size, f"at most the number of coordinates, {dimension}")
        group = rng.permutation(dimension) % size
        sign = rng.choice([-1.0, 1.0], dimension) / np.sqrt(np.bincount(group, minlength=size)[group])
        return cls(csr_array((sign, group, np.arange(dimension + 1)), shape=(dimension, size)))

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """Sketch the last axis of ``rows``, shape (dimension,) or (records, dimension)."""
        return np.asarray(rows @ self.matrix)


class GradientMap:
    """Clipped gradients of single records' cross-entropy as rows of a float64 array.

    Attributes:
        model: the module; in the mode (train or eval) in which it was trained. Its own weights are not used.
        max_grad_norm: clip norm.
        sketch: reduces the number of coordinates, or None.

    Raises:
        ParameterError: the clip norm is not > 0, or ``chunk`` below 1.
    """

    def __init__(
        self,
        model: nn.Module,
        max_grad_norm: float,
        sketch: Sketch | None = None,
        chunk: int = 256,
    ) -> None:
        self.model, self.sketch = model, sketch
        self.max_grad_norm = checks.positive(max_grad_norm=max_grad_norm)
        self._chunk = checks.count(chunk=chunk)
        self._names = [name for name, p in model.named_parameters() if p.requires_grad]
        self._shapes = [p.shape for p in model.parameters() if p.requires_grad]
        self.num_parameters = sum(shape.numel() for shape in self._shapes)

    def __call__(self, weights: torch.Tensor, features: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
        """Gradients at flat ``weights``, in the order of ``model.parameters()``: shape (records, coordinates).

        Raises:
            ParameterError: ``weights`` has another length than the model has trained parameters.
        """
        if weights.shape != (self.num_parameters,):
            raise ParameterError("weights", tuple(weights.shape), f"of shape ({self.num_parameters},)")
        parts = weights.to(features.device).split([shape.numel() for shape in self._shapes])
        shaped = {n: part.reshape(s) for n, part, s in zip(self._names, parts, self._shapes, strict=True)}
        found = record_gradients(self.model, shaped, features, labels, chunk=self._chunk, randomness="different")
        return np.concatenate([self._clipped(rows) for rows in found])

    def _clipped(self, rows: torch.Tensor) -> np.ndarray:
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        # LEEMANN2023:G14: the factor is min(1, C/|g|).
        rows *= (self.max_grad_norm / norms.clamp(min=1e-30)).clamp(max=1.0)
        out = rows.double().cpu().numpy()
        return out if self.sketch is None else self.sketch.apply(out)
