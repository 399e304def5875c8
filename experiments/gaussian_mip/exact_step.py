"""The curve of one step of the membership inference game that is exact for Gaussian gradients.

The curve is known through the cumulant function of its log likelihood ratio. For L = log dQ/dP let
``Lambda(s) = log E_P[e^(s L)]``, so ``Lambda(0) = Lambda(1) = 0``. Then

    P(L > l) = 1/(2 pi i) int e^(Lambda(s) - s l) / s ds            over Re s = c > 0,
    Q(L > l) = e^l/(2 pi i) int e^(Lambda(s) - s l) / (s - 1) ds    over Re s = c > 1,

and minus the complement on the other side of each pole: one contour through the saddle point gives all four
rates. The trapezoid rule converges geometrically, and the exponent at the real axis is factored out, so logarithms stay
accurate in the far tails: about 1e-12, relative, measured and not certified. H0: the target is not in the batch.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.kernel import checks
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.errors import ParameterError

_SPACING = 0.05  # of the trapezoid rule, in the contour's own parameter
_COARSE = np.arange(0.0, 46.0)  # parameters at which the end of the contour is looked for
_GONE = 44.0  # log of the fall of the integrand at which it ends: below 1e-19 of its largest value
_FAR = 1e12  # largest |s| of a saddle point
_HALVINGS = 60  # of the search for a saddle point
_CLEAR = 0.7  # of the contour's width: its distance from a pole and from the end of the strip


class GaussianGradientTradeOff(TradeOff):
    """The exact curve of one step of the membership game for Gaussian gradients; docs/theory/membership-game.md.

    Target and batch mean are, after whitening, ``dimension`` independent pairs of normal variables,
    uncorrelated for a non-member (H0) and with correlation ``1/sqrt(effective_batch)`` for a member (H1).
    This is Definition 4.1 of LEEMANN2023 with the exact law of K, chi-square with ``dimension`` degrees:
    stronger for the attacker than the curve at K = d, above all at low false positive rates (LEEMANN2023:G2).

    One direction, H1 = member; the other is ``reversed``.

    Attributes:
        dimension: number of released coordinates, a whole number >= 1.
        effective_batch: n, or n plus the noise in proportion to the covariance (``gmip.effective_batch``); finite, > 1.

    Not claimed: anything for gradients that are not Gaussian, or for isotropic noise. Rates are those of the stated
    model to about 1e-12, relative, without a certificate.

    Raises:
        ParameterError: an argument is outside its domain.
    """

    def __init__(self, dimension: int, effective_batch: float) -> None:
        self.dimension = checks.count(dimension=dimension)
        self.effective_batch = checks.positive(effective_batch=effective_batch)
        if self.effective_batch <= 1.0:
            raise ParameterError("effective_batch", effective_batch, "a finite number > 1")
        self._law = _PairsLaw(self.dimension, self.effective_batch)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        if ratio.size == 0:
            return LogErrors(ratio, ratio, ratio, ratio)
        flat = ratio.reshape(-1)
        above, below = np.isposinf(flat), np.isneginf(flat)
        inside = _rates(self._law, np.where(above | below, 0.0, flat))
        accepts, rejects = np.where(above, 0.0, -np.inf), np.where(below, 0.0, -np.inf)
        ends = LogErrors(fpr=rejects, tnr=accepts, fnr=accepts, tpr=rejects)
        rates = (np.where(above | below, end, rate) for end, rate in zip(ends, inside, strict=True))
        return LogErrors(*(rate.reshape(ratio.shape) for rate in rates))

    def __repr__(self) -> str:
        return f"GaussianGradientTradeOff(dimension={self.dimension!r}, effective_batch={self.effective_batch!r})"


class _PairsLaw:
    """Lambda(s) = d/2 [(1 - s) ln(1 - 1/N) - ln(1 - (1 - s)^2/N)], N the effective batch.

    Analytic on ``low < Re s < high``; grows as ``growth_rate * s`` for large ``|s|``.
    """

    def __init__(self, dimension: int, effective_batch: float) -> None:
        self._d, self._N = dimension, effective_batch
        self._log = math.log1p(-1.0 / effective_batch)
        self.low, self.high = 1.0 - math.sqrt(effective_batch), 1.0 + math.sqrt(effective_batch)
        self.growth_rate = -0.5 * dimension * self._log

    def cumulant(self, s: np.ndarray) -> np.ndarray:
        """Lambda at complex ``s`` within the strip, of its shape."""
        root, z = math.sqrt(self._N), 1.0 - s
        return 0.5 * self._d * (z * self._log - np.log1p(z / root) - np.log1p(-z / root))

    def slopes(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of Lambda at real ``s`` within the strip, each of its shape."""
        z = 1.0 - s
        rest = self._N - z * z
        return 0.5 * self._d * (-self._log - 2.0 * z / rest), self._d * (self._N + z * z) / rest**2


def susceptibilities(dimension: int, nodes: int = 64) -> SusceptibilityLaw:
    """Chi-square with ``dimension`` degrees of freedom, the law of K for Gaussian gradients.

    Gauss-Laguerre nodes: exact for polynomials in K up to degree ``2 nodes - 1``; curves composed with it
    are good to 1e-6 from about ten dimensions on. ``GaussianGradientTradeOff`` is exact in any dimension.

    Args:
        dimension: >= 1.
        nodes: of the rule, >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    order, degrees = checks.count(nodes=nodes), checks.count(dimension=dimension)
    k, shape = np.arange(order, dtype=float), 0.5 * degrees - 1.0
    points, vectors = eigh_tridiagonal(2.0 * k + shape + 1.0, np.sqrt(k[1:] * (k[1:] + shape)))
    weights = vectors[0] ** 2
    keep = (weights > 0.0) & (points > 0.0)
    return SusceptibilityLaw(2.0 * points[keep], weights[keep] / weights[keep].sum())


def _rates(law: _PairsLaw, l: np.ndarray) -> LogErrors:  # noqa: E741
    """All four log rates at thresholds ``l`` within the range of L, shape (n,)."""
    saddle = _saddle(law, l)
    centre, scale = _contour(law, saddle)
    lean = -0.5 * np.sign(law.growth_rate - l)
    reach = _reach(law, l, centre, scale, lean)
    u = np.arange(0.0, reach + _SPACING, _SPACING)
    s, velocity = _path(centre, scale, lean, u)
    base = np.real(law.cumulant(centre.astype(complex))) - centre * l
    with np.errstate(under="ignore"):
        value = np.exp(law.cumulant(s) - s * l[:, None] - base[:, None]) * velocity
    value[:, 0] *= 0.5
    at_zero = _log_integral(value / s) + base
    at_one = _log_integral(value / (s - 1.0)) + base + l
    at_zero, at_one = np.minimum(at_zero, 0.0), np.minimum(at_one, 0.0)
    right_of_zero, right_of_one = centre > 0.0, centre > 1.0
    return LogErrors(
        fpr=np.where(right_of_zero, at_zero, log1mexp(at_zero)),
        tnr=np.where(right_of_zero, log1mexp(at_zero), at_zero),
        fnr=np.where(right_of_one, log1mexp(at_one), at_one),
        tpr=np.where(right_of_one, at_one, log1mexp(at_one)),
    )


def _log_integral(value: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.abs(_SPACING / np.pi * np.sum(value.imag, axis=1)))


def _path(centre: np.ndarray, scale: np.ndarray, lean: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The contour at parameters ``u`` and its derivative; it leans to where the integrand decays."""
    c, b, k = centre[:, None], scale[:, None], lean[:, None]
    return c + b * (1j * np.sinh(u) + k * (np.cosh(u) - 1.0)), b * (1j * np.cosh(u) + k * np.sinh(u))


def _reach(law: _PairsLaw, l: np.ndarray, centre: np.ndarray, scale: np.ndarray, lean: np.ndarray) -> float:  # noqa: E741
    """Where the integrand has fallen below 1e-19 of its largest value, for all thresholds."""
    s, velocity = _path(centre, scale, lean, _COARSE)
    with np.errstate(divide="ignore"):
        size = np.real(law.cumulant(s) - s * l[:, None]) + np.log(np.abs(velocity / s))
    alive = np.any(size > size[:, :1] - _GONE, axis=0)
    return float(_COARSE[min(int(np.flatnonzero(alive)[-1]) + 1, len(_COARSE) - 1)])


def _saddle(law: _PairsLaw, l: np.ndarray) -> np.ndarray:  # noqa: E741
    """Root of Lambda'(s) = l by bisection; where it leaves the strip, a point near its end."""
    low, high = np.full(l.shape, max(law.low, -_FAR)), np.full(l.shape, min(law.high, _FAR))
    low, high = halved(lambda s: law.slopes(s)[0] < l, low, high, _HALVINGS)
    return 0.5 * (low + high)


def _contour(law: _PairsLaw, saddle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the contour crosses the real axis, clear of both poles, and its length scale."""
    width = 1.0 / np.sqrt(law.slopes(saddle)[1])
    room = min(-law.low, law.high - 1.0)
    clear = np.minimum(_CLEAR * width, 0.5 * room)
    squeezed = clear > 0.25
    inner = np.where(squeezed, np.where(saddle < 0.5, -clear, 1.0 + clear), np.clip(saddle, clear, 1.0 - clear))
    outer = np.where(saddle < 0.0, np.minimum(saddle, -clear), np.maximum(saddle, 1.0 + clear))
    centre = np.where((saddle > 0.0) & (saddle < 1.0), inner, outer)
    edge = np.minimum(centre - law.low, law.high - centre)
    pole = np.minimum(np.abs(centre), np.abs(centre - 1.0))
    return centre, np.minimum(np.minimum(width, pole / _CLEAR), _CLEAR * edge)
