"""The characteristic-function route: composed losses from transforms on a vertical line.

With M the product of the steps' transforms and S the composed loss, for any real c other than 0 and 1

    delta(l) = e^((1-c) l) (h / 2 pi) sum_k M(c + ikh) e^(-ikhl) / (lambda_k (lambda_k - 1))
               - 1 / (e^((c-1)W) - 1) + e^l / (e^(cW) - 1)  -  aliases,      W = 2 pi / h:

the trapezoid rule in frequency, whose error is a sum of images of delta shifted by multiples of W. The
images tend to known exponentials, which the two closed terms remove; what is left is bounded by
Chernoff. False rates come from differences of delta over a tiny step in l, evaluated inside the sum.
Every other error is bounded in ``pairs``. Derivations: docs/theory/composition.md. Shares no code with ``lattice``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from reticent.kernel.curves._logs import EPS, OVERFLOW
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.columns import Numbers
from reticent.pairs.transforms import Law

_MAX_FREQUENCIES = 2**13
_FEW_STEPS, _FEW_FREQUENCIES = 1000, 2**10  # up to which a closer bound on the decay is asked
_SCANS = (16, 12)  # frequencies asked at, twice, for the last one that is needed: within 5 %
_FEW = 16  # thresholds that need not be evenly spaced
_SHORT = 0.05  # window below which large parts of the sum cancel by hand
_LOGS = 1e-9  # more than the logarithm of a bound on an image is rounded by
_SURE = 0.1  # relative error of a value that is certainly below the decay bound

_TRIED = 9  # thresholds of a block at which exponents of Chernoff bounds compete

_QUIET = np.errstate(over="ignore", invalid="ignore")  # what overflows becomes the trivial enclosure

Laws = Sequence[tuple[Law, Numbers]]
"""(loss of one step, how many times it ran); of several kinds, the second has the shape (kinds, 1)."""


def over_steps(count: Numbers, values: Any) -> Any:
    """``values`` of one step times how often it ran, summed over the kinds of a block."""
    total = count * values
    return total.sum(axis=0) if np.ndim(count) else total


@dataclass(frozen=True)
class Enclosed:
    """Arrays ``lower <= truth <= upper``."""

    lower: np.ndarray
    upper: np.ndarray


_Images = tuple[float, float]


@dataclass(frozen=True)
class Moments:
    """Upper bounds on log E_P[e^(cS)] at some exponents, for Chernoff bounds.

    Attributes:
        exponents: c, increasing.
        logs: the bounds; infinite where there is none.
        lost: what they leave out, as a bound on Q(S > l) and on P(S <= l): moments of steps whose loss is cut off
            where rare large losses begin. Only contours with 0 < c < 1 can pay for it.
    """

    exponents: np.ndarray
    logs: np.ndarray
    lost: float = 0.0

    def right(self, c: float, above: float) -> tuple[np.ndarray, np.ndarray]:
        """Usable (exponent, log moment) pairs with exponent > max(c, above)."""
        keep = (self.exponents > max(c, above)) & np.isfinite(self.logs)
        return self.exponents[keep], self.logs[keep]

    def left(self, c: float, below: float) -> tuple[np.ndarray, np.ndarray]:
        """Usable (exponent, log moment) pairs with exponent < min(c, below)."""
        keep = (self.exponents < min(c, below)) & np.isfinite(self.logs)
        return self.exponents[keep], self.logs[keep]


def chernoff_moments(laws: Laws, exponents: np.ndarray) -> Moments:
    """Bounds for the composition at ``exponents``.

    Args:
        laws: (loss law of one step, how many times it ran).
        exponents: c, increasing.
    """
    logs = np.zeros(len(exponents))
    for law, count in laws:
        logs += over_steps(count, law.log_moment(exponents))
    return Moments(exponents, logs)


@dataclass(frozen=True)
class Contour:
    """Transforms of the composition on Re lambda = c, divided by M(c).

    Attributes:
        c: real part, not 0 or 1.
        log_scale: log M(c).
        spacing: h.
        frequencies: t_k = k h, from 0.
        values: M(c + i t_k) / M(c).
        errors: bounds on the absolute errors of ``values``.
        beyond: bound on |M(c + it)| / M(c) for t past the last frequency.
        moments: for the aliases.
        step: distance of the two deltas whose difference gives an error rate.
        unresolved: how much of the sum of ``errors`` more nodes would take away.
        start_error: bound on the error of ``log_scale``.
    """

    c: float
    log_scale: float
    spacing: float
    frequencies: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    beyond: float
    moments: Moments
    step: float
    unresolved: float = np.inf
    start_error: float = np.inf

    @property
    def window(self) -> float:
        """W: distance of neighbouring images."""
        return 2.0 * np.pi / self.spacing

    def delta(self, thresholds: np.ndarray) -> Enclosed:
        """delta(l) = E_P[(e^S - e^l)_+] at ``thresholds`` l, shape (n,); 16 and more must be evenly spaced."""
        c, w = self.c, self.window
        return self._delta(thresholds, np.zeros(1), (-1.0, (c - 1.0) * w), (1.0, c * w))

    def reversed_delta(self, thresholds: np.ndarray) -> Enclosed:
        """E_P[(1 - e^(S - l))_+] = e^-l (delta(l) - 1 + e^l): delta of the reversed experiment at -l."""
        c, w = self.c, self.window
        return self._delta(thresholds, -thresholds, (1.0, (1.0 - c) * w), (-1.0, -c * w))

    def log_overlap(self, thresholds: np.ndarray) -> np.ndarray:
        """log of a lower bound on 1 - delta(l), l >= 0, or on 1 less the reversed delta at -l: 0 < c < 1 only.

        Relative to the scale of the contour: it has digits where delta is next to 1. -inf where nothing is known.
        """
        c, w = self.c, self.window
        grown = np.maximum(-thresholds, 0.0)
        scale = (1.0 - c) * thresholds + grown + self.log_scale
        found = self._delta(thresholds, grown - scale, (1.0, (1.0 - c) * w), (1.0, c * w))
        return _log(-found.upper) + scale

    def rates(self, thresholds: np.ndarray, *, under_absent: bool) -> tuple[Enclosed, Enclosed]:
        """Bounds on an error, P(S > l) where ``under_absent`` else Q(S <= l), and on its complement.

        Returns:
            The error's as logarithms, relative to the scale of the contour, -inf where nothing is known; and the
            complement's.
        """
        slopes = self._slopes(thresholds, under_absent)
        scale = (-self.c if under_absent else 1.0 - self.c) * thresholds + self.log_scale
        few = self._rate(thresholds, under_absent, slopes, 1.0, -scale)
        logs = Enclosed(*(np.minimum(_log(end) + scale, 0.0) for end in (few.lower, few.upper)))
        return logs, self._rate(thresholds, under_absent, slopes, -1.0)

    def _scale(self, exponent: np.ndarray, log_factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """e^(exponent + log_factor) M(c), and a bound on its relative rounding."""
        sizes = np.abs(exponent) + np.abs(log_factor) + abs(self.log_scale)
        return np.exp(exponent + log_factor + self.log_scale), 4 * EPS * (1.0 + sizes)

    @_QUIET
    def _delta(self, thresholds: np.ndarray, log_factor: np.ndarray, right: _Images, left: _Images) -> Enclosed:
        """e^log_factor times delta; ``right`` + e^l ``left`` is what its images tend to: sign / (e^exponent - 1)."""
        if self.c == 0.5 and self.window < _SHORT:
            return self._short_delta(thresholds, log_factor)
        scale, rounding = self._scale((1.0 - self.c) * thresholds, log_factor)
        total, error = self._sum(thresholds, np.ones(len(self.frequencies)), self._delta_tail)
        near, far = _shrunk(log_factor, *right), _shrunk(log_factor + thresholds, *left)
        error = scale * (error + rounding * np.abs(total)) + 8 * EPS * (np.abs(near) + np.abs(far))
        images = self.right(thresholds, log_factor) + self.left(thresholds, log_factor)
        return _ordered([(scale * total + near + far, error)], images)

    def _short_delta(self, thresholds: np.ndarray, log_factor: np.ndarray) -> Enclosed:
        """The same at c = 1/2 where all losses are small: frequency 0 and the known images, both large, in one."""
        u, side = 0.25 * self.window, np.where(log_factor == 0.0, -1.0, 1.0)
        rest = np.ones(len(self.frequencies))
        rest[0] = 0.0
        total, error = self._sum(thresholds, rest, self._delta_tail)
        scale, missing = np.exp(self.log_scale), -np.expm1(self.log_scale) / u
        # cosh(l/2) coth(u) - 1/u, and 1/u less its share at frequency 0
        even = u / 3.0 - u**3 / 45.0 + 2.0 * u**5 / 945.0 + 2.0 * np.sinh(0.25 * thresholds) ** 2 / np.tanh(u)
        odd = side * np.sinh(0.5 * thresholds)
        rounding = 16 * EPS * (even + np.abs(odd) + missing) + u**7 / 4000.0
        error = scale * (error + np.expm1(self.start_error) / u) + rounding
        factor = np.exp(0.5 * thresholds + log_factor)
        images = self.right(thresholds, log_factor) + self.left(thresholds, log_factor)
        return _ordered([(factor * (even + odd + missing + scale * total), factor * error)], images)

    @_QUIET
    def _slopes(self, thresholds: np.ndarray, under_absent: bool) -> list[tuple[np.ndarray, float]]:
        """Sums for the slopes of delta in e^l, or of the reversed delta in e^-l: just left and just right of l."""
        lines = 1j * self.frequencies
        exponents = self.c - 1.0 + lines if under_absent else -(self.c + lines)
        factors = [np.expm1(exponents * eta) / -np.expm1(-eta) for eta in (self.step, -self.step)]
        return [self._sum(thresholds, factor, self._rate_tail) for factor in factors]

    @_QUIET
    def _rate(
        self,
        thresholds: np.ndarray,
        under_absent: bool,
        slopes: list[tuple[np.ndarray, float]],
        sign: float,
        log_factor: np.ndarray | float = 0.0,
    ) -> Enclosed:
        """The error of one kind, times e^log_factor; ``sign`` -1 for its complement.

        Slopes enclose it. The slope of an image is a mean of P(S > l + mW), to which the bounds of delta's images apply
        as well.
        """
        power, step = (-self.c if under_absent else 1.0 - self.c), self.step
        scale, rounding = self._scale(power * thresholds, log_factor + np.zeros(len(thresholds)))
        apart = (-sign if under_absent else sign) * power * self.window
        known = _shrunk(np.asarray(log_factor), -1.0, apart)
        weight = log_factor - thresholds if under_absent else log_factor
        spill = self.right(thresholds, weight, step) + self.left(thresholds, weight, step)
        ends = []
        for total, error in slopes:
            value, error = sign * scale * total + known, scale * (error + rounding * np.abs(total))
            ends.append((value, error + 16 * EPS * np.abs(known) + 2.0 * spill))
        return _ordered(ends)

    def _sum(self, thresholds: np.ndarray, factor: np.ndarray, tail: float) -> tuple[np.ndarray, float]:
        """(h / 2 pi) sum over all k of factor * value * e^(-i t l) / (lambda (lambda - 1)), and its error.

        ``tail`` bounds the integral of |factor / (lambda (lambda - 1))| past the last frequency. 16 thresholds and
        more must be evenly spaced.
        """
        exponents = self.c + 1j * self.frequencies
        kernel = factor / (exponents * (exponents - 1.0)) * (self.spacing / np.pi)
        kernel[0] *= 0.5
        total = _fourier(self.spacing, kernel * self.values, thresholds)
        sizes = np.abs(kernel)
        # In whatever order they are added, each term may take part in as many roundings as there are terms.
        blur = len(sizes) + 64.0 + 4.0 * self.frequencies * np.max(np.abs(thresholds), initial=0.0)
        error = float(np.sum(sizes * (self.errors + EPS * blur * np.abs(self.values))))
        return total, error + tail * self.beyond / np.pi

    @property
    def _delta_tail(self) -> float:
        return 1.0 / float(self.frequencies[-1])

    @property
    def _rate_tail(self) -> float:
        """A difference over ``step`` is at most 1.1 / t, and 2.2 / (step t^2)."""
        return 1.1 * (max(np.log(2.0 / (self.step * float(self.frequencies[-1]))), 0.0) + 1.0)

    def right(self, thresholds: np.ndarray, log_factor: np.ndarray | float, margin: float = 0.0) -> np.ndarray:
        """Bound on the sum over m >= 1 of e^((c-1) m W) Q(S > l + mW), which is at least delta there.

        Times e^log_factor.
        """
        exponents, logs = self.moments.right(self.c, 1.0)
        return self._images(exponents - self.c, logs, 1.0 - exponents, thresholds - margin, log_factor) + self._lost(
            1.0 - self.c, log_factor
        )

    def left(self, thresholds: np.ndarray, log_factor: np.ndarray | float, margin: float = 0.0) -> np.ndarray:
        """Bound on e^l times the sum over m >= 1 of e^(-c m W) P(S <= l - mW), at least the reversed delta there.

        Times e^log_factor.
        """
        exponents, logs = self.moments.left(self.c, 0.0)
        return self._images(self.c - exponents, logs, 1.0 - exponents, thresholds + margin, log_factor) + self._lost(
            self.c, log_factor + thresholds
        )

    def _images(
        self, gap: np.ndarray, logs: np.ndarray, powers: np.ndarray, shifted: np.ndarray, log_factor: np.ndarray | float
    ) -> np.ndarray:
        """The least of the bounds of all exponents. Few are the least anywhere, and any of them is a bound."""
        starts = logs - gap * self.window - np.log(-np.expm1(-gap * self.window)) + _LOGS
        if min(len(shifted), len(starts)) > _TRIED:
            places = shifted[np.linspace(0, len(shifted) - 1, _TRIED).astype(int)]
            least = np.unique(np.argmin(starts + powers * places[:, None], axis=1))
            starts, powers = starts[least], powers[least]
        bounds = starts + powers * shifted[:, None]
        return np.exp(np.minimum(np.min(bounds, axis=1, initial=OVERFLOW) + log_factor, OVERFLOW))

    def _lost(self, decay: float, log_factor: np.ndarray | float) -> np.ndarray | float:
        """Sum over m >= 1 of e^(-decay m W) times what the moments leave out, times e^log_factor."""
        if self.moments.lost == 0.0:
            return 0.0
        return self.moments.lost * np.exp(log_factor) / np.expm1(decay * self.window) if decay > 0.0 else np.inf


def build_contour(
    laws: Laws, moments: Moments, c: float, low: float, high: float, digits: float, step: float
) -> Contour:
    """A contour at c that serves thresholds in [low, high] to about e^-digits of the quantities' scale.

    ``step`` is the distance of the two deltas whose difference gives an error rate.

    Args:
        laws: (loss law of one step, how many times it ran).
        moments: for the aliases.
        c: real part of the line, not 0 or 1.
        low, high: thresholds that it serves.
        digits: see above.
        step: distance of the two deltas whose difference gives an error rate.

    Raises:
        NumericalError: more than 8192 frequencies would be needed, or quadrature cannot resolve them.
    """
    log_scale = _log_scale(laws, c)
    spacing = 2.0 * np.pi / _window(moments, c, log_scale, low, high, digits)
    decay, last = _decay(laws, c, spacing, digits)
    frequencies = spacing * np.arange(last + 1)
    logs, relative, by_rule = np.zeros(last + 1, dtype=complex), np.zeros(last + 1), np.zeros(last + 1)
    added = len(laws) + max(np.size(count) for _, count in laws)  # roundings of a sum over blocks of kinds
    for law, count in laws:
        part = law.transform(c, frequencies)
        excess = part.excess
        modulus = 0.5 * np.log1p(2.0 * excess.real + excess.real**2 + excess.imag**2)
        logs += over_steps(count, modulus + 1j * np.arctan2(excess.imag, 1.0 + excess.real))
        # |prod (z + e) - prod z| <= prod |z| (exp(sum log(1 + e/|z|)) - 1); log and power cost 8 eps each, and
        # adding up the logarithms of kinds of steps as many as a block has kinds and the composition has blocks.
        shrunk = np.exp(-modulus)
        blur = (8 + added) * EPS * np.abs(np.log1p(excess))
        relative += over_steps(count, np.log1p(part.error * shrunk) + blur)
        by_rule += over_steps(count, np.log1p(part.rule * shrunk))
    values = np.exp(logs.real - logs.real[0]) * np.exp(1j * np.fmod(logs.imag, 2.0 * np.pi))
    errors = np.abs(values) * (np.expm1(np.minimum(relative + relative[0], OVERFLOW)) + 8 * EPS)
    # Where the rule does not resolve the oscillation, the decay bound does: 0 is the value, the bound the error.
    unresolved = np.abs(values) * np.expm1(np.minimum(by_rule + by_rule[0], OVERFLOW))
    unsure = np.flatnonzero(~(relative + relative[0] < _SURE))  # elsewhere the error is below the value, so the bound
    ceiling = np.exp(decay(frequencies[unsure]))
    lost = ~(errors[unsure] <= ceiling)
    drowned = unsure[lost]
    values[drowned], errors[drowned], unresolved[drowned] = 0.0, ceiling[lost], ceiling[lost]
    beyond = np.exp(decay(frequencies[-1:] + 0.5 * spacing))
    scale, rest, start = float(logs.real[0]), float(unresolved.sum()), float(relative[0])
    return Contour(c, scale, spacing, frequencies, values, errors, float(beyond[0]), moments, step, rest, start)


def _log_scale(laws: Laws, c: float) -> float:
    return float(sum(np.sum(count * law.log_scale(c)) for law, count in laws))


def _window(moments: Moments, c: float, log_scale: float, low: float, high: float, target: float) -> float:
    """Least distance of images that puts both neighbours below e^-target of the scale."""
    right, right_logs = moments.right(c, 1.0)
    left, left_logs = moments.left(c, 0.0)
    if len(right) == 0 or len(left) == 0:
        raise NumericalError("characteristic function: no Chernoff exponent beyond the contour")
    upper = np.min((right_logs - log_scale + target) / (right - c)) - low
    lower = np.min((left_logs - log_scale + target) / (c - left)) + high
    return float(max(upper, lower, high - low))


def _decay(laws: Laws, c: float, spacing: float, digits: float) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """(bound on log |M(c + it)| / M(c), last frequency); few steps ask for a closer bound where the cheap one fails."""

    def bound(closely: bool) -> Callable[[np.ndarray], np.ndarray]:
        decays = [(law.decay(c, closely=closely), count) for law, count in laws]
        return lambda t: np.sum([over_steps(count, part.log_bound(t)) for part, count in decays], axis=0)

    cheap = bound(False)
    try:
        return cheap, _last_frequency(cheap, spacing, digits)
    except NumericalError:
        if sum(np.sum(count) for _, count in laws) > _FEW_STEPS:
            raise
    closer = bound(True)
    return closer, _last_frequency(closer, spacing, digits, _FEW_FREQUENCIES)


def _last_frequency(
    decay: Callable[[np.ndarray], np.ndarray], spacing: float, target: float, most: int = _MAX_FREQUENCIES
) -> int:
    """The first frequency past which the certified decay exceeds e^-target."""
    low, high = 4.0, float(most)
    for size in _SCANS:
        grid = np.geomspace(low, high, size)
        enough = decay((np.floor(grid) + 0.5) * spacing) <= -target
        if not enough[-1]:
            raise NumericalError("characteristic function: the loss law is too close to atomic")
        first = int(np.argmax(enough))
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
    return int(high)


def _fourier(spacing: float, coefficients: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Re sum_k coefficient_k e^(-i k spacing l); evenly spaced thresholds cost two small matrix products.

    Without BLAS, whose order of terms depends on the number of threads: where few sampled steps matter, the last digits
    of a certificate would.
    """
    phases = _phases(spacing, len(coefficients), thresholds.tobytes())
    if len(phases) == 1:
        return np.real(np.einsum("lk,k->l", phases[0], coefficients))
    coarse, within = phases
    return np.real(np.einsum("ck,kf->cf", coarse * coefficients, within)).ravel()[: len(thresholds)]


@lru_cache(maxsize=4)  # one block of a curve asks for some seven sums with the same phases
def _phases(spacing: float, frequencies: int, thresholds: bytes) -> tuple[np.ndarray, ...]:
    """e^(-i t l) for few thresholds, and two factors of it for evenly spaced ones."""
    t, places = spacing * np.arange(frequencies), np.frombuffer(thresholds)
    if len(places) < _FEW:
        return (np.exp(-1j * np.multiply.outer(places, t)),)
    fine = int(np.sqrt(len(places)))
    step = (places[-1] - places[0]) / (len(places) - 1)
    coarse = np.exp(-1j * np.multiply.outer(places[::fine], t))
    return coarse, np.exp(-1j * np.multiply.outer(t, step * np.arange(fine)))


def _log(values: np.ndarray) -> np.ndarray:
    """Logarithms; -inf where there is none."""
    return np.log(np.maximum(values, 0.0))


def _shrunk(log_size: np.ndarray, sign: float, exponent: float) -> np.ndarray:
    """sign e^log_size / (e^exponent - 1), where either may overflow."""
    if exponent > 0.0:
        return sign * np.exp(log_size - exponent) / -np.expm1(-exponent)
    return sign * np.exp(log_size) / np.expm1(exponent)


def _ordered(ends: list[tuple[np.ndarray, np.ndarray]], aliases: np.ndarray | float = 0.0) -> Enclosed:
    """The enclosure of all ends, less one-sided aliases; the trivial one where anything overflowed."""
    lower = np.min([value - error for value, error in ends], axis=0) - aliases
    upper = np.max([value + error for value, error in ends], axis=0)
    sound = np.isfinite(lower) & np.isfinite(upper)
    return Enclosed(np.where(sound, lower, 0.0), np.where(sound, upper, 1.0))
