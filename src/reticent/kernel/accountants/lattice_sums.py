"""Losses rounded to a grid, composed by FFT, on both sides of the truth: what the route ``lattice`` computes.

Upper side ("connect the dots"): the mass of each cell is moved to the two ends of the cell such that
its P-mass and its Q-mass are kept. The lattice experiment then determines the true one, so it is more
informative, after composition too. Lower side: each step is replaced by the label of its rounded
loss; thresholding the sum of labels is a legal test. Errors of rounding, wrap-around and truncation
are added on the safe side: docs/theory/composition.md, section "Lattice". Shares no code with ``contour``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.kernel.accountants.lattice_cells import Cells, cells_of
from reticent.kernel.accountants.powers import GridStep, Tilted, outside, power, window_end
from reticent.kernel.accountants.steps import Step, Steps
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import EPS, LOG_HALF, OVERFLOW, TINY
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.curves.polygon import Polygon, mirrored, polygon_above, polygon_through
from reticent.kernel.curves.sums import running, running_roundings
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs import LossMasses

STEP_ERROR = 64 * EPS  # double-precision error of one step's delta: the four log rates and two differences
_MAX_TANGENTS = 2**13
_LARGEST_LOSS = 600.0  # of one step: beyond it e^-L underflows, so it counts as a sure sign of the target
_LEAST = 1e-250  # an error rate of a legal test that is claimed to be no smaller
_STEP_TAIL = 1e-11  # what the cells of one step may miss, in units of what the window may
_HOPELESS = 1e-3  # sum of errors beyond which a lattice says nothing
_LEAST_POINTS_LOG2 = 12
_CHERNOFF = np.geomspace(1e-4, 1e7, 221)  # exponents that may choose the window
_APART = 10  # of them: those that are asked first
_LARGEST_EXPONENT = 4e4  # of a bound on the mass outside, times the window
_NARROWEST = 1e-3  # of the window: least deviation of the sum that the spacing is planned for
_ROUNDING, _HALVINGS = 1e-15, 60  # of log alpha at the median; of the search for it
_ERROR_SHARE = 30.0  # count * spacing^2 / (width * spread): what rounding to a grid costs, measured
_MARGIN_SHARE = 512  # of the points, left free on either side for connected dots that move by whole cells
_CHERNOFF_ROOM, _LOW_ROOM = 1.05, 1.025  # around the window that Chernoff bounds ask for; of its lower end
_SMALLEST, _LARGEST = 1e-12, 1e5  # losses of the coarse grid that plans the window
_COARSE_CELLS, _MEDIAN_CELLS = 3400, 1200  # of geometric grids, each side of 0


@dataclass(frozen=True)
class LossGrid:
    """The grid of the sum: ``offset`` + spacing * index, for ``points`` indices from ``start``.

    Attributes:
        centres: per kind of step, the loss that is index 0 of its own grid.
        offset: centres times counts.
        up, down: Chernoff exponents that chose the window.
        tail: probability that the window may miss.
        symmetric: every step's curve is its own inverse; index 0 is then loss 0, and one direction says all.
        depth: of a route.
    """

    spacing: float
    start: int
    points: int
    centres: tuple[float, ...]
    offset: float
    up: float
    down: float
    tail: float
    symmetric: bool
    depth: float

    @property
    def thresholds(self) -> np.ndarray:
        return self.offset + self.spacing * (self.start + np.arange(self.points))


def _all_cells(steps: Steps, plan: LossGrid, shift: float) -> list[Cells]:
    reach, tail = min(plan.spacing * plan.points, _LARGEST_LOSS), plan.tail * _STEP_TAIL
    return [
        cells_of(step, centre, plan.spacing, reach, tail, shift)
        for step, centre in zip(steps, plan.centres, strict=True)
    ]


@dataclass(frozen=True)
class _Side:
    """One side of threshold 0; what is told of its thresholds goes outwards.

    Attributes:
        plan: the window.
        back: the side below 0: losses there are negative.
    """

    plan: LossGrid
    back: bool

    def of(self, values: np.ndarray) -> np.ndarray:
        """Those of ``values``, one for each point of the window, that lie on this side."""
        zero = int(np.searchsorted(self.plan.thresholds, 0.0))
        return values[:zero][::-1] if self.back else values[zero:]

    @property
    def sizes(self) -> np.ndarray:
        """Of the thresholds."""
        return np.abs(self.of(self.plan.thresholds))

    @property
    def tilts(self) -> tuple[float, ...]:
        """Exponents by which masses are tilted outwards: none, and one more where tails shall keep their digits.

        An error of masses weighted by e^(c l) is, at the threshold l, smaller by that factor.
        """
        plan = self.plan
        return (0.0, plan.depth * (plan.down if self.back else plan.up)) if plan.depth > 0.0 else (0.0,)


def pessimistic(steps: Steps, plan: LossGrid) -> Polygon:
    """On the safe side: dots connected."""
    parts = _all_cells(steps, plan, 0.0)
    split = [_connect_dots(cells.losses) for cells in parts]
    up, ahead = _deltas(parts, split, _Side(plan, back=False))
    down, behind = (up, ahead) if plan.symmetric else _deltas(parts, split, _Side(plan, back=True))
    ahead[0] = max(ahead[0], behind[0])
    deltas = np.clip(mirrored(behind, ahead), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return polygon_above(mirrored(-down, up), np.log(deltas), np.log1p(-deltas))


def _deltas(parts: list[Cells], split: list[np.ndarray], side: _Side) -> tuple[np.ndarray, np.ndarray]:
    """(sizes of thresholds that the curve is drawn through, the first of them 0; bounds on delta there) on one side."""
    sizes, bounds = side.sizes, []
    for tilt in side.tilts:
        mass, slack = _convolved(parts, split, side, 0.0 if side.back else 1.0, tilt)
        if tilt == 0.0:
            drawn = _drawn_through(mass)
        mass, error = mass * np.exp(-tilt * sizes), slack * np.exp(-tilt * np.append(0.0, sizes))
        # delta(l) = sum Q_n (1 - e^(l - l_n))_+, all terms positive; 0 is a threshold, on the grid or not.
        bounds.append(positive_parts(sizes, mass, mass * np.exp(-sizes)) + error)
    lost = sum(c.count * ((c.losses.below[0] if side.back else c.losses.above[1]) + STEP_ERROR) for c in parts)
    delta = np.fmin.reduce(bounds) + lost
    # A threshold next to 0 would measure the slope there by a difference that rounding drowns.
    drawn = drawn[sizes[drawn] > 0.5 * side.plan.spacing]
    return np.append(0.0, sizes[drawn]), np.append(delta[0], delta[1:][drawn])


def positive_parts(losses: np.ndarray, mass: np.ndarray, shrunk: np.ndarray) -> np.ndarray:
    """sum mass_n (1 - e^(l - l_n))_+ for l = 0 and l = each of ``losses`` >= 0; ``shrunk`` = mass_n e^(-l_n).

    Where e^l overflows the second part is left out, which errs upwards.
    """
    grown = np.where(losses < _LARGEST_LOSS, np.exp(np.minimum(losses, _LARGEST_LOSS)), 0.0)
    from_here, after = _sums_from(mass), _sums_from(shrunk)
    # Both sums are at most the first; an exponential of a loss that is off by an eps of itself is off by as much.
    rounding = 2.0 * (_summed(len(mass)) + EPS * np.append(0.0, losses)) * from_here
    return from_here - np.append(1.0, grown) * after + rounding


def optimistic(steps: Steps, plan: LossGrid) -> Polygon:
    """On the other side: labels of cells."""
    parts = _all_cells(steps, plan, -0.5)
    p_mass = [_with_tails(c.losses.p, c.losses.below[0], c.losses.above[0]) for c in parts]
    q_mass = [_with_tails(c.losses.q, c.losses.below[1], c.losses.above[1]) for c in parts]
    # Labels differ from the losses that they replace by a mean that is known in advance.
    biases = [c.count * c.label_bias(p, q, plan.spacing) for c, p, q in zip(parts, p_mass, q_mass, strict=True)]
    offset = 0 if plan.symmetric else round(sum(biases))
    ahead = _tests(parts, p_mass, q_mass, _Side(plan, back=False), offset)
    behind = ahead if plan.symmetric else _tests(parts, q_mass, p_mass, _Side(plan, back=True), offset)
    return polygon_through(LogErrors.joined(ahead, behind.exchanged))


def _tests(parts: list[Cells], rare: list[np.ndarray], common: list[np.ndarray], side: _Side, offset: int) -> LogErrors:
    """Rates of the tests at thresholds on one side; H0 is the law under which losses beyond them are ``rare``."""
    sizes, rounding = side.sizes, sum(cells.count for cells in parts) * STEP_ERROR
    false: list[np.ndarray] = []
    true: list[np.ndarray] = []
    for tilt in side.tilts:
        for masses, weight, error, rates in ((rare, 1.0, 1.0, false), (common, 0.0, -1.0, true)):
            mass, slack = _convolved(parts, masses, side, weight, tilt, offset)
            if not false:
                drawn = _drawn_through(mass)
            shrink = np.exp(-(weight + tilt) * sizes)
            sums = _sums_from(mass * shrink)
            beyond = (sums[:-1] if side.back else sums[1:]) * (1.0 + error * _summed(side.plan.points))
            rates.append(beyond + error * (slack * shrink + rounding * np.exp(-weight * sizes)))
    fpr = np.clip(np.fmin.reduce(false)[drawn], _LEAST, 1.0)
    tpr = np.clip(np.fmax.reduce(true)[drawn], 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return LogErrors(fpr=np.log(fpr), tnr=np.log1p(-fpr), fnr=np.log1p(-tpr), tpr=np.log(tpr))


def _drawn_through(mass: np.ndarray) -> np.ndarray:
    """Positions that a curve is drawn through: the first, evenly spaced ones, and more where the mass is."""
    total = np.cumsum(mass)
    quantiles = np.searchsorted(total, total[-1] * np.linspace(0.0, 1.0, _MAX_TANGENTS))
    drawn = np.zeros(len(mass), dtype=bool)
    drawn[:: max(1, len(mass) // _MAX_TANGENTS)] = True
    drawn[np.minimum(quantiles, len(mass) - 1)] = True
    return np.flatnonzero(drawn)


def _connect_dots(cells: LossMasses) -> np.ndarray:
    """P-masses on the grid points; Q-mass above the grid and P-mass below it are the caller's."""
    mass, (p_below, q_below) = cells.connected(), cells.below
    mass[0] += min(p_below, q_below * np.exp(min(-cells.grid[0], OVERFLOW)))
    mass[-1] += cells.above[0]
    return mass


def _with_tails(inner: np.ndarray, below: float, above: float) -> np.ndarray:
    """Both tails counted with the nearest cell."""
    mass = inner.copy()
    mass[0] += below
    mass[-1] += above
    return mass


def _convolved(
    parts: list[Cells], masses: list[np.ndarray], side: _Side, weight: float, tilt: float, offset: int = 0
) -> tuple[np.ndarray, float]:
    """(masses of the sum on one side, times e^((weight + tilt) size of the loss); bound on the sum of errors).

    ``offset`` grid points are added to the sum before weighting. The tilt is taken from the exponent that chose the end
    of the window on its side.

    Raises:
        NumericalError: rounding and wrap-around swamp masses that are not tilted.
    """
    plan, outwards = side.plan, -1.0 if side.back else 1.0
    exponent = outwards * (weight + tilt)
    on_grid: list[GridStep] = []
    tilted: list[Tilted] = []
    for cells, mass in zip(parts, masses, strict=True):
        index = cells.ends if len(mass) == len(cells.ends) else cells.labels
        losses = cells.centre + plan.spacing * index
        weights = mass * np.exp(exponent * losses)
        on_grid.append(GridStep((index,), weights, np.abs(exponent * losses), cells.count))
        tilted.append(Tilted(losses, weights, cells.count))
    first = plan.start - offset  # of the window, before the offset is added
    mass, rounding = power(on_grid, (plan.points,), (first,))
    low = plan.offset + plan.spacing * first
    largest = _LARGEST_EXPONENT / (plan.spacing * plan.points)
    chosen = plan.up - outwards * tilt, plan.down + outwards * tilt
    wrap = outside(tilted, low, plan.points, plan.spacing, chosen, largest)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite slack is hopeless
        scale = float(np.exp(exponent * offset * plan.spacing))
        slack = scale * (rounding + wrap)
    if tilt == 0.0 and not slack < _HOPELESS:
        raise NumericalError(f"lattice of {plan.points} points: rounding and wrap-around up to {slack:.1e}")
    return side.of(mass * scale), slack


def _summed(points: int) -> float:
    """Relative rounding of sums over a lattice of that many points, and of an exponential on either side of them."""
    return (0.5 * running_roundings(points) + 8.0) * EPS


def _sums_from(values: np.ndarray) -> np.ndarray:
    """Sum of everything from each position on, and 0."""
    return np.append(running(values[::-1])[::-1], 0.0)


def planned(steps: Steps, accuracy: Any) -> LossGrid:
    """Window from Chernoff bounds on a coarse geometric lattice, spacing from the aimed width.

    Args:
        steps: what is composed.
        accuracy: the route ``lattice``, whose fields it is.

    Raises:
        NumericalError: the losses have no finite range.
    """
    count = sum(step.count for step in steps)
    coarse = [(*_planning_law(step), step.count) for step in steps]
    high, up = _chernoff_end(coarse, 1.0, accuracy.tail)
    low, down = _chernoff_end([(-losses, mass, n) for losses, mass, n in coarse], 0.0, accuracy.tail)
    spread = np.sqrt(sum(n * (np.sum(m * x**2) - np.sum(m * x) ** 2) for x, m, n in coarse))
    if not (np.isfinite(spread) and np.isfinite(high) and np.isfinite(low)):
        raise NumericalError("lattice: the losses have no finite range")
    span = _CHERNOFF_ROOM * (max(high, 0.0) + max(low, 0.0)) + _SMALLEST
    spacing = np.sqrt(_ERROR_SHARE * accuracy.width * max(spread, _NARROWEST * span) / count)
    points = 2 ** int(np.clip(np.ceil(np.log2(span / spacing)), _LEAST_POINTS_LOG2, np.log2(accuracy.points)))
    margin = points // _MARGIN_SHARE
    spacing = span / (points - 3 * margin)
    symmetric = all(step.curve.reversed is step.curve for step in steps)
    atoms_apart = max(steps, key=lambda step: step.count).atoms_apart * (0.5 if symmetric else 1.0)
    if atoms_apart >= spacing:
        spacing = atoms_apart / np.floor(atoms_apart / spacing)
    centres, start = (0.0,) * len(steps), -points // 2
    offset = 0.0
    if not symmetric:
        centres = tuple(_median(step.curve, of_both=atoms_apart == 0.0) for step in steps)
        offset = sum(step.count * centre for step, centre in zip(steps, centres, strict=True))
        start = int(np.floor((-_LOW_ROOM * max(low, 0.0) - offset) / spacing)) - margin
    tail, depth = accuracy.tail, accuracy.depth
    return LossGrid(float(spacing), start, points, centres, offset, up, down, tail, symmetric, depth)


def _median(curve: TradeOff, of_both: bool) -> float:
    """The loss that half of P, or of P and Q together, exceeds: it lies in the atom, or what is nearly one."""

    def less(losses: np.ndarray) -> np.ndarray:
        rates = curve.errors(losses)
        middle = np.logaddexp(rates.fpr, rates.tpr) + LOG_HALF if of_both else rates.fpr
        return middle < LOG_HALF - _ROUNDING

    sizes = np.geomspace(TINY, _LARGEST, _MEDIAN_CELLS)
    losses = np.concatenate([-sizes[::-1], [0.0], sizes])
    k = int(np.argmax(less(losses)))
    return float(halved(lambda middle: ~less(np.array(middle)), losses[max(k - 1, 0)], losses[k], _HALVINGS)[1])


def _planning_law(step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Connected dots on a grid that is geometric around 0: losses and P-masses."""
    sizes = np.geomspace(_SMALLEST, _LARGEST, _COARSE_CELLS)
    losses = np.concatenate([-sizes[::-1], [0.0], sizes])
    mass = step.losses(losses).connected()
    keep = mass > 0
    if not np.any(keep):
        raise NumericalError("lattice: every loss is larger than its window allows")
    return losses[keep], mass[keep]


def _chernoff_end(coarse: list[tuple[np.ndarray, np.ndarray, int]], shift: float, tail: float) -> tuple[float, float]:
    """Smallest y with P[e^(shift S) 1(S > y)] <= tail by Chernoff, and the exponent that gives it.

    The ends fall with the exponent, then rise: those beside the best of few are enough.
    """

    def end(exponents: np.ndarray) -> tuple[float, float]:
        logs = np.zeros(len(exponents))
        for losses, mass, count in coarse:
            terms = np.log(mass) + np.multiply.outer(exponents + shift, losses)
            top = terms.max(axis=1)
            logs += count * (top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1)))
        return window_end(logs, exponents, tail)

    best = int(np.searchsorted(_CHERNOFF, end(_CHERNOFF[::_APART])[1]))
    return end(_CHERNOFF[max(best - _APART, 0) : best + _APART + 1])
