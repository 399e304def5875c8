"""Powers of measures on a grid by FFT, with a bound on rounding; and what falls outside a window."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.kernel.curves._logs import EPS, OVERFLOW
from reticent.kernel.stopping import checkpoint

_SHORTER, _SHORTEST = 0.3, 0.03  # shares of the planned exponent that are tried after it
_OF_LARGEST = 0.1  # the cap on the second, over that on the first
_BLOCK = 2**14  # frequencies at once
_LEAST = 1e-304  # instead of a transform that is 0
_NEGLIGIBLE = -32.0  # log of a mass outside the window that no smaller exponent is tried for


@dataclass(frozen=True, slots=True)
class GridStep:
    """One kind of step on the grid: where its masses lie, and how often it runs.

    Attributes:
        index: grid points, integers: an array for each axis of the grid.
        weights: masses >= 0, not necessarily 1 in total.
        exponents: size of the exponent behind each weight: its relative error is (2 + exponent) eps.
        count: how many independent copies are added.
    """

    index: tuple[np.ndarray, ...]
    weights: np.ndarray
    exponents: np.ndarray
    count: int


def power(parts: Sequence[GridStep], shape: tuple[int, ...], first: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """(masses of the sum on a grid from ``first``, cyclic along each axis, flat; bound on the sum of their errors).

    Each measure is written as its largest mass times 1 + (the transform of the rest over it), moved to
    index 0: what is nearly an atom then costs no rounding. Errors are bounded per frequency and summed in
    squares (Parseval): over N points at most sqrt(N) times their root mean square.

    Args:
        parts: kinds of steps.
        shape: points of the grid along each axis.
        first: index of its first point along each axis.
    """
    checkpoint()
    points, axes = math.prod(shape), tuple(range(len(shape)))
    half = *shape[:-1], shape[-1] // 2 + 1
    log_size, phase, relative = np.zeros((3, math.prod(half)))
    peak, scaling, log_scale = -np.array(first), 0.0, 0.0
    fft_error = 8 * EPS * np.log2(points)
    for part in parts:
        weights, exponents, count = part.weights, part.exponents, part.count
        top = int(np.argmax(weights))
        rest = weights / weights[top]
        rest[top] = 0.0
        place = np.ravel_multi_index([axis - axis[top] for axis in part.index], shape, mode="wrap")
        image = np.fft.rfftn(np.bincount(place, rest, minlength=points).reshape(shape)).ravel()
        whole = float(_logarithm(image[:1])[0][0])
        error = fft_error * rest.sum() + 4 * EPS * float(rest @ (2.0 + exponents + exponents[top]))
        for block in _blocks(image):
            own_size, own_phase, inverse = _logarithm(image[block])
            log_size[block] += count * (own_size - whole)
            phase[block] += _reduced(own_phase, count)
            logarithm = np.abs(own_size) + whole + np.abs(own_phase)
            relative[block] += count * (np.log1p(error * inverse) + 4 * EPS * logarithm)
        log_scale += count * (np.log(weights[top]) + whole)
        scaling += 4 * EPS * count * (2.0 + exponents[top] + abs(np.log(weights[top])) + whole)
        peak += count * np.array([axis[top] for axis in part.index])
    checkpoint()
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes the rounding infinite, or none at all
        squares, scale, turned = 0.0, np.exp(log_scale), np.empty(len(phase), dtype=complex)
        for block in _blocks(turned):
            size = np.exp(log_size[block])
            turned.real[block], turned.imag[block] = size * np.cos(phase[block]), size * np.sin(phase[block])
            # |prod(z + e) - prod z| <= prod |z| (prod (1 + e/|z|) - 1), frequency by frequency; then back.
            spread = size * (np.expm1(np.minimum(relative[block], OVERFLOW)) + 2.0 * fft_error)
            squares += float(spread @ spread)
        mass = np.fft.irfftn(turned.reshape(half), shape, axes) * scale
        rounding = scale * (np.sqrt(2.0 * squares) + np.expm1(scaling))
    return np.maximum(np.roll(mass, peak % shape, axes), 0.0).ravel(), float(rounding)


def _blocks(values: np.ndarray) -> Iterator[slice]:
    """Parts that the cache of a processor holds."""
    return (slice(start, start + _BLOCK) for start in range(0, len(values), _BLOCK))


def _reduced(phase: np.ndarray, count: int) -> np.ndarray:
    """``count`` phases, less whole turns: three roundings of the product, as a remainder takes ten times as long."""
    turns = phase * (count / (2.0 * math.pi))
    turns -= np.rint(turns)
    return turns * (2.0 * math.pi)


def _logarithm(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log |1 + z|, arg(1 + z) and 1 / |1 + z|, accurate for small z as well; sizes are at least e^-700."""
    real, imaginary = image.real.copy(), image.imag.copy()
    square = real * (2.0 + real) + imaginary * imaginary
    near = square < -0.5
    square[near] = 0.0
    size, inverse = 0.5 * np.log1p(square), 1.0 / np.sqrt(1.0 + square)
    if np.any(near):
        exact = np.maximum(np.hypot(1.0 + real[near], imaginary[near]), _LEAST)
        size[near], inverse[near] = np.log(exact), 1.0 / exact
    return size, np.arctan2(imaginary, 1.0 + real), inverse


def window_end(logs: np.ndarray, exponents: np.ndarray, tail: float) -> tuple[float, float]:
    """(smallest y with P(S > y) <= ``tail`` by Chernoff, the exponent that shows it); infinite y where none does.

    Args:
        logs: log E e^(cS) at ``exponents`` c > 0; what is not a number is not a bound.
        exponents: of the same shape, (n,).
        tail: in (0, 1).
    """
    ends = (logs - np.log(tail)) / exponents
    ends[np.isnan(ends)] = np.inf
    best = int(np.argmin(ends))
    return float(ends[best]), float(exponents[best])


@dataclass(frozen=True, slots=True)
class Tilted:
    """One kind of step as its losses.

    Attributes:
        losses: increasing, shape (n,).
        weights: their masses, >= 0.
        count: how many independent copies are added.
    """

    losses: np.ndarray
    weights: np.ndarray
    count: int


def outside(
    parts: Sequence[Tilted], low: float, points: int, pitch: float, planned: tuple[float, float], largest: float
) -> float:
    """Chernoff bounds on the mass of the sum above and below a window, added up.

    Args:
        parts: what is summed.
        low: lowest point of the window.
        points, pitch: how many points it has, and how far apart.
        planned: exponents > 0 that are tried first, for what lies above and below.
        largest: cap for smaller ones.
    """
    above = beyond(parts, low + pitch * (points - 1), planned[0], pitch, largest)
    return above + beyond(parts, low, -planned[1], pitch, largest)


def beyond(parts: Sequence[Tilted], end: float, planned: float, pitch: float, largest: float) -> float:
    """Chernoff bound on the mass of the sum beyond ``end``: above it where ``planned`` > 0, else below.

    Args:
        parts: what is summed.
        end: where the window ends.
        planned: the exponent tried first; then smaller ones, as rounding to a grid widens the law.
        pitch: of the grid: sums that stay that far inside need no bound.
        largest: cap for the smaller exponents.
    """
    side = -1 if planned > 0.0 else 0
    furthest = sum(part.count * float(part.losses[part.weights > 0.0][side]) for part in parts)
    if np.sign(planned) * (end - furthest) >= pitch:
        return 0.0
    best, first = 0.0, abs(planned)
    for size in (first, min(_SHORTER * first, largest), min(_SHORTEST * first, _OF_LARGEST * largest)):
        exponent = float(np.copysign(size, planned))
        log_moment = sum(part.count * _log_moment(part, exponent) for part in parts)  # rounded upwards
        best = min(best, log_moment - exponent * end)  # whatever is not a number is not smaller
        if best < _NEGLIGIBLE:
            break
    return float(np.exp(best))


def _log_moment(part: Tilted, exponent: float) -> float:
    """log sum of weights times e^(exponent * losses), and what rounding may take from it."""
    middle = part.losses[int(np.argmax(part.weights))]
    with np.errstate(over="ignore", invalid="ignore"):  # infinite or undefined: no bound
        grown = np.exp(exponent * (part.losses - middle))
        shift = exponent * float(middle)
        rounding = EPS * (0.5 * len(grown) + 8.0 + abs(exponent) * float(np.ptp(part.losses)) + 4.0 * abs(shift))
        return float(np.log(part.weights @ grown)) + shift + rounding
