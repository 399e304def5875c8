"""The common sign on a two-dimensional lattice: few steps, or rare large losses.

In the notation of ``step``: upper side, each pair (l+, l-) is spread over points around it so that the means of
e^{b+a} and e^{b-a} stay, that is the masses of absent, present with + and present with -: the lattice experiment
determines the true one. Lower side: each step reports the nearest lattice point only; any region of the sum is a legal
test. Steps may differ: given the sign they are independent, and all use one pair of pitches.
docs/theory/relaxed/sign.md has the error terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reticent.adversaries.relaxed.sign.noise import SignNoise, odd_and_even
from reticent.adversaries.relaxed.sign.step import CertifiedBounds
from reticent.kernel.accountants.powers import GridStep, Tilted, outside, power, window_end
from reticent.kernel.curves._logs import EPS, LOG_2, TINY
from reticent.kernel.errors import NumericalError
from reticent.kernel.stopping import checkpoint

_TAIL = 1e-11  # probability that a sum may leave its window by
ROUNDING = 64 * EPS  # of one step's masses: quadrature, exponentials and bilinear weights
_DOUBLES = 16.0  # sum of losses that costs as much rounding again, in its exponential
_FURTHEST = 200.0  # threshold
_COUNT, POINTS = 2000, 2**21  # thresholds; points of a lattice, where nobody says
_NEGLIGIBLE = 1e-24  # lattice points with less mass are left out, on the safe side
_LARGEST_LOSS = 600.0  # of one step: beyond it e^loss is out of reach
_LIGHT = 1e-18  # masses that choose no threshold
_LONGEST = 2**31  # points of one axis
_APART = 1e-9  # of two thresholds
_LARGEST_TILT = 4e2  # exponent of a Chernoff bound, over the length of the window
_OVERSIZE, _FITTINGS = 1.3, 12  # times the points aimed at, at most, and how often pitches are fitted to them
_COARSEST = 50.0  # distance of two points, in nats: losses are a small part of that, and e^700 is not a number
_ROOM, _LOW_ROOM = 1.02, 1.01  # around the window that Chernoff bounds ask for; of its lower end
_MARGIN, _WALK = 8, 6.0  # cells around it; and standard deviations of the walk to lattice points
_FURTHEST_APART, _OF_CELLS = 0.25, 0.04  # variance of one step of that walk, at most; and of a cell of y to its ends
_CELL = 0.4  # of a lattice cell: what a cell of y may cover, in the mean
_MOST_SLACK = 1e-3  # rounding and wrap-around of a composition that is of use
Kinds = Sequence[tuple[SignNoise, int]]
"""One step of each kind, and how often it runs."""
_Composed = tuple[np.ndarray, float]  # masses of the sum, and a bound on the sum of their errors
_CHERNOFF = np.geomspace(1e-3, 1e6, 91)  # exponents
_PLACES = 4001  # observations on which a lattice is planned


@dataclass(frozen=True, slots=True)
class Window:
    """``size`` indices from ``first``, ``pitch`` apart in the loss; ``up`` and ``down`` chose it, as exponents."""

    pitch: float
    first: int
    size: int
    up: float
    down: float


@dataclass(frozen=True, slots=True)
class PlaneLattice:
    """The lattice of all ``kinds``: a = i * a.pitch, b = centre of the kind + j * b.pitch."""

    kinds: tuple[Sketch, ...]
    a: Window
    b: Window

    def quadrature(self, kind: Sketch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """That of its noise, in cells of y that are narrow enough."""
        return kind.noise.quadrature(kind.cell((self.a.pitch, self.b.pitch)))


@dataclass(frozen=True, slots=True)
class PlaneLaw:
    """Masses of one step on lattice points (``i``, ``j``), under ``absent`` and under ``present`` with +."""

    i: np.ndarray
    j: np.ndarray
    absent: np.ndarray
    present: np.ndarray


@np.errstate(all="ignore")  # what overflows becomes a trivial bound
def bounds(kinds: Kinds, count: int = _COUNT, points: int = POINTS) -> CertifiedBounds:
    """Certified bounds at about ``count`` thresholds from a lattice of about ``points`` points.

    Every error is a sum over kinds: mass beyond the nodes, rounding of one step's masses, rounding of powers.

    Raises:
        NumericalError: the lattice cannot follow the losses.
    """
    plan = plan_of(kinds, points)
    ratio, (absent, slack_absent), (present, slack_present) = _sums(plan, [connected(plan, k) for k in plan.kinds])
    thresholds = _thresholds(ratio, absent, present, count)
    lost = sum(steps * noise.lost for noise, steps in kinds)
    q, p = (above(thresholds, ratio, mass) for mass in (present, absent))
    grown, shrunk = np.exp(np.maximum(thresholds, 0.0)), np.exp(np.minimum(thresholds, 0.0))
    largest = plan.a.pitch * plan.a.size + plan.b.pitch * plan.b.size  # sum of losses, roughly
    rounding = sum(steps for _, steps in kinds) * ROUNDING * (1.0 + largest / _DOUBLES)  # relative, of every mass
    add = q - grown * p + rounding * (q + grown * p) + slack_present + grown * slack_absent
    q, p = present.sum() - q, absent.sum() - p
    remove = p - q / shrunk + rounding * (p + q / shrunk) + slack_absent + slack_present / shrunk
    delta = np.where(thresholds >= 0.0, add, remove) + lost
    return CertifiedBounds(thresholds, np.clip(delta, TINY, 1.0), partial(_tests, plan, thresholds, lost + rounding))


@np.errstate(all="ignore")
def _tests(plan: PlaneLattice, thresholds: np.ndarray, lost: float) -> tuple[np.ndarray, np.ndarray]:
    """Errors of "reject if the label of the sum has a likelihood ratio above the threshold"."""
    laws, distances = zip(*(labelled(plan, kind) for kind in plan.kinds), strict=True)
    distance = sum(kind.steps * each for kind, each in zip(plan.kinds, distances, strict=True))
    ratio, (absent, slack_absent), (present, slack_present) = _sums(plan, laws, distance)
    fpr = above(thresholds, ratio, absent) + slack_absent + lost
    fnr = present.sum() - above(thresholds, ratio, present) + slack_present + lost
    return np.minimum(fpr, 1.0), np.minimum(fnr, 1.0)


def _sums(
    plan: PlaneLattice, laws: Sequence[PlaneLaw], distance: float = 0.0
) -> tuple[np.ndarray, _Composed, _Composed]:
    """After all steps: log LR of points that carry mass, B taken ``distance`` further; masses there, with slack."""
    sums = [_composed(plan, laws, masses) for masses in ([k.absent for k in laws], [k.present for k in laws])]
    live = np.flatnonzero((sums[0][0] > _NEGLIGIBLE) | (sums[1][0] > _NEGLIGIBLE))
    a = np.abs(plan.a.pitch * (plan.a.first + live // plan.b.size))
    centre = sum(kind.steps * kind.centre for kind in plan.kinds) + distance
    b = centre + plan.b.pitch * (plan.b.first + live % plan.b.size)
    ratio = b + a + np.log1p(np.exp(-2.0 * a)) - LOG_2  # b + log cosh a
    absent, present = ((mass[live], slack + 2.0 * _NEGLIGIBLE * len(mass)) for mass, slack in sums)
    return ratio, absent, present


def above(thresholds: np.ndarray, ratio: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Per threshold, in increasing order, the mass with a larger ratio."""
    cells = np.bincount(np.searchsorted(thresholds, ratio), mass, minlength=len(thresholds) + 1)
    return np.cumsum(cells[::-1])[::-1][1:]


def _thresholds(ratio: np.ndarray, absent: np.ndarray, present: np.ndarray, count: int) -> np.ndarray:
    """0, evenly spaced ones over what matters, and quantiles of the mean of both laws."""
    mean = 0.5 * (absent + present)
    heavy = np.flatnonzero(mean > _LIGHT)  # rounding leaves something at nearly all points
    ratio, mean = ratio[heavy], mean[heavy]
    order = np.argsort(ratio)
    total = np.cumsum(mean[order])
    levels = total[-1] * np.linspace(0.0, 1.0, count // 2 + 2)[1:-1]
    quantiles = ratio[order[np.searchsorted(total, levels)]]
    ends = ratio[order[np.searchsorted(total, [_TAIL, total[-1] * (1.0 - _TAIL)])]]
    sides = [np.linspace(0.0, end, count // 4) for end in np.clip(ends, -_FURTHEST, _FURTHEST)]
    chosen = np.unique(np.clip(np.concatenate([quantiles, *sides]), -_FURTHEST, _FURTHEST))
    apart = np.append(True, np.diff(chosen) > _APART)
    chosen = chosen[apart & (np.abs(chosen) > _APART)]
    return np.sort(np.append(chosen, 0.0))


def _composed(plan: PlaneLattice, laws: Sequence[PlaneLaw], masses: Sequence[np.ndarray]) -> _Composed:
    """Masses of the sum on the window, row by row, and a bound on the sum of errors, wrap-around included."""
    parts = []
    for kind, law, mass in zip(plan.kinds, laws, masses, strict=True):
        exponents = np.abs(plan.a.pitch * law.i) + np.abs(plan.b.pitch * law.j) + 2.0 * abs(kind.centre)
        parts.append(GridStep((law.i, law.j), mass, exponents, kind.steps))
    composed, slack = power(parts, (plan.a.size, plan.b.size), (plan.a.first, plan.b.first))
    for indices, window in (([law.i for law in laws], plan.a), ([law.j for law in laws], plan.b)):
        pitch = window.pitch
        axes = [
            _marginal(index, mass, pitch, kind.steps)
            for index, mass, kind in zip(indices, masses, plan.kinds, strict=True)
        ]
        largest = _LARGEST_TILT / (pitch * window.size)
        slack += outside(axes, pitch * window.first, window.size, pitch, (window.up, window.down), largest)
    if not slack < _MOST_SLACK:
        points = f"{plan.a.size} x {plan.b.size} points"
        raise NumericalError(f"sign lattice of {points}: rounding and wrap-around {slack:.1e}")
    return composed, slack


def _marginal(index: np.ndarray, mass: np.ndarray, pitch: float, steps: int) -> Tilted:
    """One kind of step seen along one axis."""
    first = int(index.min())
    total = np.bincount(index - first, mass)
    return Tilted(pitch * (first + np.arange(len(total))), total, steps)


def connected(plan: PlaneLattice, kind: Sketch) -> PlaneLaw:
    """Each cell of y on three points around its arc of (e^{l+}, e^{l-}), each of these on four lattice points.

    The arc falls and is convex, so it lies in the triangle of its ends and the corner (smaller, smaller). All three
    masses stay, that of "present with -" by symmetry: the experiment on the lattice determines the true one.

    Args:
        plan: the lattice.
        kind: one of its kinds.
    """
    checkpoint()
    noise = kind.noise
    y, weight, ends = plan.quadrature(kind)
    up, down = noise.loss(ends), noise.loss(-ends)
    x1 = _position(noise.loss(y) - up[:-1, None], np.diff(up)[:, None])
    y0 = _position(noise.loss(-y) - down[1:, None], -np.diff(down)[:, None])
    # Where one of the two is flat its position is noise, and does not matter: the other keeps its share.
    steeper = (np.diff(up) >= -np.diff(down))[:, None]
    x1, y0 = np.where(steeper, x1, np.minimum(x1, 1.0 - y0)), np.where(steeper, np.minimum(y0, 1.0 - x1), y0)
    masses = [(weight * share).sum(axis=1) for share in (y0, x1, 1.0 - x1 - y0)]
    corners = [(up[:-1], down[:-1]), (up[1:], down[1:]), (up[:-1], down[1:])]
    up, down = (np.concatenate([corner[k] for corner in corners]) for k in (0, 1))
    return _spread(0.5 * (up - down), 0.5 * (up + down) - kind.centre, np.concatenate(masses), plan, kind.centre)


def _position(loss: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Where e^loss lies between 1 and e^length > 1, from 0 to 1; 0 where these are the same number."""
    return np.clip(np.expm1(loss) / np.where(length > 0.0, np.expm1(length), 1.0), 0.0, 1.0)


def _spread(a: np.ndarray, b: np.ndarray, mass: np.ndarray, plan: PlaneLattice, centre: float) -> PlaneLaw:
    """Points (a, b) on the lattice points around them; the means of e^{b+a} and of e^{b-a} stay.

    a moves to its neighbours with E e^a / E e^-a kept; the factor by which both means grow is taken from b.
    """
    i = np.floor(a / plan.a.pitch).astype(np.int64)
    left, right = a - plan.a.pitch * i, plan.a.pitch * (i + 1) - a
    share = np.clip(np.sinh(left) / (np.sinh(left) + np.sinh(right)), 0.0, 1.0)
    growth = (1.0 - share) * np.exp(-left) + share * np.exp(right)
    b = b - np.log(growth)
    j = np.floor(b / plan.b.pitch).astype(np.int64)
    up = _position(b - plan.b.pitch * j, np.array(plan.b.pitch))
    shares = [(1.0 - share) * (1.0 - up), share * (1.0 - up), (1.0 - share) * up, share * up]
    absent = np.concatenate([mass * part for part in shares])
    i, j = np.concatenate([i, i + 1, i, i + 1]), np.concatenate([j, j, j + 1, j + 1])
    return _gathered(i, j, absent, absent * np.exp(centre + plan.a.pitch * i + plan.b.pitch * j))


def labelled(plan: PlaneLattice, kind: Sketch) -> tuple[PlaneLaw, float]:
    """The masses of each cell of y on the nearest lattice point; and the mean distance of b from its label.

    Args:
        plan: the lattice.
        kind: one of its kinds.
    """
    noise = kind.noise
    y, weight, ends = plan.quadrature(kind)
    a, b = odd_and_even(noise, 0.5 * (ends[1:] + ends[:-1]))
    b = b - kind.centre
    i, j = np.rint(a / plan.a.pitch).astype(np.int64), np.rint(b / plan.b.pitch).astype(np.int64)
    absent, present = weight.sum(axis=1), (weight * np.exp(noise.loss(y))).sum(axis=1)
    distance = float((absent + present) @ (b - plan.b.pitch * j)) / 2.0
    return _gathered(i, j, absent, present), distance


def _gathered(i: np.ndarray, j: np.ndarray, absent: np.ndarray, present: np.ndarray) -> PlaneLaw:
    """Masses that share a lattice point, added up."""
    checkpoint()
    span = int(j.max() - j.min()) + 1
    keys, where = np.unique((i - i.min()) * span + (j - j.min()), return_inverse=True)
    absent, present = np.bincount(where, absent), np.bincount(where, present)
    return PlaneLaw(keys // span + i.min(), keys % span + j.min(), absent, present)


def plan_of(kinds: Kinds, points: int) -> PlaneLattice:
    """Windows by Chernoff, under "absent" and "present with +"; pitches that cost the ratio about the same.

    Args:
        kinds: of steps.
        points: of the lattice, roughly.

    Raises:
        NumericalError: the lattice cannot follow the losses.
    """
    sketches = [Sketch.of(noise, steps) for noise, steps in kinds]
    ends = [
        [max(end_of(sketches, [sign * x for x in losses], tilt) for tilt in (0.0, 1.0)) for sign in (1.0, -1.0)]
        for losses in ([k.a for k in sketches], [k.b for k in sketches])
    ]
    lengths = [_ROOM * (max(high[0], 0.0) + max(low[0], 0.0)) for high, low in ends]
    if not np.all(np.isfinite(lengths)):
        raise NumericalError("sign lattice: no Chernoff bound")
    # log LR = B + log cosh A moves by tanh A per unit of A; tails matter, hence twice the deviation of A.
    deviation = np.sqrt(sum(k.steps * float(np.exp(k.log_mass) @ k.a**2) for k in sketches))
    pitches, sizes, margins = _pitches(lengths, min(2.0 * deviation, 1.0), sketches, points)
    windows = [
        Window(h, -int(_LOW_ROOM * max(low[0], 0.0) / h) - int(margin), size, high[1], low[1])
        for h, size, margin, (high, low) in zip(pitches, sizes, margins, ends, strict=True)
    ]
    return PlaneLattice(tuple(sketches), windows[0], windows[1])


@dataclass(frozen=True, slots=True)
class Sketch:
    """One kind of step on evenly spaced observations: enough to choose windows and cells. b is less its ``centre``."""

    noise: SignNoise
    steps: int
    centre: float
    log_mass: np.ndarray
    a: np.ndarray
    b: np.ndarray
    slopes: tuple[float, float]

    @classmethod
    def of(cls, noise: SignNoise, steps: int, places: int = _PLACES) -> Sketch:
        """So many equal steps, on ``places`` observations.

        Raises:
            NumericalError: a loss of one of them is out of reach.
        """
        y, log_mass = noise.planned(places)
        a, b = odd_and_even(noise, y)
        if not float(a[-1] + b[-1]) < _LARGEST_LOSS:
            raise NumericalError("sign lattice: the losses are too large")
        centre = float(b[len(y) // 2])
        both, b = np.exp(log_mass) * (1.0 + np.exp(a + b)), b - centre
        slope_a, slope_b = (float(np.sqrt(both @ np.gradient(x, y) ** 2 / both.sum())) for x in (a, b))
        return cls(noise, steps, centre, log_mass, a, b, (slope_a, slope_b))

    def walk(self, pitches: tuple[float, float]) -> np.ndarray:
        """Variances, in cells, of what all steps of this kind are moved by to reach lattice points of a and of b.

        A loss less than a pitch from a lattice point moves to it or to the next one with a variance of that share.
        """
        laws = np.exp(self.log_mass), np.exp(self.log_mass + self.centre + self.b + self.a)
        shares = [np.minimum(np.abs(x) / h, _FURTHEST_APART) for x, h in zip((self.a, self.b), pitches, strict=True)]
        return np.array([self.steps * (max(float(law @ share) for law in laws) + _OF_CELLS) for share in shares])

    def cell(self, pitches: tuple[float, float]) -> float:
        """Narrow enough for quadrature, and for cells that are smaller than those of the lattice."""
        return min(self.noise.finest, *(_CELL * h / max(x, TINY) for h, x in zip(pitches, self.slopes, strict=True)))


def _pitches(
    lengths: list[float], ratio: float, sketches: Sequence[Sketch], points: int
) -> tuple[tuple[float, float], tuple[int, int], tuple[float, float]]:
    """Pitches of a and of b, ``ratio`` times as wide; sizes of windows whose product is about ``points``; margins."""
    from scipy.fft import next_fast_len  # costly to import, and only this asks for it

    pitch = np.sqrt(lengths[0] * lengths[1] / (points * ratio))
    for _ in range(_FITTINGS):
        pitches = pitch, pitch * ratio
        margins = _margins(sketches, pitches)
        sizes = [x / h + 2.0 * margin for x, h, margin in zip(lengths, pitches, margins, strict=True)]
        if not max(sizes) <= _LONGEST:  # no transform is that long
            raise NumericalError(f"sign lattice: {sizes[0]:.3g} x {sizes[1]:.3g} points would be needed")
        rows, columns = (next_fast_len(int(size), real=True) for size in sizes)
        pitch *= np.sqrt(rows * columns / points)
    if rows * columns > _OVERSIZE * points:
        raise NumericalError(f"sign lattice: {rows} x {columns} points would be needed")
    if not max(pitches) < _COARSEST:
        raise NumericalError(f"sign lattice: its points would be {max(pitches):.1e} nats apart")
    return pitches, (rows, columns), margins


def _margins(sketches: Sequence[Sketch], pitches: tuple[float, float]) -> tuple[float, float]:
    """Cells around the window for the walk to lattice points. Each step of a, on average, takes something from b."""
    walked = np.sum([sketch.walk(pitches) for sketch in sketches], axis=0)
    taken = 0.5 * walked[0] * pitches[0] ** 2 / pitches[1]
    across, along = _MARGIN + np.floor(_WALK * np.sqrt(walked))
    return float(across), float(along + np.floor(taken))


def end_of(
    sketches: Sequence[Sketch], losses: Sequence[np.ndarray], tilt: float, tail: float = _TAIL
) -> tuple[float, float]:
    """(smallest y with P(S > y) <= ``tail`` by Chernoff, its exponent).

    Args:
        sketches: of all kinds of steps.
        losses: of each, at its observations: what is summed.
        tilt: 0 for "absent", 1 for "present".
        tail: in (0, 1).
    """
    logs = np.zeros(len(_CHERNOFF))
    for kind, loss in zip(sketches, losses, strict=True):
        law = kind.log_mass + tilt * (kind.centre + kind.b + kind.a)
        terms = np.multiply.outer(_CHERNOFF, loss) + law
        top = terms.max(axis=1)
        logs += kind.steps * (top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
    return window_end(logs, _CHERNOFF, tail)
