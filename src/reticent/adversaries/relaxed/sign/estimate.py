"""delta of the common sign in milliseconds, without a certificate: it steers searches, and is drawn until the proof.

The double integral of ``transform``, where nothing has to be bounded. So the line lies as far out as rounding allows,
and frequencies and nodes are those that an error of delta of about 1e-10 asks for, blur aside. Trapezoid sums equal the
payoff summed over copies of (A, B), which are moved by multiples of two periods. A copy up in B is damped by
e^(line * period), so the period is the exponent over the line. Copies down in B and copies in A count only where the
loss is far out, which a Chernoff bound says is rare.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reticent.adversaries.relaxed.sign.kernel import GammaTable, Turning, commensurate, log_cosh_variance
from reticent.adversaries.relaxed.sign.noise import GaussianSign, Kinds
from reticent.adversaries.relaxed.sign.step import FoldedNodes
from reticent.curves._logs import EPS, TINY, log_of
from reticent.errors import NumericalError
from reticent.stopping import checkpoint

_ERROR = 26.0  # -log of the error of delta that is aimed at
_DIGITS = 39.0  # -log of what doubles leave
_LOG_TINY = math.log(1e-10)  # delta at the last threshold
_MAGNITUDE = 3.0, 9.0  # log of the largest term over the result: least and most
_MOST_NODES, _MOST_WORK = 40_000, 6e8  # of one law; of all laws, times pairs of frequencies: about half a second
_BLOCK = 400_000  # frequencies, or phases, at once
_ROUGH = 0.05  # spacing of nodes for real moments
_EXPONENTS = np.geomspace(1e-3, 1e3, 61)  # of Chernoff bounds, over the deviation of A
_LINES = np.geomspace(1e-3, 1e4, 141)  # that are tried, in the same units
_FURTHER = np.array([1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0])  # exponents of copies down in B, over the line
_LARGEST = 300.0  # loss up to which cosh is a number
_LOOKED = 0.03, 0.2, 1.0  # shares of the blur's reach in which the decay is looked for, one after the other
_NEAREST, _PLACES = 4e-3, 80  # the first place there, as a share, and how many
_WIDEST, _OF_SLOPE, _TURNED = 0.25, 0.4, 20.0  # nodes: spacing; times the slope; rate of phase kept free of aliases
_SEEN = 1e-14  # share of a node's mass that matters


@dataclass(frozen=True, slots=True)
class _Sketch:
    """All steps on rough nodes, and what blurs the sums: variances ``blur_a`` and ``blur_b``."""

    kinds: Kinds
    nodes: list[FoldedNodes]
    scale: float
    blur_a: float
    blur_b: float

    @classmethod
    def of(cls, kinds: Kinds, blur: float) -> _Sketch:
        nodes = [FoldedNodes.of(step, _ROUGH) for step, _ in kinds]
        each = [(steps, one) for (_, steps), one in zip(kinds, nodes, strict=True)]
        scale = math.sqrt(sum(steps * one.square() for steps, one in each))
        spread = sum(steps * float(one.weight @ (one.b - one.weight @ one.b) ** 2) for steps, one in each)
        return cls(kinds, nodes, scale, (blur * scale) ** 2, blur**2 * (spread + log_cosh_variance(scale)))

    def blurred(self, s: np.ndarray) -> np.ndarray:
        """log E e^{s (blur of B)}, where E e^{blur of B} cosh(blur of A) = 1."""
        blurred: np.ndarray = 0.5 * self.blur_b * s * s - 0.5 * (self.blur_a + self.blur_b) * s
        return blurred

    def cumulant(self, s: np.ndarray, w: np.ndarray) -> np.ndarray:
        """log E e^{s B + w A} after all steps under "absent", real arguments of one shape (n,)."""
        total = self.blurred(s) + 0.5 * self.blur_a * w * w
        for (_, steps), nodes in zip(self.kinds, self.nodes, strict=True):
            size = np.abs(np.outer(w, nodes.a))
            logs = np.outer(s, nodes.b) + size + log_of(nodes.weight)
            top = logs.max(axis=1)
            terms = np.exp(logs - top[:, None]) * (0.5 + 0.5 * np.exp(-2.0 * size))
            total = total + steps * (top + np.log(terms.sum(axis=1)))
        return total

    def steepness(self, nodes: FoldedNodes, line: float) -> tuple[float, float]:
        """Largest slopes of b and of a along the observation, where it matters on the line."""
        seen = _tilted(nodes, line) > _SEEN
        b, a = (float(np.abs(np.gradient(loss, _ROUGH))[seen].max()) for loss in (nodes.b, nodes.a))
        return b, a


class _Plan(NamedTuple):
    """Line c < 0, last threshold, and grids: frequencies j dtau of B and k dw of A, ``box`` their ends."""

    line: float
    high: float
    dtau: float
    dw: float
    box: tuple[float, float]

    @property
    def size(self) -> tuple[int, int]:
        """How many frequencies of B, and of A."""
        return math.ceil(self.box[0] / self.dtau) + 1, math.ceil(self.box[1] / self.dw) + 1


def estimate(kinds: Kinds, blur: float, most: int) -> Callable[[np.ndarray], np.ndarray]:
    """delta(epsilon >= 0) of the add direction without any certificate: for steering and drawing, never for claims.

    Args:
        kinds: sampled steps, with one record.
        blur: standard deviation of the blur relative to those of A and of the log likelihood ratio.
        most: pairs of frequencies that may be summed; a million takes about a tenth of a second.

    Raises:
        NumericalError: more are needed; a larger ``blur`` needs fewer.
    """
    sketch = _Sketch.of(kinds, blur)
    plan = _plan(sketch)
    taus, omegas = plan.size
    if not taus * omegas <= most:
        raise NumericalError(f"common-sign estimate: {taus} x {omegas} frequencies would be needed")
    weights = _weights(sketch, plan)
    turning = Turning.of(plan.dtau, weights)

    def delta(epsilon: np.ndarray) -> np.ndarray:
        epsilon = np.minimum(epsilon, plan.high)  # beyond, nothing is known
        put = np.exp((1.0 - plan.line) * epsilon) * turning.sums(epsilon)
        return 1.0 - np.exp(epsilon) + put

    return delta


def _weights(sketch: _Sketch, plan: _Plan) -> np.ndarray:
    """What each point of the line adds to the payoff at threshold 0: its transform in A, over s (s - 1)."""
    taus, omegas = plan.size
    s, w = plan.line + 1j * plan.dtau * np.arange(taus), plan.dw * np.arange(omegas)
    gamma, sums = GammaTable(s, plan.dtau, plan.dw, omegas), np.empty(taus, dtype=complex)
    laws = [
        (steps, _fine(step, plan.box, sketch.steepness(nodes, plan.line)))
        for (step, steps), nodes in zip(sketch.kinds, sketch.nodes, strict=True)
    ]
    count = sum(len(nodes.b) for _, nodes in laws)
    if not count * taus * omegas <= _MOST_WORK:
        raise NumericalError(f"common-sign estimate: {count} nodes for {taus} x {omegas} frequencies would be needed")
    block = max(1, _BLOCK // max(omegas, count))
    for start in range(0, taus, block):
        checkpoint()
        part = slice(start, min(start + block, taus))
        logs = gamma.log_kernel(part) + sketch.blurred(s[part])[:, None] - 0.5 * sketch.blur_a * w * w
        for steps, nodes in laws:
            logs += steps * _log_transform(nodes, s[part], w)
        terms = np.exp(logs)
        sums[part] = terms.sum(axis=1) - 0.5 * terms[:, 0]
    weights = sums / (s * (s - 1.0)) * (plan.dw * plan.dtau / math.pi**2)
    weights[0] *= 0.5
    return weights


def _plan(sketch: _Sketch) -> _Plan:
    exponents = _EXPONENTS / sketch.scale
    none = np.zeros_like(exponents)
    high = max(float(np.min((sketch.cumulant(1.0 + exponents, 1.0 + exponents) - _LOG_TINY) / exponents)), 0.0)
    error = min(_ERROR + high, _DIGITS)
    low = max(float(np.min((sketch.cumulant(-exponents, none) + error) / exponents)), 0.0)
    reach = float(np.min((sketch.cumulant(none, exponents) + error) / exponents))
    if not math.isfinite(high + low + reach):
        raise NumericalError("common-sign estimate: no Chernoff bound")
    magnitude = min(max(_MAGNITUDE[1] - high, _MAGNITUDE[0]), _MAGNITUDE[1])
    line = _furthest_line(sketch, high, magnitude)
    down = line * _FURTHER
    beyond = (sketch.cumulant(-down, np.zeros_like(down)) + down * high + error) / (down - line)
    period = max(error / line, float(np.min(beyond)))
    most = high + low  # A matters while log cosh A is below it
    width = (math.acosh(math.exp(most)) if most < _LARGEST else most + math.log(2.0)) + reach
    dtau, dw = commensurate(2.0 * math.pi / period, 2.0 * math.pi / width)
    box = _decay(sketch, -line, error + magnitude, 0), _decay(sketch, -line, error + magnitude, 1)
    return _Plan(-line, high, dtau, dw, box)


def _furthest_line(sketch: _Sketch, high: float, magnitude: float) -> float:
    """-c of the line on which no term is above e^magnitude times the result at the last threshold."""
    lines = _LINES / sketch.scale
    fits = sketch.cumulant(-lines, np.zeros_like(lines)) + lines * high < magnitude
    if not fits.any():
        raise NumericalError("common-sign estimate: no line")
    return float(lines[fits][-1])


def _decay(sketch: _Sketch, line: float, exponent: float, axis: int) -> float:
    """The frequency of B (axis 0) or of A (1) from which on the transform is below e^-exponent, from samples."""
    end = math.sqrt(2.0 * exponent / (sketch.blur_b, sketch.blur_a)[axis])
    places = end * np.ones(1)
    last = 0
    for share in _LOOKED:
        checkpoint()
        places = np.geomspace(_NEAREST, 1.0, _PLACES) * share * end
        logs = -exponent * (places / end) ** 2
        box = (float(places[-1]), 0.0) if axis == 0 else (0.0, float(places[-1]))
        for (step, steps), rough in zip(sketch.kinds, sketch.nodes, strict=True):
            nodes = _fine(step, box, sketch.steepness(rough, line))
            mass, phase = _tilted(nodes, line), np.outer(places, (nodes.b, nodes.a)[axis])
            turned = np.cos(phase) @ mass + (1j * (np.sin(phase) @ mass) if axis == 0 else 0.0)
            logs = logs + steps * np.log(np.maximum(np.abs(turned), TINY))
        above = np.flatnonzero(logs > -exponent)
        last = int(above[-1]) + 1 if len(above) else 0
        if last < _PLACES:
            break
    return float(places[min(last, _PLACES - 1)])


def _tilted(nodes: FoldedNodes, line: float) -> np.ndarray:
    """Masses under e^{line b} times "absent"."""
    mass = nodes.weight * np.exp(line * nodes.b)
    return mass / mass.sum()


def _fine(step: GaussianSign, box: tuple[float, float], steepness: tuple[float, float]) -> FoldedNodes:
    """Nodes between which no phase of the box turns too far."""
    rate = box[0] * steepness[0] + box[1] * steepness[1] + _TURNED
    nodes = FoldedNodes.of(step, min(_WIDEST, _OF_SLOPE / step.slope, 2.0 * math.pi / rate))
    if len(nodes.b) > _MOST_NODES:
        raise NumericalError(f"common-sign estimate: {len(nodes.b)} nodes would be needed")
    return nodes


def _log_transform(nodes: FoldedNodes, s: np.ndarray, w: np.ndarray) -> np.ndarray:
    """log phi of one step, rows ``s``, evenly spaced: of 1 plus what is small, so that many steps keep digits."""
    fine = math.isqrt(len(s) - 1) + 1
    small, large = (np.expm1(np.outer(each, nodes.b)) for each in (s[:fine] - s[0], s[::fine]))
    growth = (small * (1.0 + large[:, None]) + large[:, None]).reshape(-1, len(nodes.b))[: len(s)] * nodes.weight
    angle = np.outer(nodes.a, w)
    cosines, missing = np.cos(angle), nodes.weight @ (2.0 * np.sin(0.5 * angle) ** 2)
    x, y = growth.real @ cosines - missing, growth.imag @ cosines
    log_size = 0.5 * np.log1p(np.maximum(x * (2.0 + x) + y * y, EPS - 1.0))
    return np.asarray(log_size + 1j * np.arctan2(y, 1.0 + x))
