"""The GLiR attack on gradients that are there: likelihood ratios, p-values and their combination.

One step releases ``S``, the noisy sum of the clipped gradients of a batch, here in the gradients' own units.
With Gaussian sums (central limit theorem) the other records give ``S`` a known mean and covariance V, and
a member moves it by its own gradient theta. For a full batch of n records without noise the log likelihood
ratio is

    (d/2) ln(n/(n - 1)) + K/2 - n D/(2 (n - 1)),   K, D Mahalanobis distances of theta from the mean, the batch mean

(Theorem 5.1 of LEEMANN2023 with LEEMANN2023:G15 to LEEMANN2023:G17); noise and Poisson batches change V and make it a
mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from reticent.attacks.covariance import Background
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.samplers import INDEPENDENT, Sampler

_WHOLE = 1e-9  # share of an epoch that counts as nothing missing
_SKEWED, _HEAVY = 0.3, 0.5  # skewness and kurtosis of a batch sum beyond which it is not normal
_PROBES = 64  # queries that these are looked at along
_NUDGE = 1e-12  # of the ridge: keeps a matrix without shrinkage invertible


@dataclass(frozen=True, slots=True)
class BatchDesign:
    """How the batch behind one released sum came about.

    Attributes:
        batch_size: records per batch, expected under Poisson sampling; > 1.
        sample_rate: probability that a given record of the data is in it, in (0, 1].
        noise: standard deviation of the noise on the sum, in the gradients' units.
        sampler: batches of independent draws vary in size; at rate 1 there is no difference.

    Raises:
        ParameterError: a field is outside its domain.
    """

    batch_size: float
    sample_rate: float = 1.0
    noise: float = 0.0
    sampler: Sampler = INDEPENDENT

    def __post_init__(self) -> None:
        if checks.positive(batch_size=self.batch_size) <= 1.0:
            raise ParameterError("batch_size", self.batch_size, "more than one record")
        checks.rate(sample_rate=self.sample_rate)
        checks.non_negative(noise=self.noise)

    @property
    def varies(self) -> bool:
        """Whether the number of records in the batch is random."""
        return self.sampler.independent and self.sample_rate < 1.0


class StepScores(NamedTuple):
    """Scores of queries on one step; arrays of one shape (q,)."""

    log_ratio: np.ndarray
    """Log likelihood ratio of "in the data" against "not in the data"; larger is more member-like."""
    log_ratio_in_batch: np.ndarray
    """The same for "in this batch"."""
    susceptibility: np.ndarray
    """K, bias-corrected; with noise or random batch sizes, n times the squared shift in the metric of the sum."""
    distance: np.ndarray
    """n D, bias-corrected, of a full batch without noise: noncentral chi-square(d, n K) for a non-member. Otherwise
    the squared distance of the sum from where the query would put it, in the metric of the sum."""


def score_step(total: np.ndarray, queries: np.ndarray, background: Background, design: BatchDesign) -> StepScores:
    """Score queries against one released sum.

    Args:
        total: the released noisy sum, shape (d,).
        queries: clipped gradients of the queries at the weights of this step, shape (q, d).
        background: the law of clipped gradients at the same weights.

    Raises:
        NumericalError: the covariance is singular; use shrinkage.
        ParameterError: shapes disagree.
    """
    total, queries = np.asarray(total, dtype=float), np.asarray(queries, dtype=float)
    if total.shape != (background.dimension,) or queries.ndim != 2 or queries.shape[1] != background.dimension:
        raise ParameterError("queries", queries.shape, f"of shape (q, {background.dimension}), like the released sum")
    if design.noise == 0.0 and not design.varies:
        return _whole_batch(total, queries, background, design)
    return _by_two_laws(total, queries, background, design)


def _whole_batch(total: np.ndarray, queries: np.ndarray, background: Background, design: BatchDesign) -> StepScores:
    """A batch of fixed size without noise: one covariance up to a factor."""
    n, d, bias = design.batch_size, background.dimension, background.inverse_bias
    sigma = background.factor(1.0, 0.0).products(queries, total / n - background.mean, background.mean)
    k = bias * sigma.norms
    distance = n * (bias * (sigma.norm - 2.0 * sigma.cross) + k)
    inside = 0.5 * (d * np.log(n / (n - 1.0)) + k - distance / (n - 1.0))
    return StepScores(_diluted(inside, np.zeros(len(queries)), design.sample_rate), inside, k, distance)


def _by_two_laws(total: np.ndarray, queries: np.ndarray, background: Background, design: BatchDesign) -> StepScores:
    """The sum of the others, and of one record more.

    Poisson: each of N records with probability p; a member brings theta into the sum with probability p, and the sum
    over N random records has mean N p m and covariance N p (Sigma + (1 - p) m m^T).
    """
    n, p, bias = design.batch_size, design.sample_rate, background.inverse_bias if design.noise == 0.0 else 1.0
    others, spread, origin = (n - p, 1.0 - p, 0.0) if design.varies else (n - 1.0, 0.0, background.mean)
    absent = background.factor(n, design.noise**2, n * spread)
    present = background.factor(others, design.noise**2, others * spread)
    base = absent.products(queries[:1], total - n * background.mean)
    q = present.products(queries, total - others * background.mean - origin, origin)
    shift = 0.5 * (absent.log_det - present.log_det + bias * (base.norm - q.norm))
    inside = shift + bias * (q.cross - 0.5 * q.norms)
    outside = np.full(len(queries), shift if design.varies else 0.0)
    distance = bias * (q.norm - 2.0 * q.cross + q.norms)
    return StepScores(_diluted(inside, outside, p), inside, bias * others * q.norms, distance)


def _diluted(inside: np.ndarray, outside: np.ndarray, rate: float) -> np.ndarray:
    """log(p e^inside + (1 - p) e^outside)."""
    if rate == 1.0:
        return inside
    return np.logaddexp(np.log(rate) + inside, np.log1p(-rate) + outside)


def combine_shuffled(in_batch: np.ndarray, rate: float) -> np.ndarray:
    """Log ratio of one epoch of shuffled batches: the record is in exactly one of 1/rate batches.

    Args:
        in_batch: ``log_ratio_in_batch`` of the recorded steps of one epoch, shape (steps, q).
        rate: share of the data in one batch; steps that were not recorded count as uninformative.

    Returns:
        Natural logarithms, shape (q,); larger is more member-like.

    Raises:
        ParameterError: ``rate`` is outside (0, 1].
    """
    checks.rate(rate=rate)
    missing = max(0.0, 1.0 - rate * len(in_batch))
    rows = np.log(rate) + np.asarray(in_batch, dtype=float)
    if missing > _WHOLE:
        rows = np.vstack([rows, np.full((1, rows.shape[1]), np.log(missing))])
    return logsumexp(rows, axis=0)


def held_out_p_values(scores: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """Rank p-values against scores of held-out non-members: (1 + number at least as large) / (1 + count).

    Valid, whatever the gradients' law, the steps' dependence and the estimation errors are, for a query drawn like
    the held-out records. Never below ``1/(1 + count)``.

    Raises:
        ParameterError: ``held_out`` is empty or holds a score that is not finite.
    """
    reference = np.sort(np.asarray(held_out, dtype=float))
    if reference.size == 0 or not np.all(np.isfinite(reference)):
        raise ParameterError("held_out", held_out, "at least one finite score")
    above = reference.size - np.searchsorted(reference, np.asarray(scores, dtype=float), side="left")
    return (1.0 + above) / (1.0 + reference.size)


def normality(background: Background, queries: np.ndarray, batch_size: float) -> str:
    """Whether a batch sum is close to Gaussian along ``V^-1 (theta - mean)``, by cumulants of background records.

    Args:
        queries: gradients of targets, shape (q, d); the first 64 are looked at.
        batch_size: n > 0.

    Returns:
        A sentence that warns where the central limit theorem should not be relied on (LEEMANN2023:G19), by the medians
        over queries of |skewness of one record| / sqrt(n) and of its excess kurtosis / n; else nothing.
    """
    records = background.records
    probe = np.asarray(queries, dtype=float)[:_PROBES] - background.mean
    along = _directions(background, probe)
    values = records @ along.T
    values /= np.sqrt(np.mean(values**2, axis=0))
    skewness = float(np.median(np.abs(np.mean(values**3, axis=0)))) / np.sqrt(batch_size)
    kurtosis = float(np.median(np.mean(values**4, axis=0) - 3.0)) / batch_size
    if not (skewness > _SKEWED or kurtosis > _HEAVY):
        return ""
    return (
        f"The sum over a batch is not close to Gaussian along the queries (skewness {skewness:.2g}, excess kurtosis "
        f"{kurtosis:.2g}): likelihood ratios, p-values and theoretical curves are off (LEEMANN2023:G19)."
    )


def _directions(background: Background, probe: np.ndarray) -> np.ndarray:
    if background.covariance is None:
        return probe
    matrix = background.share * background.covariance
    matrix.flat[:: background.dimension + 1] += (1.0 - background.share) * background.ridge + _NUDGE * background.ridge
    return np.linalg.solve(matrix, probe.T).T
