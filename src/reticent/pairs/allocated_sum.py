"""The sum of t independent log-normals of mean 1, from above and from below in convex order.

A measure is a list of atoms. *Spread*: what lies between two points of a grid moves to both, mean and mass kept. That
raises the mean of every convex function. *Collapsed*: what lies in one cell moves to its mean. That lowers it. Both
survive sums of independent variables. Nothing is subtracted anywhere: every mass is a sum of positive terms, so
errors of rounding are relative. ``Law.kappa`` bounds those of masses, ``Law.eta`` those of positions.
docs/theory/sampling.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from reticent.kernel.curves._logs import EPS, cell_masses

_LOW, _HIGH = 9.3, 8.6  # deviations up to which grids reach: below; above, of the law weighted by its value
_LEFT_OUT_BELOW, _LEFT_OUT_ABOVE = 1e-18, 1e-17  # masses that need no point of their own
_PORTION, _BLOCK = 8192, 80  # terms that are summed at a time: of lists of atoms; of convolutions
_HEAD = 64  # steps of the pitch below which points are geometric
_UNIT = 0.5 * EPS  # rounding of one operation
_ROUNDING = 16 * EPS  # of a normal distribution function, times what its argument's error is magnified by
_Atoms = tuple[np.ndarray, np.ndarray]  # where they are, and their masses


class Effort(NamedTuple):
    """How fine grids are.

    Attributes:
        per_scale: points per standard deviation, or what is most like it.
        most: of the points at one pitch.
        ratio: of neighbouring distances in a tail, and of points next to 0.
        tail: at most this many points beyond those of one pitch.
        few: points that approximate a whole law where it is added to a tail.
    """

    per_scale: float
    most: int
    ratio: float
    tail: int
    few: int


COARSE = Effort(40.0, 700, 1.06, 150, 40)
"""Finds the windows."""
MEDIUM = Effort(180.0, 3600, 1.008, 900, 100)
"""Both ends of an advantage within 1e-4 of each other, for sums of up to a thousand."""
FINE = Effort(300.0, 6000, 1.006, 1200, 150)
"""The same for longer sums."""
TAILS = Effort(180.0, 3600, 1.006, 1200, 100)
"""Longer sums whose middle is known otherwise."""


class Window(NamedTuple):
    """Where a law is.

    Attributes:
        low, high: beyond them lies next to nothing, under the law and under the law weighted by its value.
        scale: half of the distance of the outer sextiles of both laws together.
        mean: of the law.
    """

    low: float
    high: float
    scale: float
    mean: float


class Grid(NamedTuple):
    """Points: 0, geometric ones, ``size`` of one pitch from index ``start`` on, then ever wider ones.

    Attributes:
        points: increasing.
        start: index of the first point of the uniform stretch.
        first: this point over the pitch, a whole number.
        size: points of the stretch.
        pitch: their distance.
    """

    points: np.ndarray
    start: int
    first: int
    size: int
    pitch: float


@dataclass(frozen=True)
class Law:
    """A measure on [0, inf) in which every atom belongs to a point of a grid.

    Attributes:
        grid: the points.
        at: the atoms: the points themselves (spread), or the means of the cells around them (collapsed).
        mass: of the atoms.
        lost: mean that lies beyond the last point: (X - last)_+.
        kappa: relative error of every mass.
        eta: relative error of every position.
    """

    grid: Grid
    at: np.ndarray
    mass: np.ndarray
    lost: float
    kappa: float
    eta: float


def log_normal(deviation: float, window: Window, effort: Effort, *, above: bool, pitch: float | None = None) -> Law:
    """The log-normal of mean 1 on a grid.

    Args:
        deviation: of its logarithm.
        window: where it is.
        effort: of the grid.
        above: spread, else collapsed.
        pitch: of the grid; None follows the window.
    """
    grid = _grid(window, effort, pitch)
    borders = np.append(grid.points if above else np.append(0.0, _borders(grid.points)), np.inf)
    with np.errstate(divide="ignore"):
        z = np.log(borders) / deviation + 0.5 * deviation
    mass, mean = (cell_masses(ndtr(one), ndtr(-one)) for one in (z, z - deviation))
    # Where the pitch is that of a long sum, most cells of a single variable are empty: their place does not matter.
    at = np.clip(np.divide(mean, mass, out=np.zeros(len(mass)), where=mass > 0.0), borders[:-1], borders[1:])
    # Masses are those of slightly moved borders; a mean within its cell may be wrong by the errors of both numbers.
    steps = np.minimum(np.abs(z[:-1]), np.abs(z[1:]))
    with np.errstate(divide="ignore", invalid="ignore"):
        tails = _smaller_tail(z) / mass + _smaller_tail(z - deviation) / mean
        wrong = np.fmin(_ROUNDING * (1.0 + steps) * (1.0 + steps + deviation) * tails, np.diff(borders) / borders[:-1])
    eta = float(wrong[mass > 0].max()) + 4.0 * _ROUNDING * (1.0 + deviation) * (12.0 + 2.0 * deviation)
    middle = max(int(np.searchsorted(z, 0.0)) - 1, 0)
    kappa = EPS * (4.0 / float(mass[middle]) + 8.0)
    return _placed([(at, mass)], grid, above, 0.0, kappa, eta)


def _smaller_tail(z: np.ndarray) -> np.ndarray:
    """What the mass of each cell is a difference of."""
    return np.where(z[1:] <= 0.0, ndtr(z[1:]), ndtr(-z[:-1]))


def _borders(points: np.ndarray) -> np.ndarray:
    """Of the cells around the points, but for 0."""
    return 0.5 * (points[1:] + points[:-1])


def _grid(window: Window, effort: Effort, pitch: float | None = None) -> Grid:
    pitch = min(window.scale / effort.per_scale, window.mean / _HEAD) if pitch is None else pitch
    first, head = int(window.low / pitch), np.zeros(1)
    if first < _HEAD:
        first, low = _HEAD, min(window.low, 0.5 * _HEAD * pitch)
        count = int(np.log(_HEAD * pitch / low) / np.log(effort.ratio)) + 2
        head = np.append(0.0, np.geomspace(low, _HEAD * pitch, count)[:-1])
    count = int(min(max(np.ceil(window.high / pitch) - first + 2, 2), effort.most))
    body = pitch * (first + np.arange(count))
    end, tail = float(body[-1]), np.zeros(0)
    if end < window.high:
        centre = min(window.mean, 0.5 * end)
        reach = np.log((window.high - centre) / (end - centre))
        tail = (
            centre
            + (end - centre)
            * np.exp(np.linspace(0.0, reach, int(min(reach / np.log(effort.ratio) + 2, effort.tail))))[1:]
        )
    return Grid(np.concatenate([head, body, tail]), len(head), first, count, pitch)


def _placed(atoms: list[_Atoms], grid: Grid, above: bool, lost: float, kappa: float, eta: float) -> Law:
    """``atoms`` on a grid, spread or collapsed."""
    points = grid.points
    mass, shifted, most, portions = np.zeros(len(points)), np.zeros(len(points)), 0, 0
    for at, weight in _portions(atoms):
        if above:
            lost += float(weight @ np.maximum(at - points[-1], 0.0))
        cell, here, moved = _shares(at, weight, points, above)
        mass += here
        shifted += moved
        most, portions = max(most, int(np.bincount(cell).max())), portions + 2
    eta += 8 * EPS if above else (most + 16) * _UNIT
    return Law(grid, _means(points, mass, shifted), mass, lost, kappa + (most + portions + 8) * _UNIT, eta)


def _portions(atoms: list[_Atoms]) -> Iterator[_Atoms]:
    """The same, few at a time: a sum of n terms has an error of n roundings, a sum of such sums far fewer."""
    for at, mass in atoms:
        for start in range(0, len(at), _PORTION):
            yield at[start : start + _PORTION], mass[start : start + _PORTION]


def added(a: Law, b: Law, window: Window | None, effort: Effort, *, above: bool) -> Law:
    """The sum of two independent variables, on a grid of its own.

    Args:
        a, b: of one pitch; may be the same.
        window: where the sum is; None finds it.
        effort: of the grid.
        above: spread, else collapsed.
    """
    atoms = [part for part in _sums(a, b, effort, above) if len(part[0])]
    terms = _BLOCK + max(a.grid.size, b.grid.size) // _BLOCK + 2
    terms += max(
        2 * len(law.at) // effort.few + law.grid.start for law in (a, b)
    )  # of laws that few points approximate
    grid = _grid(window or _window(atoms), effort)
    kappa = a.kappa + b.kappa + (terms + 8) * _UNIT
    eta = max(a.eta, b.eta) + (0 if above else terms + 8) * _UNIT
    return _placed(atoms, grid, above, a.lost + b.lost, kappa, eta)


def _sums(a: Law, b: Law, effort: Effort, above: bool) -> Iterator[_Atoms]:
    """Atoms of the sum: uniform stretches by convolution, the rest pair by pair."""
    same = a is b
    ends = [(law.grid.start, law.grid.start + law.grid.size) for law in (a, b)]
    (head_a, body_a, tail_a), (head_b, body_b, tail_b) = (
        ((law.at[:i], law.mass[:i]), (law.at[i:j], law.mass[i:j]), (law.at[j:], law.mass[j:]))
        for law, (i, j) in zip((a, b), ends, strict=True)
    )
    even_a, even_b = _even(a, above), _even(b, above)
    yield _convolved(a, body_a, a.grid.first, body_b, b.grid.first, above)
    if same:
        yield _doubled(_convolved(a, body_a, a.grid.first, even_a, 0, above))
    else:
        yield _convolved(a, body_a, a.grid.first, even_b, 0, above)
        yield _convolved(a, even_a, 0, body_b, b.grid.first, above)
    yield _pairs(head_a, _coarse(head_b, 4 * effort.few, above))
    low_a, low_b = (
        _coarse((law.at[:j], law.mass[:j]), effort.few, above) for law, (_, j) in zip((a, b), ends, strict=True)
    )
    yield _pairs(tail_a, _coarse(tail_b, effort.few, above))
    if len(tail_a[0]):
        yield _doubled(_pairs(tail_a, low_b)) if same else _pairs(tail_a, low_b)
    if len(tail_b[0]) and not same:
        yield _pairs(tail_b, low_a)


def _doubled(atoms: _Atoms) -> _Atoms:
    return atoms[0], 2.0 * atoms[1]


def _even(law: Law, above: bool) -> _Atoms:
    """What lies before the uniform stretch, at multiples of the pitch from 0 on; without the stretch itself."""
    start, pitch = law.grid.start, law.grid.pitch
    at, mass = law.at[:start], law.mass[:start]
    if start == 1:
        return at, mass
    points = pitch * np.arange(_HEAD + 1)
    return _fewer(at, mass, points, above)


def _coarse(part: _Atoms, few: int, above: bool) -> _Atoms:
    """At most ``few`` atoms for many."""
    at, mass = part
    if len(at) <= few:
        return part
    points = at[np.linspace(0, len(at) - 1, few).round().astype(int)]
    return _fewer(at, mass, points, above)


def _fewer(at: np.ndarray, mass: np.ndarray, points: np.ndarray, above: bool) -> _Atoms:
    """At the points, or at the means of the cells around them."""
    _, total, shifted = _shares(at, mass, points, above)
    return _means(points, total, shifted), total


def _shares(at: np.ndarray, mass: np.ndarray, points: np.ndarray, above: bool) -> tuple[np.ndarray, ...]:
    """The cell of each atom; what each point gets; and that, weighted by how far it lies from the point it goes to."""
    size = len(points)
    if not above:
        cell = np.searchsorted(_borders(points), at, side="right")
        return cell, np.bincount(cell, mass, size), np.bincount(cell, mass * (at - points[cell]), size)
    cell = np.clip(np.searchsorted(points, at, side="right") - 1, 0, size - 2)
    share = np.clip((at - points[cell]) / np.diff(points)[cell], 0.0, 1.0)
    spread = np.bincount(cell, mass * (1.0 - share), size) + np.bincount(cell + 1, mass * share, size)
    return cell, spread, np.zeros(size)


def _means(points: np.ndarray, mass: np.ndarray, shifted: np.ndarray) -> np.ndarray:
    return points + shifted / np.where(mass > 0.0, mass, 1.0)


def _convolved(law: Law, a: _Atoms, first_a: int, b: _Atoms, first_b: int, above: bool) -> _Atoms:
    """Two uniform stretches: pairs of the same sum of indices are one atom, collapsed to their mean."""
    (at_a, mass_a), (at_b, mass_b), pitch = a, b, law.grid.pitch
    mass = _convolve(mass_a, mass_b)
    at = pitch * (first_a + first_b + np.arange(len(mass)))
    if above:
        return at, mass
    moved = _convolve(mass_a * (at_a - pitch * (first_a + np.arange(len(at_a)))), mass_b)
    moved = (
        2.0 * moved if a is b else moved + _convolve(mass_a, mass_b * (at_b - pitch * (first_b + np.arange(len(at_b)))))
    )
    return _means(at, mass, moved), mass


def _convolve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The convolution in blocks of one of them, so that sums are short."""
    if len(a) > len(b):
        a, b = b, a
    total = np.zeros(len(a) + len(b) - 1)
    for start in range(0, len(a), _BLOCK):
        part = np.convolve(a[start : start + _BLOCK], b)
        total[start : start + len(part)] += part
    return total


def _pairs(a: _Atoms, b: _Atoms) -> _Atoms:
    return np.add.outer(b[0], a[0]).ravel(), np.multiply.outer(b[1], a[1]).ravel()


def _window(atoms: list[_Atoms]) -> Window:
    """Where the atoms are."""
    at, mass = (np.concatenate(part) for part in zip(*atoms, strict=True))
    order = np.argsort(at)
    at, mass = at[order], mass[order]
    mean = float(at @ mass)
    below, weighted = np.cumsum(mass), np.cumsum(at * mass)
    beyond = mean * _LEFT_OUT_ABOVE
    low = at[np.searchsorted(below, _LEFT_OUT_BELOW)]
    high = at[len(at) - int(np.searchsorted(np.cumsum((at * mass)[::-1]), beyond)) - 1]
    both = below / below[-1] + weighted / weighted[-1]
    left, right = at[np.searchsorted(both, (0.32, 1.68))]
    return Window(float(low), float(high), 0.5 * float(right - left), mean)


def first_window(deviation: float) -> Window:
    """Where the log-normal of mean 1 is."""
    z = np.linspace(-_LOW, _HIGH + deviation, 20001)
    both = ndtr(z) + ndtr(z - deviation)
    left, right = np.exp(deviation * z[np.searchsorted(both, (0.32, 1.68))] - 0.5 * deviation**2)
    low, high = np.exp(deviation * z[[0, -1]] - 0.5 * deviation**2)
    return Window(float(low), float(high), 0.5 * float(right - left), 1.0)


def sum_of(deviation: float, count: int, windows: list[Window], effort: Effort, *, above: bool) -> Law:
    """The sum of ``count`` log-normals, by doublings.

    Args:
        count: >= 2.
        windows: of each sum on the way; where there are too few, they are found and appended.
        effort: of the grids.
        above: spread, else collapsed.
    """
    start, known = first_window(deviation), list(windows)
    found: list[Window] = []

    def plus(a: Law, b: Law) -> Law:
        law = added(a, b, known[len(found)] if known else None, effort, above=above)
        found.append(_window([(law.at, law.mass)]))
        return law

    law = log_normal(deviation, start, effort, above=above)
    for digit in f"{count:b}"[1:]:
        law = plus(law, law)
        if digit == "1":
            law = plus(law, log_normal(deviation, start, effort, above=above, pitch=law.grid.pitch))
    if not known:
        windows.extend(found)
    return law
