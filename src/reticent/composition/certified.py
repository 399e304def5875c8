"""The certified advantage alone: threshold 0 on the line c = 1/2, every term of the certificate in few array calls.

Same terms as ``laws`` and ``spectrum`` (docs/composition.md), specialised: all real exponents that the
certificate needs go through the nodes together, one strip serves the quadrature, and the decay bound is asked
at the last frequency only. It gives up, with NumericalError, where one of these is not enough;
``compose`` then answers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent.composition._nodes import Nodes, argument, argument_reach, strips
from reticent.composition.laws import SampledGaussian, layered_decay
from reticent.errors import NumericalError

_EPS = 2.0**-52
_DIGITS = 23.0  # aliases, truncation and the quadrature rule each aim at e^-23
_NODE_DIGITS = 28.0
_MARKS = 9
_NO_MATTER = 1e-13  # of the rule, over all steps
_FAR = (8.0, 30.0)  # where the right tail is cut, in standard deviations past the nodes
_CELLS = 160
_MOST_FREQUENCIES = 2048
_MOST_WORK = 1_000_000


class _Real(NamedTuple):
    """Moments at real exponents: E_P[e^(cL)] - 1, bounds on its error, and parts of that at c = 1/2.

    Attributes:
        excess, error: per exponent.
        cells: bounds on the integral of the integrand at c = 1/2 over the cells of ``_arguments``.
        tilted: weights times e^(L/2).
        still: error bound of the transform at c = 1/2, but for the rule, rounding at t = 0 included.
    """

    excess: np.ndarray
    error: np.ndarray
    cells: np.ndarray
    tilted: np.ndarray
    still: float


@np.errstate(all="ignore")  # what overflows is refused, or loses to a bound that does not
def enclose_advantage(noise: float, rate: float, steps: int, antipodal: bool, room: float = 1.0) -> tuple[float, float]:
    """(lower, upper) around delta(0) of a Poisson-sampled Gaussian, composed.

    Args:
        noise: > 0, in units of the shift.
        rate: in (0, 1).
        steps: how often.
        antipodal: the pair of the replacement relation.
        room: widens what the nodes are planned for; above 1 slower, and right where 1 is too tight.

    Raises:
        NumericalError: where this lean certificate does not apply.
    """
    if noise < 0.05:
        raise NumericalError("certified advantage: too little noise")
    variance = steps * _variance(noise, rate, antipodal)
    spread = math.sqrt(variance)
    if not 0.0 < spread < 60.0:
        raise NumericalError("certified advantage: the losses are too small or too large")
    linear = 0.5 / noise**2 - math.log(rate)
    bump = noise**2 * (linear + math.sqrt(linear**2 + 2.0 / noise**2 * max(30.0 - math.log(steps), 1.0)))
    furthest = min(9.0 / spread, bump)
    right = [max(0.5 + share * furthest, 1.1) for share in (0.45, 0.8)]
    exponents = [0.5, *right] if antipodal else [0.5, *right, 0.5 - 0.75 * max(9.0 / spread, 1.2)]
    angle, reach = _strip(noise, rate, steps, antipodal, variance)
    law = SampledGaussian(noise, rate, antipodal, steps, reach * room, right[-1], _NODE_DIGITS * room, angle)
    real = _real(law, exponents)
    logs = steps * np.log1p(real.excess[1:] + real.error[1:])
    log_scale = steps * math.log1p(real.excess[0])
    gaps = np.abs(np.array(exponents[1:]) - 0.5)
    needed = (logs - log_scale + _DIGITS) / gaps
    window = float(np.min(needed[:2]) if antipodal else max(np.min(needed[:2]), needed[2]))
    if not 0.0 < window < 1e6:
        raise NumericalError("certified advantage: no Chernoff bound")
    aliases = np.exp(logs - gaps * window) / -np.expm1(-gaps * window)
    alias = 2.0 * float(np.min(aliases[:2])) if antipodal else float(np.min(aliases[:2]) + aliases[2])
    total, error = _sum(law, real, 2.0 * math.pi / window, 6.8 / spread)
    known = 2.0 / math.expm1(0.5 * window) if window < 1000.0 else 0.0
    scale = math.exp(log_scale)
    value, slack = 1.0 + known + scale * total, scale * error + 16 * _EPS * (1.0 + known)
    if not math.isfinite(value + slack + alias):
        raise NumericalError("certified advantage: overflow")
    return max(value - slack - alias, 0.0), min(value + slack, 1.0)


def _variance(noise: float, rate: float, antipodal: bool) -> float:
    """E[L^2] of one step under sqrt(PQ), roughly: it only plans."""
    low = -(6.8 + 1.0 / noise) if antipodal else -6.8
    count = max(32, int(8.0 / noise))
    x = noise * (low + (6.8 + 1.0 / noise - low) / count * np.arange(count + 1))
    forth = np.log1p(rate * np.expm1(np.minimum((x - 0.5) / noise**2, 600.0)))
    back = np.log1p(rate * np.expm1(np.minimum((-x - 0.5) / noise**2, 600.0))) if antipodal else 0.0
    weight = np.exp(-0.5 * (x / noise) ** 2 + 0.5 * (forth + back)) * ((x[1] - x[0]) / (noise * 2.5066282746310002))
    return float(weight @ (forth - back) ** 2)


def _strip(noise: float, rate: float, steps: int, antipodal: bool, variance: float) -> tuple[float, float]:
    """(angle, reach) of the strip that allows the widest spacing of nodes: wide strips see more oscillation."""
    best = (0.0, 0.0, 0.0)
    angles = strips(noise, _NODE_DIGITS + math.log(steps))
    reaches = argument_reach(noise, rate, antipodal, variance, angles)
    for angle, reach in zip(angles.tolist(), reaches.tolist(), strict=True):
        exponent = _NODE_DIGITS + math.log(steps) + reach + 0.5 * (angle * noise) ** 2
        best = max(best, (angle / exponent, angle, reach))
    return best[1], best[2]


def _real(law: SampledGaussian, exponents: list[float]) -> _Real:
    """The first exponent is 1/2; 0 and 1 are added for the identities that the excess subtracts."""
    grid = law.nodes
    powers = np.array([*exponents, 0.0, 1.0])
    if max(float(np.max(powers)) * grid.loss[-1], float(np.min(powers)) * grid.loss[0]) > 600.0:
        raise NumericalError("certified advantage: e^(cL) overflows")
    grown = np.expm1(powers[:, None] * grid.loss)
    excess = grown @ grid.weight - powers * (grid.growth @ grid.weight)
    outside = np.array([law.left_out(c) for c in powers.tolist()])
    cells = np.exp(_cells(grid, powers))
    # The rule at frequency 0, on the best strip; then the two identities, the nodes left out, and rounding.
    rule = _strip_factors(law, powers) * (cells.sum(axis=1) + 2.0 * outside)
    unit = float(np.sum(rule[-2:] + outside[-2:]))
    steady = np.abs(grown) @ grid.blurred + np.abs(powers) * (np.abs(grid.growth) @ grid.blurred)
    rest = 2.0 * rule + (1.0 + np.abs(powers)) * unit + 4.0 * outside + 16 * _EPS * steady
    error = (rest + rule)[:-2]
    if not (np.all(np.isfinite(error)) and np.all(excess[:-2] + error > -1.0)):
        raise NumericalError("certified advantage: moments out of reach")
    far = [law.right_tail(0.5, float(grid.x[-1]) + k * law.noise_multiplier) for k in _FAR]
    ends = (2.0 if law.antipodal else 1.0) * np.exp(far)
    near = [] if law.antipodal else [outside[0]]
    first = np.concatenate([near, cells[0], [outside[0]], ends])
    return _Real(excess[:-2], error, first, grid.weight * (1.0 + grown[0]), float(rest[0]))


def _strip_factors(law: SampledGaussian, powers: np.ndarray) -> np.ndarray:
    """``law.strip_factor`` of the best strip, per exponent."""
    decay = (2.0 * math.pi * law.noise_multiplier**2 / law.nodes.dx) * law.angles
    logs = 0.5 * (law.angles * law.noise_multiplier) ** 2 - decay + np.log(2.0 / -np.expm1(-decay))
    negative = np.minimum(powers, 0.0) + (np.minimum(1.0 - powers, 0.0) if law.antipodal else 0.0)
    return np.exp(np.min(logs + negative[:, None] * np.log(np.cos(0.5 * law.angles)), axis=1))


def _cells(grid: Nodes, powers: np.ndarray) -> np.ndarray:
    """log of bounds on the integral of |integrand| over each cell, per exponent: each factor is monotone."""
    power = powers[:, None] * grid.mixture
    inner = grid.peaks + np.maximum(power[:, :-1], power[:, 1:])
    if grid.mirrored is not None:
        power = (1.0 - powers[:, None]) * grid.mirrored
        inner += np.maximum(power[:, :-1], power[:, 1:])
    return inner


def _sum(law: SampledGaussian, real: _Real, spacing: float, last: float) -> tuple[float, float]:
    """The trapezoid sum over frequencies in units of M(1/2)^steps, and a bound on its error."""
    steps, grid = law.count, law.nodes
    # The variance of the losses comes from around the observation 2.
    high = min(2.0 + 4.5 * law.noise_multiplier, float(grid.x[-1]))
    x = np.linspace(-high if law.antipodal else -4.5 * law.noise_multiplier, high, _CELLS + 1)
    decay = layered_decay(law, 0.5, math.log1p(real.excess[0] + real.error[0]), x)
    count = int(last / spacing) + 2
    while True:
        beyond = steps * decay.log_bound(np.array([(count - 0.5) * spacing]))[0]
        if beyond < -_DIGITS:
            break
        # The decay is about quadratic where it matters: aim, and no more than double.
        count = int(count * min(max(1.06 * math.sqrt(-_DIGITS / min(beyond, -1e-3)), 1.04), 2.0)) + 1
        if count > _MOST_FREQUENCIES or count * len(grid.x) > _MOST_WORK:
            raise NumericalError("certified advantage: the loss law is too close to atomic")
    t = spacing * np.arange(count)
    half = np.multiply.outer(t, 0.5 * grid.loss)
    sine = np.sin(half)
    excess = real.excess[0] - 2.0 * (sine * sine) @ real.tilted
    size = excess * (2.0 + excess)
    if grid.mirrored is None:
        imaginary = 2.0 * (sine * np.cos(half)) @ real.tilted
        size, phase = size + imaginary * imaginary, steps * np.arctan2(imaginary, 1.0 + excess)
    else:
        imaginary, phase = np.zeros(count), np.where(excess < -1.0, math.pi * (steps % 2), 0.0)
    modulus = np.where(size < -0.5, np.log(np.hypot(1.0 + excess, imaginary)), 0.5 * np.log1p(size))
    turning = float((real.tilted * np.abs(grid.loss)) @ (6.0 + grid.size))
    off = _rule(law, real, t) + real.still + 16 * _EPS * t * turning
    # |prod (z + e) - prod z| <= prod |z| (exp(sum log(1 + e/|z|)) - 1); log and power cost 8 eps each.
    logarithm = np.abs(modulus) + np.abs(phase) / steps
    relative = steps * (np.log1p(off * np.exp(-modulus)) + 8 * _EPS * logarithm)
    absolute = np.exp(steps * (modulus - modulus[0]))
    kernel = spacing / math.pi / (t * t + 0.25)
    kernel[0] *= 0.5
    errors = absolute * (np.expm1(np.minimum(relative + relative[0], 700.0)) + 72.0 * _EPS)
    drowned = ~(errors < 1e-11)
    if np.any(drowned):  # where the rule does not resolve the oscillation, the decay bounds the truth
        ceiling = np.exp(steps * decay.log_bound(t[drowned]))
        errors[drowned] = np.fmin(ceiling + absolute[drowned], errors[drowned])
    error = 1.000001 * float(kernel @ errors) + 1.000001 * math.exp(beyond) / (math.pi * spacing * (count - 1))
    return -float((kernel * absolute) @ np.cos(phase)), error


def _rule(law: SampledGaussian, real: _Real, frequencies: np.ndarray) -> np.ndarray:
    """Bound on the trapezoid rule's error in x; it grows with the frequency, so a few are rounded up."""
    places = np.linspace(0, len(frequencies) - 1, _MARKS).astype(int)
    marks, bounds = frequencies[places], np.full(_MARKS, np.inf)
    for angle in (law.angle or float(law.angles[-1]), float(law.angles[0])):
        turned = np.exp(np.multiply.outer(marks, _arguments(law, angle))) @ real.cells
        bounds = np.fmin(bounds, law.strip_factor(0.5, angle) * turned)
        if bounds[-1] * law.count < _NO_MATTER:
            break
    return bounds[np.searchsorted(places, np.arange(len(frequencies)))]


def _arguments(law: SampledGaussian, angle: float) -> np.ndarray:
    """Bounds on |arg dQ/dP| on the line Im x = angle s^2: left tail, cells, right tail in three pieces.

    The argument reaches ``angle`` far out only, so the tail is cut at ``_FAR``. For the antipodal pair both
    tails count with the right one's pieces, as it is symmetric.
    """
    grid, s = law.nodes, law.noise_multiplier
    ends = grid.x[-1] + s * np.array(_FAR)
    odds = np.exp(np.minimum(math.log(law.rate) - math.log1p(-law.rate) + (ends - 0.5) / s**2, 600.0))
    far = np.append(argument(odds, angle), angle)
    inner = grid.argument(angle)
    if grid.mirrored_odds is None:
        return np.concatenate([inner[:-1], far])
    return np.concatenate([inner[1:-1], far + argument(grid.mirrored_odds[-1:], angle)])
