"""The lattice route: losses rounded to a grid, composed by FFT, on both sides of the truth.

Upper side ("connect the dots"): the mass of each cell is moved to the two ends of the cell such that
its P-mass and its Q-mass are kept. The lattice experiment then determines the true one, so it is more
informative, after composition too. Lower side: each step is replaced by the label of its rounded
loss; thresholding the sum of labels is a legal test. Errors of rounding, wrap-around and truncation
are added on the safe side: docs/composition.md, section "Lattice". Shares no code with ``spectrum``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.composition.polygon import Polygon, polygon_above, polygon_through
from reticent.errors import NumericalError
from reticent.tradeoff import LogErrors, TradeOff
from reticent.tradeoff._logs import log_sub

_EPS = 2.0**-52
_STEP_ERROR = 64 * _EPS  # double-precision error of one step's delta: the four log rates and two differences
_MAX_POINTS = 2**22
_TAIL = 1e-15
_MAX_TANGENTS = 2**13

Steps = Sequence[tuple[TradeOff, int]]


@dataclass(frozen=True)
class _Plan:
    """Grid spacing, first window index, window length, and the Chernoff exponents that chose them."""

    spacing: float
    start: int
    points: int
    up: float
    down: float


@dataclass(frozen=True)
class _Cells:
    """Masses of one step: cell i is (l_i, l_{i+1}], l_i = (first + i + offset) * spacing; plus both tails."""

    first: int
    p: np.ndarray
    q: np.ndarray
    p_below: float
    q_below: float
    p_above: float
    q_above: float


def compose_lattice(
    steps: Steps, width: float = 5e-7, max_points: int = 2**20, anchor: float = 0.0
) -> tuple[Polygon, Polygon]:
    """(pessimistic, optimistic) polygons around the composition of ``steps``, one direction.

    Args:
        steps: (curve of one step, how many times it ran); curve with H0 = absent, H1 = present.
        width: aimed distance between the two, in beta; it is not guaranteed, the enclosure is.
        max_points: largest grid.
        anchor: a loss that carries (nearly) an atom; the grid is made to contain it if it can.

    Raises:
        NumericalError: rounding would swamp the result (more than 1e-3), or the grid cannot hold it.
    """
    plan = _plan(steps, width, min(max_points, _MAX_POINTS), abs(anchor))
    ends = [(_cells(curve, plan, 0.0), count) for curve, count in steps]
    centred = [(_cells(curve, plan, -0.5), count) for curve, count in steps]
    return _pessimistic(ends, plan), _optimistic(centred, plan)


def _pessimistic(parts: list[tuple[_Cells, int]], plan: _Plan) -> Polygon:
    split = [(cells, *_connect_dots(cells, plan.spacing), count) for cells, count in parts]
    rounding = sum(count for *_, count in split) * _STEP_ERROR
    lost_q = sum(count * lost for _, _, lost, _, count in split)
    lost_p = sum(count * lost for _, _, _, lost, count in split)
    log_mass = [(cells.first, mass, count) for cells, mass, _, _, count in split]
    thresholds = plan.spacing * (plan.start + np.arange(plan.points))
    zero = -plan.start
    ups = _fold(log_mass, plan, tilt=1.0)
    downs = _fold(log_mass, plan, tilt=0.0)
    stride = max(1, plan.points // _MAX_TANGENTS)
    upper = thresholds[zero:]
    # delta(l) = sum Q_n (1 - e^(l - l_n))_+, all terms positive.
    q_tail = _tail_sum(ups.mass[zero:])
    weighted = ups.mass[zero:] * np.exp(-upper)
    p_tail = _tail_sum(weighted)
    delta = q_tail - _shifted(upper, p_tail) + lost_q + ups.slack + rounding
    lower = -thresholds[: zero + 1][::-1]
    p_head = _tail_sum(downs.mass[: zero + 1][::-1])
    q_head = _tail_sum((downs.mass[: zero + 1])[::-1] * np.exp(-lower))
    mirrored = p_head - _shifted(lower, q_head) + lost_p + downs.slack + rounding
    delta[0] = mirrored[0] = max(delta[0], mirrored[0])
    deltas = np.clip(np.concatenate([mirrored[::stride][::-1], delta[stride::stride]]), 0.0, 1.0)
    chosen = np.concatenate([-lower[::stride][::-1], upper[stride::stride]])
    with np.errstate(divide="ignore"):
        return polygon_above(chosen, np.log(deltas), np.log1p(-deltas))


def _shifted(losses: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """e^l times tail; 0, which errs upwards in delta, where e^l overflows."""
    return np.where(losses < 600.0, np.exp(np.minimum(losses, 600.0)) * tail, 0.0)


def _optimistic(parts: list[tuple[_Cells, int]], plan: _Plan) -> Polygon:
    labels = [(*_labels(cells), count) for cells, count in parts]
    rounding = sum(count for *_, count in labels) * _STEP_ERROR
    # Labels lag the losses they stand for by a mean that is known in advance.
    drift = round(sum(count * _lag(first, p, q, plan.spacing) for first, p, q, count in labels))
    p_mass = [(first, p, count) for first, p, _, count in labels]
    q_mass = [(first, q, count) for first, _, q, count in labels]
    window = replace(plan, start=plan.start - drift)
    zero, thresholds = -plan.start, plan.spacing * (plan.start + np.arange(plan.points))
    above, below = thresholds[zero:], thresholds[:zero]
    tilted = _fold(p_mass, window, tilt=1.0, drift=drift)
    fpr = _tail_sum(tilted.mass[zero:] * np.exp(-above)) + (tilted.slack + rounding) * np.exp(-above)
    plain = _fold(q_mass, window, tilt=0.0)
    tpr = _tail_sum(plain.mass[zero:]) - plain.slack - rounding
    tilted = _fold(q_mass, window, tilt=-1.0, drift=drift)
    fnr = np.cumsum(tilted.mass[:zero] * np.exp(below)) + (tilted.slack + rounding) * np.exp(below)
    plain = _fold(p_mass, window, tilt=0.0)
    tnr = np.cumsum(plain.mass[:zero]) - plain.slack - rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.log(np.clip(fpr, 0, 1)), np.log(np.clip(tpr, 0, 1)), np.log1p(-np.clip(fpr, 0, 1))
        left = np.log(np.clip(fnr, 0, 1)), np.log(np.clip(tnr, 0, 1)), np.log1p(-np.clip(fnr, 0, 1))
        right_fnr, left_fpr = np.log1p(-np.clip(tpr, 0, 1)), np.log1p(-np.clip(tnr, 0, 1))
    stride = max(1, plan.points // _MAX_TANGENTS)
    points = LogErrors(
        fpr=np.concatenate([right[0][::-1], left_fpr[::-1]])[::stride],
        tnr=np.concatenate([right[2][::-1], left[1][::-1]])[::stride],
        fnr=np.concatenate([right_fnr[::-1], left[0][::-1]])[::stride],
        tpr=np.concatenate([right[1][::-1], left[2][::-1]])[::stride],
    )
    return polygon_through(points)


def _connect_dots(cells: _Cells, spacing: float) -> tuple[np.ndarray, float, float]:
    """P-masses on the grid points, the Q-mass moved to +infinity, the P-mass moved to -infinity."""
    left = spacing * (cells.first + np.arange(len(cells.p)))
    with np.errstate(over="ignore", invalid="ignore"):
        up = (np.exp(-left) * cells.q - cells.p) / np.expm1(spacing)
    up = np.clip(np.where(np.isfinite(up), up, 0.0), 0.0, cells.p)
    mass = np.zeros(len(cells.p) + 1)
    mass[:-1] += cells.p - up
    mass[1:] += up
    ends = spacing * cells.first, spacing * (cells.first + len(cells.p))
    mass[0] += min(cells.p_below, cells.q_below * np.exp(min(-ends[0], 700.0)))
    mass[-1] += cells.p_above
    return mass, cells.q_above, cells.p_below


def _labels(cells: _Cells) -> tuple[int, np.ndarray, np.ndarray]:
    """Each cell labelled by its middle (both tails by the nearest cell), as P- and Q-masses."""
    p, q = cells.p.copy(), cells.q.copy()
    p[0] += cells.p_below
    q[0] += cells.q_below
    p[-1] += cells.p_above
    q[-1] += cells.q_above
    return cells.first, p, q


def _lag(first: int, p: np.ndarray, q: np.ndarray, spacing: float) -> float:
    """Mean of (log ratio of a label) - (label), in grid points, under the mean of both laws."""
    both = (p > 0) & (q > 0)
    ratio = np.log(q[both] / p[both]) / spacing - (first + np.flatnonzero(both))
    weights = p[both] + q[both]
    return float(np.sum(weights * np.clip(ratio, -0.5, 0.5)) / np.sum(weights))


@dataclass(frozen=True)
class _Composed:
    mass: np.ndarray
    slack: float


def _fold(parts: list[tuple[int, np.ndarray, int]], plan: _Plan, tilt: float, drift: int = 0) -> _Composed:
    """Masses of the sum on the window, weighted by e^(tilt * l); ``slack`` bounds the sum of errors.

    ``drift`` grid points are added to the sum before weighting.
    """
    spectrum, log_scale = np.ones(plan.points // 2 + 1, dtype=complex), tilt * drift * plan.spacing
    relative = np.zeros(plan.points // 2 + 1)
    fft_error = 8 * _EPS * np.log2(plan.points)
    tails = dict.fromkeys((1.0, -1.0), 0.0)
    for first, mass, count in parts:
        index = first + np.arange(len(mass))
        weights = mass * np.exp(tilt * plan.spacing * index)
        total = weights.sum()
        image = np.fft.rfft(np.bincount(index % plan.points, weights / total, minlength=plan.points))
        magnitude = np.abs(image)
        with np.errstate(divide="ignore"):
            spectrum *= np.exp(count * np.log(magnitude)) * np.exp(1j * np.fmod(count * np.angle(image), 2 * np.pi))
            relative += count * np.log1p((fft_error + 4 * _EPS) / np.maximum(magnitude, 1e-300))
        log_scale += count * np.log(total)
        for sign, rate in ((1.0, plan.up), (-1.0, plan.down)):
            tails[sign] += count * _log_moment(weights, plan.spacing * index, sign * rate)
    scale = np.exp(log_scale)
    mass = np.fft.irfft(spectrum, plan.points) * scale
    # |prod(z + e) - prod z| <= prod(|z| + e) - prod|z|, frequency by frequency, then the inverse transform.
    per_point = 2 * np.mean(np.abs(spectrum) * np.expm1(np.minimum(relative, 700.0)) + fft_error * np.abs(spectrum))
    wrap = _wrapped(tails, plan) * np.exp(tilt * drift * plan.spacing)
    rolled = np.maximum(np.roll(mass, -(plan.start % plan.points)), 0.0)
    slack = per_point * scale * plan.points + wrap
    if not slack < 1e-3:
        raise NumericalError(f"lattice of {plan.points} points: rounding and wrap-around up to {slack:.1e}")
    return _Composed(rolled, slack)


def _wrapped(tails: dict[float, float], plan: _Plan) -> float:
    """Chernoff bound on the mass outside the window."""
    high, low = plan.spacing * (plan.start + plan.points), plan.spacing * plan.start
    return float(np.exp(min(tails[1.0] - plan.up * high, 0.0)) + np.exp(min(tails[-1.0] + plan.down * low, 0.0)))


def _log_moment(weights: np.ndarray, losses: np.ndarray, exponent: float) -> float:
    live = weights > 0
    terms = np.log(weights[live]) + exponent * losses[live]
    top = float(terms.max())
    return top + float(np.log(np.sum(np.exp(terms - top))))


def _tail_sum(values: np.ndarray) -> np.ndarray:
    """Sum of everything strictly after each position."""
    total = np.cumsum(values[::-1])[::-1]
    return np.append(total[1:], 0.0)


def _cells(curve: TradeOff, plan: _Plan, offset: float) -> _Cells:
    reach = plan.spacing * plan.points
    low, high = _support(curve, reach)
    first, last = int(np.floor(low / plan.spacing)), int(np.ceil(high / plan.spacing))
    last = max(last, first + 1)
    rates = curve.errors(plan.spacing * (np.arange(first, last + 1) + offset))
    return _Cells(
        first,
        p=_masses(rates.fpr, rates.tnr),
        q=_masses(rates.tpr, rates.fnr),
        p_below=float(np.exp(rates.tnr[0])),
        q_below=float(np.exp(rates.fnr[0])),
        p_above=float(np.exp(rates.fpr[-1])),
        q_above=float(np.exp(rates.tpr[-1])),
    )


def _masses(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Differences of neighbouring tail probabilities, taken from the smaller tail."""
    by_tail = np.exp(log_sub(above[:-1], above[1:]))
    return np.where(above[:-1] < -0.7, by_tail, np.exp(log_sub(below[1:], below[:-1])))


def _support(curve: TradeOff, reach: float, tail: float = 1e-26) -> tuple[float, float]:
    """An interval within [-reach, reach] outside which Q above and P below are at most ``tail``."""
    sizes = np.geomspace(1e-12, max(reach, 1e-11), 800)
    high = curve.errors(sizes).tpr <= np.log(tail)
    low = curve.errors(-sizes).tnr <= np.log(tail)
    return -float(sizes[np.argmax(low)] if low.any() else reach), float(sizes[np.argmax(high)] if high.any() else reach)


def _plan(steps: Steps, width: float, max_points: int, anchor: float) -> _Plan:
    """Window from Chernoff bounds on a coarse geometric lattice, spacing from the aimed width."""
    count = sum(n for _, n in steps)
    coarse = [(*_coarse(curve), n) for curve, n in steps]
    rates = np.geomspace(1e-4, 1e7, 221)
    high, up = _chernoff_end(coarse, rates, shift=1.0)
    low, down = _chernoff_end([(-losses, mass, n) for losses, mass, n in coarse], rates, shift=0.0)
    spread = np.sqrt(sum(n * (np.sum(m * x**2) - np.sum(m * x) ** 2) for x, m, n in coarse))
    if not (np.isfinite(spread) and np.isfinite(high) and np.isfinite(low)):
        raise NumericalError("lattice: the losses have no finite range")
    span = 1.05 * (max(high, 0.0) + max(low, 0.0)) + 1e-12
    spacing = np.sqrt(30.0 * width * max(spread, 1e-3 * span) / count)
    points = 2 ** int(np.clip(np.ceil(np.log2(span / spacing)), 12, np.log2(max_points)))
    spacing = span / points
    if anchor >= spacing:
        spacing = anchor / np.floor(anchor / spacing)
    return _Plan(spacing, -int(np.ceil(1.025 * max(low, 0.0) / spacing)) - 2, points, up, down)


def _coarse(curve: TradeOff) -> tuple[np.ndarray, np.ndarray]:
    """Connected dots on a grid that is geometric around 0: losses and P-masses."""
    sizes = np.geomspace(1e-12, 1e5, 3400)
    losses = np.concatenate([-sizes[::-1], [0.0], sizes])
    rates = curve.errors(losses)
    p, q = _masses(rates.fpr, rates.tnr), _masses(rates.tpr, rates.fnr)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        up = (np.exp(-losses[:-1]) * q - p) / np.expm1(np.diff(losses))
    up = np.clip(np.where(np.isfinite(up), up, 0.0), 0.0, p)
    mass = np.zeros(len(losses))
    mass[:-1] += p - up
    mass[1:] += up
    keep = mass > 0
    return losses[keep], mass[keep]


def _chernoff_end(
    coarse: list[tuple[np.ndarray, np.ndarray, int]], rates: np.ndarray, shift: float
) -> tuple[float, float]:
    """Smallest y with P[e^(shift S) 1(S > y)] <= tail by Chernoff, and the exponent that gives it."""
    logs = np.zeros(len(rates))
    for losses, mass, count in coarse:
        live = np.log(mass)
        for k, rate in enumerate(rates):
            terms = live + (rate + shift) * losses
            top = terms.max()
            logs[k] += count * (top + np.log(np.sum(np.exp(terms - top))))
    ends = (logs - np.log(_TAIL)) / rates
    best = int(np.nanargmin(ends))
    return float(ends[best]), float(rates[best])
