"""Formulas of Gaussian membership inference privacy: one step, harmonic rule, sampling.

Setting of LEEMANN2023: the mean of ``n`` clipped gradients is released; the data are drawn at random and
the target is drawn like them. ``d`` is the number of released coordinates and
``K = (theta - mean)^T Sigma^-1 (theta - mean)`` the susceptibility of the target's gradient theta.
``E[K] = d`` for every law of the gradients, so ``K = d`` is a typical record, not the worst.

Noise is given as ``noise_multiplier`` = n tau / C: the standard deviation on the sum over the clip norm,
where tau is the paper's noise on the mean. All values of mu here are estimates: they replace the mean of
the batch by a Gaussian (central limit theorem) and keep the leading order in n.

All arguments are single finite numbers: ``batch_size``, ``dimension``, ``susceptibility`` and ``steps`` > 0,
``noise_multiplier`` >= 0, ``sample_rate`` in (0, 1]; else ParameterError. Each function returns one float; mu
is >= 0. A larger mu is less private; more noise is more private. What no source is named for is derived in
docs/theory/membership-game.md.
"""

from __future__ import annotations

import math

from scipy.special import erf, log_ndtr, ndtr

from reticent.kernel import checks

_SERIES, _PLAIN = 1e-3, 5.0  # below the first its series, beyond the second its logarithm, is evaluated
_SERIES_TERMS = 0.3989422804014327, 0.25, 0.14960335515053725, 1.0 / 12.0  # of (G/m)^2 = 1 + 2m(a + bm + cm^2 + ...)
_OVERFLOW = 709.0  # exponent beyond which mu is infinite


def effective_batch(batch_size: float, noise_multiplier: float) -> float:
    """n + tau^2 n^2 / C^2 = n + noise_multiplier^2: ``n_effective`` of Theorem 5.1 of LEEMANN2023.

    Exact where the noise has the covariance of the gradients up to a factor; for isotropic noise it treats
    every direction as if the largest eigenvalue were C^2 and so asks for too much noise (LEEMANN2023:G9).

    Args:
        batch_size: n > 0, records in a batch.
        noise_multiplier: noise on the sum over the clip norm, >= 0.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    return checks.positive(batch_size=batch_size) + checks.non_negative(noise_multiplier=noise_multiplier) ** 2


def one_step_mu(dimension: float, susceptibility: float, effective_batch: float) -> float:
    """mu of one step, Eq. (9) of LEEMANN2023: an approximation that can err to either side.

    With ``susceptibility = dimension`` it is sqrt(2 d / (2 n + 1)).

    By LEEMANN2023:Corollary 5.1.

    Args:
        dimension: d > 0, released coordinates.
        susceptibility: K > 0 of the target.
        effective_batch: n, or ``effective_batch``; > 0.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    d, k = checks.positive(dimension=dimension), checks.positive(susceptibility=susceptibility)
    n = checks.positive(effective_batch=effective_batch)
    return (d + (2.0 * n - 1.0) * k) / (n * math.sqrt(2.0 * d + 4.0 * n * k))


def differential_privacy_mu(noise_multiplier: float) -> float:
    """2 / noise_multiplier: one noisy step against replacing a record; infinite without noise.

    Raises:
        ParameterError: ``noise_multiplier`` is negative, infinite or NaN.
    """
    sigma = checks.non_negative(noise_multiplier=noise_multiplier)
    return 2.0 / sigma if sigma > 0.0 else math.inf


def harmonic_mu(batch_size: float, susceptibility: float, noise_multiplier: float) -> float:
    """mu of one step with noise: 1/mu^2 = n/K + 1/mu_DP^2, mu_DP = 2/noise_multiplier; docs/theory/membership-game.md.

    Bounds ``delta^T (n Sigma + n^2 tau^2 I)^-1 delta`` for every covariance Sigma, given K and
    ``|delta| <= 2 C``. Never above the worst case ``mu_DP`` nor above the noise-free ``sqrt(K/n)``. Concave in
    K: ``K = d`` covers the mean of mu^2 over records, not each record.

    By RETICENT:harmonic-rule.

    Args:
        batch_size: n > 0, records in a batch.
        susceptibility: K > 0 of the target.
        noise_multiplier: noise on the sum over the clip norm, >= 0.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    n, k = checks.positive(batch_size=batch_size), checks.positive(susceptibility=susceptibility)
    sigma = checks.non_negative(noise_multiplier=noise_multiplier)
    return 1.0 / math.sqrt(n / k + 0.25 * sigma * sigma)


def log_sampling_factor(mu_step: float) -> float:
    """log G(m), G(m) = sqrt(2 (e^(m^2) Phi(3m/2) + 3 Phi(-m/2) - 2)): Eq. (10) of LEEMANN2023.

    Twelve digits for 0 < m <= 64, from the series at m -> 0 to logarithms where e^(m^2) overflows.

    Raises:
        ParameterError: ``mu_step`` is not a finite number > 0.
    """
    m = checks.positive(mu_step=mu_step)
    if m < _SERIES:
        a, b, c, d = _SERIES_TERMS
        return math.log(m) + 0.5 * math.log1p(2.0 * m * (a + m * (b + m * (c + m * d))))
    if m < _PLAIN:
        root = m / math.sqrt(2.0)
        half = math.expm1(m * m) * ndtr(1.5 * m) + 0.5 * (erf(1.5 * root) - 3.0 * erf(0.5 * root))
        return 0.5 * math.log(2.0 * half)
    rest = math.exp(-m * m) * (3.0 * ndtr(-0.5 * m) - 2.0) / ndtr(1.5 * m)
    return 0.5 * (math.log(2.0) + m * m + float(log_ndtr(1.5 * m)) + math.log1p(rest))


def sampled_mu(mu_step: float, sample_rate: float, steps: float) -> float:
    """Eq. (10) of LEEMANN2023: mu = p sqrt(T) G(mu_step), the limit for symmetrised uniform sampling.

    An approximation for finite T: conservative in advantage, violated at very low false positive rates
    (LEEMANN2023:G3). Infinite where it exceeds double precision.

    By LEEMANN2023:Lemma 5.1.

    Args:
        mu_step: mu of one step that uses the target, > 0.
        sample_rate: p in (0, 1].
        steps: T > 0.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    intensity = checks.rate(sample_rate=sample_rate) * math.sqrt(checks.positive(steps=steps))
    log_mu = math.log(intensity) + log_sampling_factor(mu_step)
    return math.exp(log_mu) if log_mu < _OVERFLOW else math.inf
