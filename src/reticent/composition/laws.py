"""Loss laws of one step, as transforms: M(lambda) = E_P[(dQ/dP)^lambda] with a bound on every error.

The sampled Gaussian is integrated by the trapezoid rule in the observation x. Bounds, derived in
docs/composition.md: rule (analyticity in a strip), nodes left out (Gaussian tails), rounding; and a bound
on |M(c + it)| / M(c) for all t beyond a given one (layers of a unimodal minorant of the loss density).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from reticent.composition._nodes import (
    Nodes,
    cell_least,
    log_ratio,
    log_tail,
    nodes_of,
    posterior,
    shrink,
    sinc_envelope,
    strips,
)
from reticent.errors import NumericalError

_EPS = 2.0**-52
_LAYER_CELLS = 160
_MAX_NODES = 10_000
_CHUNK = 500_000


class Transform(NamedTuple):
    """M(c + it) - 1 per frequency (complex), and a bound on its absolute error."""

    excess: np.ndarray
    error: np.ndarray


class Law(Protocol):
    """The loss law of one step."""

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        """M(c + it) - 1 at ``frequencies`` t, increasing from 0."""

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        """Upper bounds on log M(c) at real ``exponents`` c; inf where there is none."""

    def log_scale(self, c: float) -> float:
        """log M(c), without a bound: whatever it is, values are divided by it and multiplied again."""

    def moments(self, c: float) -> tuple[float, float]:
        """Mean and variance of the loss under the law tilted by e^(cL): not certified, they only plan."""

    def decay(self, c: float) -> Decay:
        """Bounds on |M(c + it)| / M(c) beyond any frequency."""


class Decay(Protocol):
    """At one real part c."""

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""


@dataclass(frozen=True)
class PlainGaussian:
    """N(0, 1) against N(mu, 1): M(lambda) = exp(lambda (lambda - 1) mu^2 / 2), no error but rounding."""

    mu: float

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        exponents = c + 1j * frequencies
        power = 0.5 * self.mu**2 * exponents * (exponents - 1.0)
        value = np.expm1(power)
        return Transform(value, 8 * _EPS * (np.abs(value) + np.abs(power) * np.exp(power.real)))

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        return 0.5 * self.mu**2 * exponents * (exponents - 1.0) * (1.0 + 8 * _EPS) + 8 * _EPS

    def log_scale(self, c: float) -> float:
        return 0.5 * self.mu**2 * c * (c - 1.0)

    def moments(self, c: float) -> tuple[float, float]:
        return self.mu**2 * (c - 0.5), self.mu**2

    def decay(self, c: float) -> Decay:
        return _NormalDecay(self.mu)


@dataclass(frozen=True, slots=True)
class _NormalDecay:
    mu: float

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        return -0.5 * (self.mu * frequencies) ** 2 * (1.0 - 8 * _EPS)


@dataclass(frozen=True, slots=True)
class _LayeredDecay:
    """A law that contains a mixture of uniforms: each contributes at most the envelope of its sinc."""

    widths: np.ndarray
    weights: np.ndarray

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        parts = _chunks(frequencies, len(self.widths))
        lost = np.concatenate(
            [(1.0 - sinc_envelope(0.5 * np.multiply.outer(t, self.widths))) @ self.weights for t in parts]
        )
        return np.log1p(-np.minimum(lost, 1.0 - 1e-12) * (1.0 - 1e-9))


@dataclass(frozen=True)
class SampledGaussian:
    """One Poisson-sampled Gaussian step, H0 = absent.

    P = N(0, s^2) against (1 - rate) P + rate N(1, s^2); or, ``antipodal``, the two mixtures with means -1
    and +1. Only exponents c >= 1/2 are supported for the antipodal pair, which is symmetric.

    Attributes:
        noise_multiplier: s > 0, in units of the shift.
        rate: in (0, 1).
        antipodal: the pair of the replacement relation.
        count: how often the step runs; the node range follows it.
        reach: largest frequency times loss that the nodes must resolve.
        largest: largest exponent c for which M is wanted.
        digits: what the nodes leave out, and the rule's error, are planned below e^-digits per run.
        angle: the strip that their distance is planned for, in (0, pi); the widest of ``angles`` if None.
        extended: sums over nodes in extended precision, where the platform has it.
        work: nodes times frequencies that a transform may take.
    """

    noise_multiplier: float
    rate: float
    antipodal: bool
    count: int
    reach: float
    largest: float
    digits: float = 42.0
    angle: float | None = None
    extended: bool = False
    work: int = 4_000_000

    @property
    def _real(self) -> type[np.floating]:
        return np.longdouble if self.extended else np.float64

    @cached_property
    def angles(self) -> np.ndarray:
        """The strips on which the rule's error is bounded."""
        return strips(self.noise_multiplier, self.digits + math.log(self.count))

    @cached_property
    def nodes(self) -> Nodes:
        s, tail = self.noise_multiplier, -(self.digits + 1.75 + math.log(self.count))
        z = math.sqrt(-2.0 * tail)
        high, furthest = 1.0 + z * s, max(self.largest, 1.0) + z * s
        if furthest > 1e4 * s:
            raise NumericalError("characteristic function: an exponent is out of reach of the nodes")
        while high < furthest and self.right_tail(self.largest, high) > tail:
            high += max(s, (furthest - high) / 64.0)
        low = -high if self.antipodal else -z * s
        # The rule's error is about exp(reach + (angle s)^2/2 - 2 pi angle s^2/dx).
        angle = float(self.angles[-1]) if self.angle is None else self.angle
        exponent = self.digits + math.log(self.count) + self.reach + 0.5 * (angle * s) ** 2
        dx = min(2.0 * math.pi * angle * s**2 / exponent, 0.55 * s)
        first, last = int(np.floor(low / dx)), int(np.ceil(high / dx))
        if last - first > _MAX_NODES:
            raise NumericalError(f"characteristic function: {last - first} nodes would be needed")
        return nodes_of(self, dx * np.arange(first, last + 1).astype(self._real), dx)

    def right_tail(self, c: float, high: float) -> float:
        """log of a bound on the integrand's mass above ``high``; c >= 1/2 if antipodal.

        With q the mixture ratio, q^c <= (1 - rate) + rate r^c for c outside (0, 1), the same with both
        weights to the power c inside, and q^c <= ((1 + k) rate r)^c with k = (1 - rate) / (rate r(high)).
        """
        s, log_rate, log_rest = self.noise_multiplier, math.log(self.rate), math.log1p(-self.rate)
        power = c if 0.0 < c < 1.0 else 1.0
        bend = 0.5 * c * (c - 1.0) / s**2 + log_tail((high - c) / s)
        flat, steep = power * log_rest + log_tail(high / s), power * log_rate + bend
        split = max(flat, steep) + math.log1p(math.exp(-abs(flat - steep)))
        if c > 1.0:
            excess = math.log1p(math.exp(min(log_rest - log_rate - (high - 0.5) / s**2, 600.0)))
            split = min(split, c * (log_rate + excess) + bend)
        return split + (1.0 - c) * log_rest if self.antipodal and c > 1.0 else split

    def _left_tail(self, c: float, low: float) -> float:
        """log of a bound on the integrand's mass below ``low`` < 0."""
        s = self.noise_multiplier
        if self.antipodal:
            return max(self.right_tail(1.0 - c, -low) if c < 1.0 else -math.inf, log_tail(-low / s))
        if c < 0.0:
            return c * math.log1p(-self.rate) + log_tail(-low / s)
        return log_tail(-low / s)  # the ratio is below 1 there

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        grid = self.nodes
        if len(grid.x) * len(frequencies) > self.work:
            raise NumericalError(f"characteristic function: nodes times frequencies exceed {self.work / 1e6:g} million")
        if c * (grid.loss[-1] if c > 0.0 else grid.loss[0]) > 700.0:
            raise NumericalError("characteristic function: e^(cL) overflows")
        tilted = grid.weight * np.exp(c * grid.loss)
        turn = np.concatenate([_turned(part, grid.loss, tilted) for part in _chunks(frequencies, len(grid.x))])
        excess = (self._excess(c) + turn).astype(complex)
        error = self._error(c, frequencies, tilted) + (8 * _EPS * np.abs(excess) if self.extended else 0.0)
        return Transform(excess, error)

    def _real_excess(self, c: float) -> float:
        return float(self._excess(c))

    def _excess(self, c: float) -> np.floating:
        grid = self.nodes
        return (np.expm1(c * grid.loss) - c * grid.growth) @ grid.weight

    def _error(self, c: float, frequencies: np.ndarray, tilted: np.ndarray) -> np.ndarray:
        grid, at_zero = self.nodes, self._still(c)
        rule = self._strip(c, frequencies) if frequencies[-1] > 0.0 else np.full(len(frequencies), at_zero)
        unit = self._unit
        steady = np.abs(np.expm1(c * grid.loss)) @ grid.blurred + abs(c) * (np.abs(grid.growth) @ grid.blurred)
        turning = (tilted * np.abs(grid.loss)) @ (6.0 + grid.size)
        rounding = 16 * float(np.finfo(self._real).eps) * (steady + frequencies * turning).astype(float)
        return rule + 2.0 * at_zero + (1.0 + abs(c)) * unit + 4.0 * self.left_out(c) + rounding

    @cached_property
    def _unit(self) -> float:
        """Errors of the two identities E_P 1 = 1 and E_P e^L = 1, which the excess subtracts."""
        return self._still(0.0) + self._still(1.0) + self.left_out(0.0) + self.left_out(1.0)

    def _still(self, c: float) -> float:
        """``_strip`` at frequency 0, where the argument plays no part."""
        factor = min(self.strip_factor(c, angle) for angle in self.angles.tolist())
        return factor * float(np.sum(np.exp(np.minimum(self._cell_bounds(c), 700.0))))

    def strip_factor(self, c: float, angle: float) -> float:
        """The trapezoid rule's error at frequency 0 over the sum of cell bounds: strip Im x = angle s^2."""
        s = self.noise_multiplier
        decay = 2.0 * math.pi * angle * s**2 / self.nodes.dx
        logs = 0.5 * (angle * s) ** 2 - decay + math.log(2.0 / -math.expm1(-decay))
        logs += shrink(c, angle) + (shrink(1.0 - c, angle) if self.antipodal else 0.0)
        return math.exp(min(logs, 700.0))

    def _strip(self, c: float, frequencies: np.ndarray) -> np.ndarray:
        """Bound on the trapezoid rule's error at each frequency, the best of a few strips.

        |integrand| on the line Im x = angle s^2 is at most its modulus on the real line times
        e^((angle s)^2/2 + t arg); arg increases with x, so right ends of cells bound it. The bound grows
        with t, so it is evaluated at few frequencies and rounded up to the next.
        """
        grid = self.nodes
        last = len(frequencies) - 1
        places = np.concatenate([np.geomspace(1, max(last, 1), 12), np.linspace(0, last, 7)]).round().astype(int)
        marks = np.unique(frequencies[np.minimum(places, last)])
        best = np.full(len(marks), np.inf)
        cells = self._cell_bounds(c)
        for angle in self.angles[1:]:
            decay = 2.0 * np.pi * angle * self.noise_multiplier**2 / grid.dx
            if decay < 1.0:
                continue
            log_factor = 0.5 * (angle * self.noise_multiplier) ** 2 - decay + np.log(2.0 / -np.expm1(-decay))
            log_factor += shrink(c, angle) + (shrink(1.0 - c, angle) if self.antipodal else 0.0)
            turn = grid.argument(angle)
            exponents = np.multiply.outer(marks, turn) + cells + log_factor
            best = np.minimum(best, np.sum(np.exp(np.minimum(exponents, 700.0)), axis=1))
            best = np.where(np.max(exponents, axis=1) > 690.0, np.inf, best)
        return best[np.searchsorted(marks, frequencies)]

    def _cell_bounds(self, c: float) -> np.ndarray:
        """log of bounds on the integral of |integrand| over each cell between nodes, and over both tails."""
        grid = self.nodes
        power = c * grid.mixture
        inner = grid.peaks + np.maximum(power[:-1], power[1:])
        if grid.mirrored is not None:
            power = (1.0 - c) * grid.mirrored
            inner += np.maximum(power[:-1], power[1:])
        outer = math.log(max(self.left_out(c), 1e-300))
        return np.concatenate([[outer], inner, [outer]])

    def left_out(self, c: float) -> float:
        """Bound on the sum (and integral) of the integrand outside the nodes."""
        x = self.nodes.x
        tails = self._left_tail(c, float(x[0])), self.right_tail(c, float(x[-1]))
        return sum(math.exp(min(tail, 700.0)) for tail in tails)

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        result, grid = np.full(len(exponents), np.inf), self.nodes
        for k, c in enumerate(exponents):
            if c * (grid.loss[-1] if c > 0.0 else grid.loss[0]) <= 700.0:
                bound = self._real_excess(c) + float(self._error(c, np.zeros(1), grid.weight)[0])
                result[k] = math.log1p(bound) if bound < 1e280 else np.inf
        return result

    def log_scale(self, c: float) -> float:
        return math.log1p(self._real_excess(c))

    def moments(self, c: float) -> tuple[float, float]:
        grid = self.nodes
        tilted = grid.weight * np.exp(np.minimum(c * grid.loss, 700.0))
        total = tilted.sum()
        mean = float(np.sum(tilted * grid.loss) / total)
        return mean, float(np.sum(tilted * (grid.loss - mean) ** 2) / total)

    def decay(self, c: float) -> Decay:
        grid = self.nodes
        norm = np.log1p(self._real_excess(c) + self._error(c, np.zeros(1), grid.weight)[0])
        return layered_decay(self, c, float(norm), np.linspace(grid.x[0], grid.x[-1], _LAYER_CELLS + 1))


def layered_decay(law: SampledGaussian, c: float, log_norm: float, x: np.ndarray) -> Decay:
    """Bounds on |M(c + it)| / M(c) from the cells between ``x``; ``log_norm`` bounds log M(c) from above.

    The density below the first and above the last of ``x`` is bounded by 0.
    """
    widths = np.diff(log_ratio(law, x)[0])
    slope = posterior(law, x)
    steepest = slope[1:] + (posterior(law, -x)[:-1] if law.antipodal else 0.0)
    density = np.exp(cell_least(law, x, c) - log_norm + 2 * math.log(law.noise_multiplier)) / steepest
    top = int(np.argmax(density))
    left = np.minimum.accumulate(density[: top + 1][::-1])[::-1]
    right = np.minimum.accumulate(density[top:])[1:]
    minorant = np.concatenate([left, right])
    order = np.argsort(-minorant, kind="stable")
    heights, spans = minorant[order], np.cumsum(widths[order])
    return _LayeredDecay(spans, (heights - np.append(heights[1:], 0.0)) * spans)


def _chunks(frequencies: np.ndarray, nodes: int) -> list[np.ndarray]:
    return np.array_split(frequencies, max(1, len(frequencies) * nodes // _CHUNK))


def _turned(frequencies: np.ndarray, losses: np.ndarray, tilted: np.ndarray) -> np.ndarray:
    """Sum of tilted weights times e^(itL) - 1, by half angles so that small losses keep their digits."""
    half = 0.5 * np.multiply.outer(frequencies, losses)
    sine = np.sin(half)
    return (-2.0 * sine**2) @ tilted + 1j * ((2.0 * sine * np.cos(half)) @ tilted)
