"""Closed forms for the advantage against DP-SGD, each with its status and the direction of its error.

Every function takes ``(noise_multiplier, sample_rate, steps, neighbouring)``, broadcasts its first three
arguments like numpy (finite numbers >= 0, in (0, 1] and >= 1, else ParameterError), answers in their common shape
with numbers >= 0 that grow with risk, and assumes Poisson sampling: the noise multiplier is the noise standard
deviation over the clip norm on the *sum*, and the one-step pair is, with s = 1/noise_multiplier^2,

- ``ADD_REMOVE`` and ``ZERO_OUT``: N(0) against (1-p) N(0) + p N(1),
- ``REPLACE``: (1-p) N(0) + p N(-1) against (1-p) N(0) + p N(1).

The advantage is the total variation distance after ``steps`` steps, ``1 - bayes_security``; it is the
same in both directions. A form of Gaussian type has a ``*_mu`` function as well: the mu whose Gaussian
curve it proposes; ``advantage_at`` and ``bayes_security_at`` turn mu into numbers without cancellation.

Where steps differ, affinities multiply and variances of the losses add up: ``added_mu`` and ``proven_upper`` take
runs of equal steps and are sums over them. What has no source named is derived in docs/theory/closed-forms.md.

"Within 1e-3" means: absolute error of the advantage, measured against the exact value over sample rates
in [1e-5, 0.2], noise multipliers in [0.4, 10] and steps in [10, 1e6] (docs/theory/closed-forms.md has the table
and the figure). "Safe" means that the form never claims more privacy than there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, erfc, erfcx, erfinv, log_ndtr

from reticent.accountants.affinity import Affinity, Interval, affinity, minus_log_affinity
from reticent.curves._logs import TINY
from reticent.errors import ParameterError
from reticent.pairs import Neighbouring

_SQRT_2 = 1.4142135623730951
_SQRT_8 = 2.8284271247461903
_SQRT_TWO_PI = 2.5066282746310002
_BLOCK = 8192  # elements at once: what fits the cache
_ULPS = 1.0 + 1e-14  # for the rounding of a bound that is proven
_SMALL_CUMULANTS = 0.3  # kurtosis / T and skewness^2 / T up to which the Edgeworth terms are used

Run = tuple[float, float, int]
"""Noise multiplier, sample rate and number of steps."""
MuForm = Callable[[ArrayLike, ArrayLike, ArrayLike, Neighbouring], np.ndarray]
"""A closed form of equal steps: noise, rate, steps, relation -> mu, whose square is additive in the steps."""


def advantage_at(mu: ArrayLike) -> np.ndarray:
    """Total variation of N(0, 1) and N(mu, 1): erf(mu / sqrt 8)."""
    return erf(np.asarray(mu, dtype=float) / _SQRT_8)


def bayes_security_at(mu: ArrayLike) -> np.ndarray:
    """1 - advantage at ``mu``, accurate however small: erfc(mu / sqrt 8)."""
    return erfc(np.asarray(mu, dtype=float) / _SQRT_8)


def mu_at(advantage: ArrayLike) -> np.ndarray:
    """The mu whose total variation is ``advantage``: the inverse of ``advantage_at``.

    Raises:
        ParameterError: an advantage outside [0, 1].
    """
    advantage = np.asarray(advantage, dtype=float)
    if not np.all((advantage >= 0.0) & (advantage <= 1.0)):
        raise ParameterError("advantage", advantage.tolist(), "numbers in [0, 1]")
    return _SQRT_8 * erfinv(advantage)


def published_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """The mu behind ``published``: sensitivity * p sqrt(T) / noise.

    By CHERUBIN2024:Corollary 7.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    size = neighbouring.sensitivity
    return _blockwise(lambda n, p, t: size * p * np.sqrt(t) / n, noise_multiplier, sample_rate, steps)


def published(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Main term of Corollary 7 of CHERUBIN2024, as printed; for reproduction only.

    Status: not a bound. The error term that the paper drops is of order sqrt(p (1-p) T)/noise, which is
    above 1 in practice (CHERUBIN2024:B1). Exact for p = 1.
    Direction: unsafe iff roughly p < s/6 and T exceeds a small crossover, by up to 0.42 (replace) and 0.65 (add).
    Within 1e-3, for every T on the grid: add/remove noise >= 1.5 at p = 1e-5, >= 4 at 1e-4, >= 10 from 1e-3 on;
    replace noise >= 1 at p = 1e-5, >= 1.5 at 1e-4, >= 4 up to p = 0.05, >= 10 at 0.2.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    size = neighbouring.sensitivity / _SQRT_8
    return _blockwise(lambda n, p, t: erf(size * p * np.sqrt(t) / n), noise_multiplier, sample_rate, steps)


def clt_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """The mu behind ``clt``: p sqrt(T (e^s - 1)); for ``REPLACE`` 2 p sqrt(T sinh s).

    By RETICENT:clt.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    return _blockwise(_CLT_MU[neighbouring is Neighbouring.REPLACE], noise_multiplier, sample_rate, steps)


def clt(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Central limit theorem: the limit of the whole curve as p -> 0 with p sqrt(T) fixed.

    Status: asymptotic. Direction: safe for the advantage on the whole grid (measured, not proven); very
    conservative where p e^{2s} is not small. No statement for false positive rates far below p.
    Within 1e-3, for every T on the grid: noise >= 0.5 at p = 1e-5, >= 0.7 at 1e-4, >= 1 at 1e-3, >= 4 up to 0.05
    (2 at 0.01 under replace), >= 10 at 0.2.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    mu = _CLT_MU[neighbouring is Neighbouring.REPLACE]
    return _blockwise(lambda n, p, t: erf(mu(n, p, t) / _SQRT_8), noise_multiplier, sample_rate, steps)


def rho_form_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """The mu behind ``rho_form``: sqrt(-8 T log rho).

    By RETICENT:rho-form.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    noise, rate, count = _arguments(noise_multiplier, sample_rate, steps)
    return np.sqrt(8.0 * count * minus_log_affinity(noise, rate, neighbouring).upper)


def rho_form(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """erf(sqrt(-T log rho)) with rho the Bhattacharyya affinity of one step; the recommended closed form.

    Status: exact for a Gaussian loss, not a theorem otherwise (docs/theory/closed-forms.md says what is missing).
    Direction: safe for ``REPLACE`` with p <= 1/2 on the whole grid; for ``ADD_REMOVE`` unsafe by at most 0.0015
    on the grid; for ``REPLACE`` with p > 1/2 unsafe by at most 0.015.
    Within 1e-3, for every T on the grid: noise >= 0.5 at p = 1e-5, >= 0.7 at 1e-4, >= 1 at 1e-3 (0.7 under
    add/remove), >= 1.5 up to 0.05, >= 2 at 0.2.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    return advantage_at(rho_form_mu(noise_multiplier, sample_rate, steps, neighbouring))


def saddlepoint(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """1 - rho^T E exp(-|S|/2) with S normal: mean and variance of the loss under the law sqrt(PQ)/rho.

    Status: leading term of an expansion in 1/T, kept inside the proven bracket. Direction: safe for ``REPLACE``
    with p <= 1/2 on the whole grid; unsafe by up to 0.013 for ``ADD_REMOVE``. Absolute rounding error below 1e-15.
    Within 1e-3: where ``rho_form`` is.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    noise, rate, count = _arguments(noise_multiplier, sample_rate, steps)
    one = affinity(noise, rate, neighbouring)
    value = _normal_law(count * one.mean, np.sqrt(count * one.variance)).value
    return _inside(1.0 - np.exp(-count * one.minus_log.upper) * value, one, count)


def edgeworth(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """The saddlepoint with its third and fourth cumulants; ``rho_form`` where they are not small.

    Status: second term of the expansion in 1/T, kept inside the proven bracket. Direction: either sign.
    Falls back to ``rho_form`` where kurtosis / T exceeds 0.3, or skewness^2 / T 0.3. Typically 10 to 1e5 times
    closer than ``rho_form`` where kurtosis / T is below 0.1.
    Within 1e-3: where ``rho_form`` is, and at p = 0.2 under replace from noise 1 on; 86 % of the grid.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    noise, rate, count = _arguments(noise_multiplier, sample_rate, steps)
    one = affinity(noise, rate, neighbouring)
    scale = np.sqrt(count * one.variance)
    law = _normal_law(count * one.mean, scale)
    corrected = (
        law.value
        + count * one.third / 6.0 * law.third
        + count * one.fourth / 24.0 * law.fourth
        + (count * one.third) ** 2 / 72.0 * law.sixth
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = one.fourth / (count * one.variance**2)
        skewness = one.third**2 / (count * one.variance**3)
    fits = (np.abs(kurtosis) <= _SMALL_CUMULANTS) & (skewness <= _SMALL_CUMULANTS)
    falls = count * one.minus_log.upper
    value = np.where(fits, 1.0 - np.exp(-falls) * corrected, erf(np.sqrt(falls)))
    return _inside(value, one, count)


def proven_bracket(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> Interval:
    """Proven lower and upper bounds on the advantage, at the price of one quadrature.

    Lower: 1 - rho^T. Upper: the least of sqrt(1 - rho^{2T}), of 1 - (1-p)^T (the target is never sampled),
    and of erf(sensitivity sqrt(p T) / (sqrt 8 noise)) (the mask revealed, by concavity).

    Status: proven; rho by a quadrature whose error is bounded (``affinity.py``), on the safe side of each end.
    Width: the upper end exceeds the truth by at most 25.4 % where the advantage is small.

    By RETICENT:hellinger-bracket.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    noise, rate, count = _arguments(noise_multiplier, sample_rate, steps)
    minus_log = minus_log_affinity(noise, rate, neighbouring)
    lower = -np.expm1(-count * minus_log.lower)
    upper = np.sqrt(-np.expm1(-2.0 * count * minus_log.upper)) * _ULPS
    return Interval(lower, np.minimum(np.minimum(upper, 1.0), _mask_bounds(noise, rate, count, neighbouring)))


def added_mu(form: MuForm, parts: Sequence[Run], neighbouring: Neighbouring) -> float:
    """mu of all parts by a form in which squares add up: ``clt_mu`` or ``rho_form_mu``.

    Args:
        form: see ``MuForm``.
        parts: noise, rate and steps of each Poisson-sampled run; with noise.
        neighbouring: between which data sets.
    """
    squares = (float(form(noise, rate, float(steps), neighbouring)) ** 2 for noise, rate, steps in parts)
    return math.sqrt(math.fsum(squares))


def proven_upper(parts: Sequence[Run], neighbouring: Neighbouring) -> float:
    """Proven upper bound on the advantage of all parts together, each Poisson-sampled with noise.

    The least of sqrt(1 - rho^2) with rho the product of the affinities of all steps, of the probability that the
    target is sampled at all, and, the mask revealed, of erf(sensitivity sqrt(sum of p T / noise^2) / sqrt 8): given the
    mask the advantage is a concave function of the sum over its steps of 1 / noise^2, whose mean that sum is.

    Args:
        parts: noise, rate and steps of each Poisson-sampled run; with noise.
        neighbouring: between which data sets.
    """
    log_rho = log_never = energy = 0.0
    for noise, rate, steps in parts:
        log_rho -= steps * float(minus_log_affinity(np.array(noise), np.array(rate), neighbouring).upper)
        log_never += steps * math.log1p(-rate) if rate < 1.0 else -math.inf
        energy += rate * steps / noise**2
    upper = math.sqrt(-math.expm1(2.0 * log_rho)) * _ULPS
    revealed = float(erf(neighbouring.sensitivity * math.sqrt(energy) / _SQRT_8))
    return min(upper, 1.0, -math.expm1(log_never), revealed * _ULPS)


def proven(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Proven upper bound on the advantage without any quadrature.

    sqrt(1 - rho^{2T}) with 1 - rho <= p^2 (e^s - 1) / (8 sqrt(1-p)) for add/remove and
    <= p^2 sinh(s) / (2 kappa), kappa = 1 - p (1 - e^{-s/2}), for replacement (arithmetic-geometric mean and
    Cauchy-Schwarz in the integral of (P-Q)^2 / (sqrt P + sqrt Q)^2), and the two bounds by the mask.

    Status: proven. Within 1e-3: only where the advantage itself is below about 4e-3, or close to 1.

    Args:
        noise_multiplier, sample_rate, steps, neighbouring: see the module.
    """
    replace = neighbouring is Neighbouring.REPLACE

    def evaluate(n: np.ndarray, p: np.ndarray, t: np.ndarray) -> np.ndarray:
        s = 1.0 / (n * n)
        if replace:
            deficit = p * p * np.sinh(s) / (2.0 + 2.0 * p * np.expm1(-0.5 * s))
        else:
            deficit = p * p * np.expm1(s) / np.sqrt(64.0 - 64.0 * p)
        upper = np.sqrt(-np.expm1((t + t) * np.log1p(-np.minimum(deficit, 1.0))))
        upper *= _ULPS
        return np.fmin(upper, _mask_bounds(n, p, t, neighbouring))

    return _blockwise(evaluate, noise_multiplier, sample_rate, steps)


def one_step(noise_multiplier: ArrayLike, sample_rate: ArrayLike, neighbouring: Neighbouring) -> np.ndarray:
    """Exact advantage of a single step, p erf(sensitivity / (sqrt 8 noise)): proven.

    Args:
        noise_multiplier, sample_rate, neighbouring: see the module.
    """
    size = neighbouring.sensitivity / _SQRT_8
    return _blockwise(lambda n, p, _: p * erf(size / n), noise_multiplier, sample_rate, 1)


def published_sample_rate(
    advantage: ArrayLike, noise_multiplier: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Largest p with ``published`` at most ``advantage``: Equation 4 of CHERUBIN2024; for reproduction only.

    Unsafe like the form that it inverts (CHERUBIN2024:B3): its example, p = 0.00035 noise for Bayes security
    0.98 after 5,000 steps, really gives 0.97834 at noise 1 and 0.95393 at noise 0.5. At most 1.

    Args:
        advantage: that is allowed, in [0, 1]; broadcasts with the next two.
        noise_multiplier, steps, neighbouring: see the module.
    """
    mu = mu_at(advantage)
    return np.minimum(
        _blockwise(lambda n, m, t: m * n / np.sqrt(t), noise_multiplier, mu, steps, rates=False)
        / neighbouring.sensitivity,
        1.0,
    )


def clt_sample_rate(
    advantage: ArrayLike, noise_multiplier: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Largest p with ``clt`` at most ``advantage``; at most 1. Safe wherever ``clt`` is.

    Args:
        advantage: that is allowed, in [0, 1]; broadcasts with the next two.
        noise_multiplier, steps, neighbouring: see the module.
    """
    unit = clt_mu(noise_multiplier, 1.0, steps, neighbouring)
    return np.minimum(mu_at(advantage) / unit, 1.0)


def _clt_add(n: np.ndarray, p: np.ndarray, t: np.ndarray) -> np.ndarray:
    return p * np.sqrt(t * np.expm1(1.0 / (n * n)))


def _clt_replace(n: np.ndarray, p: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 2.0 * p * np.sqrt(t * np.sinh(1.0 / (n * n)))


_CLT_MU = (_clt_add, _clt_replace)


def _mask_bounds(n: np.ndarray, p: np.ndarray, t: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    """Upper bounds on the advantage of an attacker who also sees when the target was sampled."""
    with np.errstate(divide="ignore"):
        never = -np.expm1(t * np.log1p(-p))
        revealed = np.sqrt(p * t) / n
        revealed *= neighbouring.sensitivity / _SQRT_8
        return np.minimum(never, erf(revealed))


class _NormalLaw(NamedTuple):
    """E exp(-|S|/2) for S normal, and its third, fourth and sixth derivatives in the mean of S."""

    value: np.ndarray
    third: np.ndarray
    fourth: np.ndarray
    sixth: np.ndarray


def _normal_law(mean: np.ndarray, scale: np.ndarray) -> _NormalLaw:
    """With I(m) = E g(S), g = exp(-|x|/2): g'' = g/4 - (point mass at 0), so I'' = I/4 - density of S at 0."""
    scale = np.maximum(scale, TINY)
    z = mean / scale
    right, left = _half(0.5 * scale - z, z), _half(0.5 * scale + z, z)
    value, slope = right + left, 0.5 * (left - right)
    density = np.exp(-0.5 * z * z) / (_SQRT_TWO_PI * scale)
    first, second = -z / scale, (z * z - 1.0) / scale**2
    fourth = (z**4 - 6.0 * z * z + 3.0) / scale**4
    second_value = 0.25 * value - density
    third_value = 0.25 * slope - density * first
    fourth_value = 0.25 * second_value - density * second
    return _NormalLaw(value, third_value, fourth_value, 0.25 * fourth_value - density * fourth)


def _half(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """exp(-z^2/2) erfcx(x / sqrt 2) / 2 without overflow for negative x."""
    positive = 0.5 * np.exp(-0.5 * z * z) * erfcx(np.maximum(x, 0.0) / _SQRT_2)
    with np.errstate(over="ignore"):
        negative = np.exp(np.minimum(0.5 * (x * x - z * z), 0.0) + log_ndtr(-x))
    return np.where(x >= 0.0, positive, negative)


def _inside(advantage: np.ndarray, one: Affinity, count: np.ndarray) -> np.ndarray:
    """Kept within the bracket that is proven from rho alone."""
    lower = -np.expm1(-count * one.minus_log.lower)
    return np.clip(advantage, lower, np.sqrt(-np.expm1(-2.0 * count * one.minus_log.upper)))


def _arguments(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, rates: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if all(isinstance(x, float | int) for x in (noise_multiplier, sample_rate, steps)):
        # A search asks for one at a time: comparing plain numbers costs a tenth of comparing arrays.
        n, p, t = float(noise_multiplier), float(sample_rate), float(steps)  # type: ignore[arg-type]
        if 0.0 <= n < math.inf and (0.0 < p <= 1.0 or not rates) and 1.0 <= t < math.inf:
            return np.array(n), np.array(p), np.array(t)
    noise, rate, count = (np.asarray(x, dtype=float) for x in (noise_multiplier, sample_rate, steps))
    if not (np.all(noise >= 0.0) and np.all(np.isfinite(noise))):
        raise ParameterError("noise_multiplier", noise.tolist(), "finite numbers >= 0")
    if rates and not np.all((rate > 0.0) & (rate <= 1.0)):
        raise ParameterError("sample_rate", rate.tolist(), "numbers in (0, 1]")
    if not (np.all(count >= 1.0) and np.all(np.isfinite(count))):
        raise ParameterError("steps", count.tolist(), "finite numbers >= 1")
    return noise, rate, count


def _blockwise(
    kernel: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    noise_multiplier: ArrayLike,
    sample_rate: ArrayLike,
    steps: ArrayLike,
    rates: bool = True,
) -> np.ndarray:
    """``kernel`` on broadcast arguments, in blocks that fit the cache: temporaries in memory cost twice the time."""
    arguments = _arguments(noise_multiplier, sample_rate, steps, rates)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if max(x.size for x in arguments) <= _BLOCK:
            return np.asarray(kernel(*arguments))
        full = np.broadcast_arrays(*arguments)
        out = np.empty(full[0].shape)
        flat = out.reshape(-1)
        parts = [x if x.size == 1 else y.reshape(-1) for x, y in zip(arguments, full, strict=True)]
        for start in range(0, flat.size, _BLOCK):
            stop = start + _BLOCK
            flat[start:stop] = kernel(*(x if x.size == 1 else x[start:stop] for x in parts))
    return out
