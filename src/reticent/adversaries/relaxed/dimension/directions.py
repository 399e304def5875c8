"""A law of directions from gradients of other records, instead of a uniform direction in a stated dimension.

If the direction u of the target is drawn as that of the records at hand, the second moment of the likelihood ratio
needs E exp(x <u, u'>) over two independent draws only: a mean over pairs of the Gram matrix. Nothing is assumed to be
uniform, and what gradients share (a mean gradient) counts in full. An estimate from finitely many records, with a
bootstrap over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reticent.adversaries.relaxed import dimension as vectors
from reticent.kernel import checks
from reticent.kernel.curves._logs import OVERFLOW, TINY, log_of
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD

_LEAST_RECORDS, _MOST_RECORDS = 8, 256  # of a law: fewer tell nothing, more take long
_BOOTSTRAPS, _LEVEL = 100, 0.95  # draws, and confidence, of an interval
_CLOSE = 1e-6  # by which inner products may exceed 1 or be asymmetric
_LARGEST = 2.0  # log of what is at most 1 in the end


@dataclass(frozen=True, eq=False)
class DirectionLaw:
    """Inner products of clipped gradients of m records, drawn as the target is.

    Attributes:
        gram: shape (m, m), symmetric: inner products of gradients in clip norms, diagonal at most 1; m from 8 to 256.
        public: the records are public, so that what follows from them may be published.

    Raises:
        ParameterError: ``gram`` is not such a matrix, or no two of the records have directions that overlap: how far
            two more would is not known then, and an estimate of no risk at all would follow.
    """

    gram: np.ndarray
    public: bool = False

    def __post_init__(self) -> None:
        gram = np.asarray(self.gram, dtype=float)
        square = gram.ndim == 2 and gram.shape[0] == gram.shape[1] and _LEAST_RECORDS <= len(gram) <= _MOST_RECORDS
        if not (square and np.all(np.abs(gram) <= 1.0 + _CLOSE) and np.allclose(gram, gram.T, rtol=0.0, atol=_CLOSE)):
            allowed = f"a symmetric matrix of {_LEAST_RECORDS} to {_MOST_RECORDS} records with entries from -1 to 1"
            raise ParameterError("gram", f"an array of shape {gram.shape}", allowed)
        overlaps = np.abs(gram[np.triu_indices(len(gram), 1)])
        if np.max(overlaps) <= _CLOSE * np.max(np.diag(gram)):
            allowed = "inner products of which some differ from 0: from none, no overlap of two more directions follows"
            raise ParameterError("gram", f"{len(gram)} directions that are all orthogonal", allowed)
        if not isinstance(self.public, bool):
            raise ParameterError("public", self.public, "True or False")
        object.__setattr__(self, "gram", gram)

    @classmethod
    def from_gradients(cls, gradients: ArrayLike, max_grad_norm: float, *, public: bool = False) -> DirectionLaw:
        """From per-example gradients, one row each, clipped here to ``max_grad_norm`` (L2).

        Args:
            gradients: shape (m, parameters), m from 8 to 256.

        Raises:
            ParameterError: an argument is outside its domain.
        """
        rows = np.asarray(gradients, dtype=float)
        if rows.ndim != 2 or not np.all(np.isfinite(rows)):
            raise ParameterError("gradients", f"an array of shape {rows.shape}", "finite numbers, one row a record")
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.maximum(norms, checks.positive(max_grad_norm=max_grad_norm))
        gram = rows @ rows.T
        return cls(np.clip(0.5 * (gram + gram.T), -1.0, 1.0), public)

    def effective_dimension(self) -> tuple[float, float, float]:
        """(lower, value, upper): 1 / E <u, u'>^2 with a 95 % bootstrap interval; d for uniform directions."""

        def dimension(counts: np.ndarray) -> float:
            weights, products = self._pairs(counts)
            return float(1.0 / max(weights @ products**2, TINY))

        return self._interval(dimension)

    def log_chi_square(self, run: DPSGD, order: float = 2.0, counts: np.ndarray | None = None) -> float:
        """log of the bound on ||LR - 1||_q^2 from pairs of different records.

        The true mean of <u, u'> is the squared length of E u. A mean of the pairs below 0 is chance, and counts as 0.

        Args:
            run: Poisson-sampled DP-SGD with noise.
            order: q >= 2.
            counts: how often each record was drawn; None for once.
        """
        weights, products = self._pairs(np.ones(len(self.gram)) if counts is None else counts)
        x, both = products * (order - 1.0) / run.noise_multiplier**2, run.sample_rate**2
        logs = run.steps * vectors.log_mean_of_count(x, both, 1)
        if np.max(logs) > OVERFLOW:
            return float(logsumexp(logs, b=weights))
        return float(log_of(weights @ np.expm1(logs) + run.steps * both * max(-float(weights @ x), 0.0)))

    def advantage(self, run: DPSGD) -> tuple[float, float, float]:
        """(lower, value, upper): the bound sqrt(X) / 2 on the advantage, with a 95 % bootstrap interval; at most 1.

        Args:
            run: Poisson-sampled DP-SGD with noise.
        """

        def bound(counts: np.ndarray) -> float:
            return float(min(0.5 * np.exp(min(0.5 * self.log_chi_square(run, counts=counts), _LARGEST)), 1.0))

        return self._interval(bound)

    def _pairs(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights that add up to 1, and products, of the pairs of different records."""
        first, second = np.triu_indices(len(self.gram), 1)
        weights = counts[first] * counts[second]
        drawn = weights > 0.0
        return weights[drawn] / weights.sum(), self.gram[first[drawn], second[drawn]]

    def _interval(self, statistic: Callable[[np.ndarray], float]) -> tuple[float, float, float]:
        """The statistic, and quantiles of it over records drawn again with replacement, from a fixed seed."""
        rng, size = np.random.default_rng(0), len(self.gram)
        draws = [statistic(rng.multinomial(size, np.full(size, 1.0 / size)).astype(float)) for _ in range(_BOOTSTRAPS)]
        value = statistic(np.ones(size))
        low, high = np.quantile(draws, [0.5 - 0.5 * _LEVEL, 0.5 + 0.5 * _LEVEL])
        return min(float(low), value), value, max(float(high), value)
