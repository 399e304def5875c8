"""Curves made of finitely many segments, in logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves._logs import LOG_HALF, log1mexp
from reticent.kernel.curves.base import LogErrors, TradeOff, follow_segment, shift
from reticent.kernel.errors import ParameterError

_BENT = 1e-12  # relative increase of a slope that counts as rounding
_ROUNDING = 1e-15
_YES, _NO = np.array([0.0]), np.array([-np.inf])
NEVER = LogErrors(fpr=_NO, tnr=_YES, fnr=_YES, tpr=_NO)
ALWAYS = LogErrors(fpr=_YES, tnr=_NO, fnr=_NO, tpr=_YES)
"""The test that never accuses, and the one that always does."""


class PolygonTradeOff(TradeOff):
    """A curve known at its vertices.

    Attributes:
        vertices: log rates of each vertex, alpha increasing from 0 (first) to 1 (last).
        log_slopes: logarithm of minus the slope of each segment, non-increasing, one fewer than the
            vertices: the values that the log likelihood ratio takes.
    """

    __slots__ = ("_infinite", "_rising", "log_slopes", "vertices")

    def __init__(self, vertices: LogErrors, log_slopes: np.ndarray) -> None:
        self.vertices, self.log_slopes = vertices, log_slopes
        self._rising = -log_slopes  # sorted once: a search for thresholds asks thousands of times
        self._infinite = int(np.searchsorted(self._rising, -np.inf, side="right"))

    @property
    def proven_mu(self) -> float:
        """The smallest mu, needed at a vertex: a segment minus G_mu is concave, so it is least at an end.

        Infinite where a vertex with a true positive rate above 0 lies at false positive rate 0, or mirrored.
        """
        fpr, tnr, fnr, tpr = self.vertices
        inside = (tpr > -np.inf) & (tnr > -np.inf)
        if not np.any(inside):
            return 0.0
        reject = np.where(fpr < tnr, ndtri_exp(np.minimum(fpr, 0.0)), -ndtri_exp(np.minimum(tnr, 0.0)))
        accuse = np.where(tpr < fnr, ndtri_exp(np.minimum(tpr, 0.0)), -ndtri_exp(np.minimum(fnr, 0.0)))
        return max(0.0, float(np.max(accuse[inside] - reject[inside])))

    def largest_shift(self, lowest: float) -> float:
        """At a vertex, or where the rates begin or end."""
        ends = log_ndtr(np.array([lowest, 0.0]))
        inside = slice(*np.searchsorted(self.vertices.fpr, ends))
        rates = zip((ends, self.log_beta(ends)), (self.vertices.fpr[inside], self.vertices.fnr[inside]), strict=True)
        return float(np.max(shift(*(np.concatenate(each) for each in rates))))

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        return self.vertices.at(self._vertex(log_ratio))

    def between(self, slopes: np.ndarray) -> LogErrors:
        """The vertices of this curve before, between and after the edges of one that has more.

        Args:
            slopes: log of minus the slopes of that curve, falling, all of this curve among them.
        """
        return self.vertices.at(np.append(np.searchsorted(self._rising, -slopes), len(self.log_slopes)))

    def _vertex(self, log_ratio: ArrayLike) -> np.ndarray:
        """Index of the vertex that thresholding at ``log_ratio`` attains."""
        ratio = np.asarray(log_ratio, dtype=float)
        above = np.searchsorted(self._rising, -ratio, side="left")
        return np.where(ratio == np.inf, self._infinite, above)

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        last = len(self.log_slopes)
        by_alpha = np.searchsorted(self.vertices.fpr, log_alpha, side="right")
        by_rest = last + 1 - np.searchsorted(self.vertices.tnr[::-1], log1mexp(log_alpha), side="left")
        right = np.clip(np.where(log_alpha > LOG_HALF, by_rest, by_alpha), 1, last)
        return follow_segment(log_alpha, self.vertices.at(right), self.vertices.at(right - 1))


class SymmetricPolygon(PolygonTradeOff):
    """One that is its own inverse."""

    __slots__ = ()

    @property
    def reversed(self) -> TradeOff:
        return self


class Polygon(PolygonTradeOff):
    """A trade-off curve with finitely many vertices, closed at alpha = 1, with its exact inverse.

    Attributes:
        vertices: the four log rates of each vertex, ordered by increasing false positive rate.
        log_slopes: log of minus the slope of each edge, strictly decreasing, one fewer than vertices.
    """

    __slots__ = ()

    def __init__(self, vertices: LogErrors, log_slopes: np.ndarray) -> None:
        if vertices.tnr[-1] > -np.inf:
            vertices = LogErrors.joined(vertices, ALWAYS)
            log_slopes = np.append(log_slopes, -np.inf)
        super().__init__(vertices, log_slopes)

    @property
    def reversed(self) -> Polygon:
        """H0 and H1 exchanged: the inverse function, exactly."""
        return Polygon(self.vertices.at(slice(None, None, -1)).exchanged, -self.log_slopes[::-1])

    def reaches(self, log_delta: float) -> bool:
        """Whether delta is followed down to ``log_delta`` in both directions: tails that cannot be had are left out."""
        return all(
            np.max(rates.tpr[np.isneginf(rates.fpr)]) < log_delta for rates in (self.vertices, self.reversed.vertices)
        )

    def __repr__(self) -> str:
        return f"Polygon(<{len(self.log_slopes)} edges>)"


class PiecewiseLinearTradeOff(Polygon):
    """The curve through given points; exact, because tests between two vertices randomise.

    Attributes:
        alphas: false positive rates, increasing, from 0 to 1, at least two.
        betas: false negative rates at ``alphas``: convex, non-increasing, at most 1 - alpha, the last 0.

    Raises:
        ParameterError: the points are not such a curve (deviations from convexity below 1e-12 of the
            slope are taken as rounding).
    """

    __slots__ = ()

    def __init__(self, alphas: ArrayLike, betas: ArrayLike) -> None:
        alphas, betas = checks.probabilities(alphas=alphas), checks.probabilities(betas=betas)
        _check_points(alphas, betas)
        slopes = -np.diff(betas) / np.diff(alphas)
        if np.any(np.diff(slopes) > _BENT * slopes[:-1]):
            raise ParameterError("betas", betas.tolist(), "convex over alphas")
        with np.errstate(divide="ignore"):
            vertices = LogErrors(np.log(alphas), np.log1p(-alphas), np.log(betas), np.log1p(-betas))
            super().__init__(vertices, np.minimum.accumulate(np.log(slopes)))


def from_advantage(advantage: float) -> PiecewiseLinearTradeOff:
    """The least safe curve of total variation ``advantage``: beta = max(0, 1 - advantage - alpha).

    0 is perfect privacy, 1 is none. Every curve with that advantage lies on or above it: CHERUBIN2024:Proposition 9, in
    the form that CHERUBIN2024:B11 corrects, TPR <= min(1, FPR + advantage).

    Raises:
        ParameterError: ``advantage`` is outside [0, 1].
    """
    rest = 1.0 - checks.fraction(advantage=advantage)
    if rest == 1.0:
        return PiecewiseLinearTradeOff([0.0, 1.0], [1.0, 0.0])
    if rest == 0.0:
        return no_privacy()
    return PiecewiseLinearTradeOff([0.0, rest, 1.0], [rest, 0.0, 0.0])


def no_privacy() -> PiecewiseLinearTradeOff:
    """beta = 0 at every alpha: the attacker is never wrong."""
    return PiecewiseLinearTradeOff([0.0, 1.0], [0.0, 0.0])


def _check_points(alphas: np.ndarray, betas: np.ndarray) -> None:
    if alphas.ndim != 1 or alphas.shape != betas.shape or len(alphas) < 2:
        raise ParameterError("alphas", alphas.tolist(), "one list of at least two, as long as betas")
    if alphas[0] != 0.0 or alphas[-1] != 1.0 or np.any(np.diff(alphas) <= 0):
        raise ParameterError("alphas", alphas.tolist(), "increasing from 0 to 1")
    if betas[-1] != 0.0 or np.any(np.diff(betas) > 0) or np.any(betas > 1.0 - alphas + _ROUNDING):
        raise ParameterError("betas", betas.tolist(), "non-increasing, at most 1 - alpha, the last 0")
