"""Speed of the gradient attack: one step, and the tails of the noncentral chi-square law.

Peers do the same work as published code does it, in double precision: sample covariance, explicit inverse, one pair
of quadratic forms for each query and a loop over scipy's ``ncx2.logcdf``. Both sides start from the same gradients
and end with one log p-value for each query. The number of threads is that of the BLAS libraries, for both sides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import mpmath
import numpy as np
from scipy import linalg, stats
from scipy.special import chndtr, log_ndtr

from benchmarks._rows import Row, interleave, limit, main, spread
from reticent.attacks import glir_statistics as glir
from reticent.attacks.covariance import Background
from reticent.curves import ncx2

QUERIES, RECORDS, BATCH = 1_000, 10_000, 500
STEP_GOALS = {650: 12.0, 1026: 7.0, 2580: 2.5}
STEP_MOONSHOTS = {650: 25.0, 1026: 15.0, 2580: 8.0}
TAILS = 10_000


def step_ours(background: np.ndarray, queries: np.ndarray, total: np.ndarray) -> np.ndarray:
    """log p of every query, through the public pieces of the attack."""
    law = replace(Background.estimated(background), share=1.0)  # the sample covariance, as the peer has it
    scores = glir.score_step(total, queries, law, glir.BatchDesign(float(BATCH)))
    bias = law.inverse_bias
    return ncx2.log_cdf(scores.distance / bias, float(queries.shape[1]), BATCH * scores.susceptibility / bias, 1e-9)


def step_peer(background: np.ndarray, queries: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The same by an explicit inverse and a loop."""
    mean, inverse = background.mean(axis=0), np.linalg.inv(np.cov(background, rowvar=False))
    average, d = total / BATCH, queries.shape[1]
    log_p = np.empty(len(queries))
    for i, query in enumerate(queries):
        gap, deviation = average - query, query - mean
        k = deviation @ inverse @ deviation
        log_p[i] = stats.ncx2.logcdf(BATCH * (gap @ inverse @ gap), d, BATCH * k)
    return log_p


def step_arithmetic(background: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """What every exact step must do: one symmetric product, its Cholesky factor, and one solve for the queries."""
    product = linalg.blas.dsyrk(1.0 / len(background), background.T, lower=1)
    factor = linalg.cholesky(product, lower=True, overwrite_a=True, check_finite=False)
    return linalg.solve_triangular(factor, queries.T, lower=True, check_finite=False)


def step_row(d: int, repeats: int) -> Row:
    """One GLiR step with ``d`` coordinates."""
    rng = np.random.default_rng(d)
    background, queries = rng.normal(size=(RECORDS, d)), rng.normal(size=(QUERIES, d))
    total = np.sqrt(BATCH) * rng.normal(size=d)
    ours, peer = step_ours(background, queries, total), step_peer(background, queries, total)
    finite = np.isfinite(peer)
    error = float(np.max(np.abs(ours[finite] - peer[finite]) / np.maximum(1.0, np.abs(peer[finite]))))
    ratios = spread(
        interleave(
            lambda: step_ours(background, queries, total),
            lambda: step_peer(background, queries, total),
            repeats,
            pause=0.2,
        )
    )
    floor = limit(
        "symmetric product, Cholesky factor and one solve",
        lambda: step_arithmetic(background, queries),
        lambda: step_ours(background, queries, total),
        ratios["median"],
        repeats,
    )
    goal = STEP_GOALS[d]
    return Row(
        work=f"one GLiR step, {QUERIES} queries, {RECORDS} background, d = {d}",
        peer="explicit inverse, loop over scipy.stats.ncx2.logcdf",
        ratio=ratios,
        error=error,
        goal=f"median {goal:g}x, log p to 1e-6",
        met=ratios["median"] >= goal and error <= 1e-6,
        notes={"median_at_least": goal, "threads": os.environ.get("OMP_NUM_THREADS", f"{os.cpu_count()}, by default")},
        limit=floor,
        moonshot=STEP_MOONSHOTS[d],
    )


def tail_case(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Points within six standard deviations, and their noncentralities."""
    rng = np.random.default_rng(d)
    nc = BATCH * rng.chisquare(d, TAILS)
    z = rng.uniform(-6.0, 6.0, TAILS)
    return d + nc + z * np.sqrt(2.0 * (d + 2.0 * nc)), nc


def exact_log_cdf(x: float, d: int, nc: float) -> float:
    """log F by Poisson mixing in 50 digits: weights and central laws by downward recurrences of positive terms."""
    with mpmath.workdps(50):
        half, point = mpmath.mpf(nc) / 2, mpmath.mpf(x) / 2
        j = int(nc / 2 + 60 * np.sqrt(nc / 2) + 60)
        a = mpmath.mpf(d) / 2 + j
        central = mpmath.gammainc(a, 0, point, regularized=True)
        step = mpmath.exp((a - 1) * mpmath.log(point) - point - mpmath.loggamma(a))
        weight = mpmath.exp(-half + j * mpmath.log(half) - mpmath.loggamma(j + 1))
        total = weight * central
        while j > 0:
            weight, j, a = weight * j / half, j - 1, a - 1
            central += step
            step *= a / point
            total += weight * central
        return float(mpmath.log(total))


def tail_error() -> float:
    """Largest relative error of log F against 50 digits, from -30 to 3 standard deviations."""
    cases = (
        (650, 20000.0, -30.0),
        (650, 20000.0, -8.0),
        (650, 3000.0, -2.0),
        (1026, 9000.0, -20.0),
        (2580, 9000.0, 3.0),
    )
    worst = 0.0
    for d, nc, z in cases:
        x = d + nc + z * np.sqrt(2.0 * (d + 2.0 * nc))
        worst = max(worst, abs(float(ncx2.log_cdf(x, float(d), nc, 1e-9)) / exact_log_cdf(x, d, nc) - 1.0))
    return worst


def tail_row(d: int, name: str, peer: Callable[[np.ndarray, int, np.ndarray], np.ndarray], goal: float) -> Row:
    """log F on the same points by both."""
    x, nc = tail_case(d)
    error = tail_error()
    far = ncx2.log_cdf(650 + 325000.0 - 30.0 * np.sqrt(2.0 * (650 + 650000.0)), 650.0, 325000.0, 1e-9)
    ratios = spread(interleave(lambda: ncx2.log_cdf(x, float(d), nc, 1e-9), lambda: peer(x, d, nc), 5))
    z = (x - d - nc) / np.sqrt(2.0 * (d + 2.0 * nc))
    floor = limit(
        "one normal log tail for each point",
        lambda: log_ndtr(z),
        lambda: ncx2.log_cdf(x, float(d), nc, 1e-9),
        ratios["median"],
    )
    finite = bool(np.isfinite(far))
    return Row(
        work=f"noncentral chi-square log tails, d = {d}, nc = {BATCH} K, {TAILS} points",
        peer=name,
        ratio=ratios,
        error=error,
        goal=f"median {goal:g}x, relative error 1e-8, finite at 30 standard deviations",
        met=ratios["median"] >= goal and error <= 1e-8 and finite,
        notes={"finite_at_30_standard_deviations": finite},
        limit=floor,
    )


def tail_rows() -> list[Row]:
    """Against scipy's logarithm, and against its fastest call, which underflows."""
    peers = (
        ("scipy.stats.ncx2.logcdf", lambda x, d, nc: stats.ncx2.logcdf(x, d, nc), 500.0),
        ("scipy.special.chndtr, then log", lambda x, d, nc: np.log(np.maximum(chndtr(x, d, nc), 1e-300)), 50.0),
    )
    return [tail_row(d, *peer) for d in (650, 2580) for peer in peers]


def rows() -> Sequence[Row]:
    """All rows of this page of performance goals."""
    return [*tail_rows(), *(step_row(d, 9 if d < 2000 else 3) for d in STEP_GOALS)]


if __name__ == "__main__":
    main(rows, __doc__ or "")
