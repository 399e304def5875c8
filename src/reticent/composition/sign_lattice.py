"""The common-sign adversary on a two-dimensional lattice: few steps, or rare large losses.

Under "absent" the pairs (l+, l-) of one step, l+- = log(1 - p + p exp(+-m y - m^2/2)), are i.i.d. over the
steps; with a = (l+ - l-)/2, b = (l+ + l-)/2 and A, B their sums, LR = e^B cosh A. Upper side: each pair is
spread over points around it so that the means of e^{b+a} and e^{b-a} stay, that is the masses of absent,
present with + and present with -: the lattice experiment determines the true one. Lower side: each step
reports the nearest lattice point only; any region of the sum is a legal test. docs/relaxed-dpsgd.md has the
error terms. Shares no code with ``_sign_spectrum``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from reticent.composition._power import EPS, Part, Tilted, outside, power
from reticent.composition._sign_noise import SignNoise
from reticent.errors import NumericalError

_TAIL = 1e-11
_ROUNDING = 64 * EPS  # of one step's masses: quadrature, exponentials and bilinear weights
_FURTHEST = 200.0  # threshold
_NEGLIGIBLE = 1e-24  # lattice points with less mass are left out, on the safe side


@dataclass(frozen=True, slots=True)
class SignValues:
    """Certified numbers at ``thresholds`` l (log likelihood ratios, increasing, 0 among them).

    Attributes:
        thresholds: where the rest is known.
        delta: upper bounds on E_P (LR - e^l)_+ where l >= 0, on E_P (1 - e^{-l} LR)_+ where l < 0.
        fpr, fnr: upper bounds on the errors of one legal test per threshold.
    """

    thresholds: np.ndarray
    delta: np.ndarray
    fpr: np.ndarray
    fnr: np.ndarray


@dataclass(frozen=True, slots=True)
class _Window:
    """Indices from ``first``, ``size`` of them, and the Chernoff exponents that chose them."""

    first: int
    size: int
    up: float
    down: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """One step's lattice: a = i * pitch_a, b = centre + j * pitch_b; ``cell`` is the width of a cell of y."""

    noise: SignNoise
    steps: int
    centre: float
    pitch_a: float
    pitch_b: float
    a: _Window
    b: _Window
    cell: float

    @property
    def reach(self) -> float:
        """The largest sum of losses, roughly."""
        return self.pitch_a * self.a.size + self.pitch_b * self.b.size


@dataclass(frozen=True, slots=True)
class _Law:
    """Masses of one step on lattice points (i, j), of "absent" and of "present with +"; and what is left out."""

    i: np.ndarray
    j: np.ndarray
    absent: np.ndarray
    present: np.ndarray


def evaluate(noise: SignNoise, steps: int, count: int, points: int = 2**21) -> SignValues:
    """Bounds at about ``count`` thresholds from a lattice of about ``points`` points.

    Raises:
        NumericalError: the lattice cannot follow the losses.
    """
    plan = _plan(noise, steps, points)
    upper = _connected(plan)
    present, slack_present = _composed(plan, upper, upper.present)
    absent, slack_absent = _composed(plan, upper, upper.absent)
    lost = steps * noise.lost
    ratio, absent, present, left = _ratios(plan, absent, present, 0.0)
    thresholds = _thresholds(ratio, absent, present, count)
    q, p = (_above(thresholds, ratio, mass) for mass in (present, absent))
    grown, shrunk = np.exp(np.maximum(thresholds, 0.0)), np.exp(np.minimum(thresholds, 0.0))
    rounding = steps * _ROUNDING * (1.0 + plan.reach / 16.0)  # relative, of every mass
    slack_present, slack_absent = slack_present + left, slack_absent + left
    add = q - grown * p + rounding * (q + grown * p) + slack_present + grown * slack_absent
    q, p = present.sum() - q, absent.sum() - p
    remove = p - q / shrunk + rounding * (p + q / shrunk) + slack_absent + slack_present / shrunk
    delta = np.where(thresholds >= 0.0, add, remove) + lost
    fpr, fnr = _tests(plan, thresholds, lost + rounding)
    return SignValues(thresholds, np.clip(delta, 1e-300, 1.0), fpr, fnr)


def _tests(plan: _Plan, thresholds: np.ndarray, lost: float) -> tuple[np.ndarray, np.ndarray]:
    """Errors of "reject if the label of the sum has a likelihood ratio above the threshold"."""
    labels, lag = _labelled(plan)
    absent, slack_absent = _composed(plan, labels, labels.absent)
    present, slack_present = _composed(plan, labels, labels.present)
    ratio, absent, present, left = _ratios(plan, absent, present, plan.steps * lag)
    fpr = _above(thresholds, ratio, absent) + slack_absent + lost + left
    fnr = present.sum() - _above(thresholds, ratio, present) + slack_present + lost + left
    return np.minimum(fpr, 1.0), np.minimum(fnr, 1.0)


def _ratios(
    plan: _Plan, absent: np.ndarray, present: np.ndarray, lag: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """log LR of every lattice point that carries mass, the masses there, and the mass of the others."""
    live = np.flatnonzero((absent > _NEGLIGIBLE) | (present > _NEGLIGIBLE))
    left = 2.0 * _NEGLIGIBLE * len(absent)
    a = np.abs(plan.pitch_a * (plan.a.first + live // plan.b.size))
    b = plan.steps * plan.centre + plan.pitch_b * (plan.b.first + live % plan.b.size) + lag
    ratio = b + a + np.log1p(np.exp(-2.0 * a)) - np.log(2.0)  # b + log cosh a
    return ratio, absent[live], present[live], left


def _above(thresholds: np.ndarray, ratio: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Per threshold, the mass with a larger ratio."""
    cells = np.bincount(np.searchsorted(thresholds, ratio), mass, minlength=len(thresholds) + 1)
    return np.cumsum(cells[::-1])[::-1][1:]


def _thresholds(ratio: np.ndarray, absent: np.ndarray, present: np.ndarray, count: int) -> np.ndarray:
    """0, evenly spaced ones over what matters, and quantiles of the mean of both laws."""
    order = np.argsort(ratio)
    total = np.cumsum(0.5 * (absent + present)[order])
    levels = total[-1] * np.linspace(0.0, 1.0, count // 2 + 2)[1:-1]
    quantiles = ratio[order[np.searchsorted(total, levels)]]
    ends = ratio[order[np.searchsorted(total, [1e-11, total[-1] * (1.0 - 1e-11)])]]
    sides = [np.linspace(0.0, end, count // 4) for end in np.clip(ends, -_FURTHEST, _FURTHEST)]
    chosen = np.unique(np.clip(np.concatenate([quantiles, *sides]), -_FURTHEST, _FURTHEST))
    apart = np.append(True, np.diff(chosen) > 1e-9)
    chosen = chosen[apart & (np.abs(chosen) > 1e-9)]
    return np.sort(np.append(chosen, 0.0))


def _composed(plan: _Plan, law: _Law, masses: np.ndarray) -> tuple[np.ndarray, float]:
    """Masses of the sum on the window, row by row, and a bound on the sum of errors, wrap-around included.

    The two indices are packed into one: the second one's sum stays inside its window, so nothing carries.
    """
    exponents = np.abs(plan.pitch_a * law.i) + np.abs(plan.pitch_b * law.j) + 2.0 * abs(plan.centre)
    part = Part(law.i * plan.b.size + law.j, masses, exponents, plan.steps)
    points = plan.a.size * plan.b.size
    composed, slack = power([part], points, plan.a.first * plan.b.size + plan.b.first)
    for index, window, pitch in ((law.i, plan.a, plan.pitch_a), (law.j, plan.b, plan.pitch_b)):
        first = int(index.min())
        marginal = np.bincount(index - first, masses)
        axis = Tilted(pitch * (first + np.arange(len(marginal))), marginal, plan.steps)
        low, largest = pitch * window.first, 4e2 / (pitch * window.size)
        slack += outside([axis], low + pitch * (window.size - 1), window.up, pitch, largest)
        slack += outside([axis], low, -window.down, pitch, largest)
    if not slack < 1e-3:
        raise NumericalError(f"sign lattice of {points} points: rounding and wrap-around {slack:.1e}")
    return composed, slack


def _connected(plan: _Plan) -> _Law:
    """Each cell of y on three points around its arc of (e^{l+}, e^{l-}), each of these on four lattice points.

    The arc falls and is convex, so it lies in the triangle of its ends and the corner (smaller, smaller).
    """
    y, weight, ends = plan.noise.quadrature(plan.cell)
    up, down = plan.noise.loss(ends), plan.noise.loss(-ends)
    x1 = _position(plan.noise.loss(y) - up[:-1, None], np.diff(up)[:, None])
    y0 = _position(plan.noise.loss(-y) - down[1:, None], -np.diff(down)[:, None])
    # Where one of the two is flat its position is noise, and does not matter: the other keeps its share.
    steeper = (np.diff(up) >= -np.diff(down))[:, None]
    x1, y0 = np.where(steeper, x1, np.minimum(x1, 1.0 - y0)), np.where(steeper, np.minimum(y0, 1.0 - x1), y0)
    masses = [(weight * share).sum(axis=1) for share in (y0, x1, 1.0 - x1 - y0)]
    corners = [(up[:-1], down[:-1]), (up[1:], down[1:]), (up[:-1], down[1:])]
    up, down = (np.concatenate([corner[k] for corner in corners]) for k in (0, 1))
    return _spread(0.5 * (up - down), 0.5 * (up + down) - plan.centre, np.concatenate(masses), plan)


def _position(loss: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Where e^loss lies between 1 and e^length > 1, from 0 to 1; 0 where these are the same number."""
    return np.clip(np.expm1(loss) / np.where(length > 0.0, np.expm1(length), 1.0), 0.0, 1.0)


def _spread(a: np.ndarray, b: np.ndarray, mass: np.ndarray, plan: _Plan) -> _Law:
    """Points (a, b) on the lattice points around them; the means of e^{b+a} and of e^{b-a} stay.

    a moves to its neighbours with E e^a / E e^-a kept; the factor by which both means grow is taken from b.
    """
    i = np.floor(a / plan.pitch_a).astype(np.int64)
    left, right = a - plan.pitch_a * i, plan.pitch_a * (i + 1) - a
    share = np.clip(np.sinh(left) / (np.sinh(left) + np.sinh(right)), 0.0, 1.0)
    growth = (1.0 - share) * np.exp(-left) + share * np.exp(right)
    b = b - np.log(growth)
    j = np.floor(b / plan.pitch_b).astype(np.int64)
    up = _position(b - plan.pitch_b * j, np.array(plan.pitch_b))
    shares = [(1.0 - share) * (1.0 - up), share * (1.0 - up), (1.0 - share) * up, share * up]
    absent = np.concatenate([mass * part for part in shares])
    i, j = np.concatenate([i, i + 1, i, i + 1]), np.concatenate([j, j, j + 1, j + 1])
    return _gathered(i, j, absent, absent * np.exp(plan.centre + plan.pitch_a * i + plan.pitch_b * j))


def _labelled(plan: _Plan) -> tuple[_Law, float]:
    """The masses of each cell of y on the nearest lattice point; and how far labels lag in b, on average."""
    y, weight, ends = plan.noise.quadrature(plan.cell)
    middle = 0.5 * (ends[1:] + ends[:-1])
    up, down = plan.noise.loss(middle), plan.noise.loss(-middle)
    a, b = 0.5 * (up - down), 0.5 * (up + down) - plan.centre
    i, j = np.rint(a / plan.pitch_a).astype(np.int64), np.rint(b / plan.pitch_b).astype(np.int64)
    absent, present = weight.sum(axis=1), (weight * np.exp(plan.noise.loss(y))).sum(axis=1)
    lag = float((absent + present) @ (b - plan.pitch_b * j)) / 2.0
    return _gathered(i, j, absent, present), lag


def _gathered(i: np.ndarray, j: np.ndarray, absent: np.ndarray, present: np.ndarray) -> _Law:
    """Masses that share a lattice point, added up."""
    span = int(j.max() - j.min()) + 1
    keys, where = np.unique((i - i.min()) * span + (j - j.min()), return_inverse=True)
    absent, present = np.bincount(where, absent), np.bincount(where, present)
    return _Law(keys // span + i.min(), keys % span + j.min(), absent, present)


def _plan(noise: SignNoise, steps: int, points: int) -> _Plan:
    """Windows by Chernoff, under "absent" and "present with +"; pitches that cost the ratio about the same."""
    y, log_mass = noise.planned()
    up, down = noise.loss(y), noise.loss(-y)
    if not float(up[-1]) < 600.0:
        raise NumericalError("sign lattice: the losses are too large")
    a, b, centre = 0.5 * (up - down), 0.5 * (up + down), float(up[len(y) // 2])
    laws = (log_mass, log_mass + up)
    ends = [[max(_end(law, sign * x, steps) for law in laws) for sign in (1.0, -1.0)] for x in (a, b - centre)]
    lengths = [1.02 * (max(high[0], 0.0) + max(low[0], 0.0)) for high, low in ends]
    if not np.all(np.isfinite(lengths)):
        raise NumericalError("sign lattice: no Chernoff bound")
    mass = np.exp(log_mass)
    # log LR = B + log cosh A moves by tanh A per unit of A; tails matter, hence twice the deviation of A.
    narrower = min(2.0 * np.sqrt(steps * float(mass @ a**2)), 1.0)
    margin = 8 + int(6.0 * np.sqrt(steps))  # moving to lattice points spreads either sum by sqrt(steps) cells
    pitch = np.sqrt(lengths[0] * lengths[1] / (points * narrower))
    for _ in range(12):
        pitches = pitch, pitch * narrower
        if max(x / h for x, h in zip(lengths, pitches, strict=True)) > 2**31:  # no transform is that long
            raise NumericalError("sign lattice: its window needs too many points")
        sizes = [next_fast_len(int(x / h) + 2 * margin, real=True) for x, h in zip(lengths, pitches, strict=True)]
        pitch *= np.sqrt(sizes[0] * sizes[1] / points)
    if sizes[0] * sizes[1] > 1.3 * points:
        raise NumericalError(f"sign lattice: {sizes[0]} x {sizes[1]} points would be needed")
    windows = [
        _Window(-int(1.01 * max(low[0], 0.0) / h) - margin, size, high[1], low[1])
        for h, size, (high, low) in zip(pitches, sizes, ends, strict=True)
    ]
    both = mass * (1.0 + np.exp(up))
    slopes = [float(np.sqrt(both @ np.gradient(x, y) ** 2 / both.sum())) for x in (a, b)]
    cell = min(noise.finest, *(0.4 * h / x for h, x in zip(pitches, slopes, strict=True)))
    return _Plan(noise, steps, centre, pitches[0], pitches[1], windows[0], windows[1], cell)


def _end(log_mass: np.ndarray, losses: np.ndarray, steps: int) -> tuple[float, float]:
    """(smallest y with P(S > y) <= _TAIL by Chernoff, its exponent)."""
    exponents = np.geomspace(1e-3, 1e6, 181)
    logs = np.array([_log_sum(log_mass + c * losses) for c in exponents.tolist()])
    ends = (steps * logs - np.log(_TAIL)) / exponents
    best = int(np.nanargmin(ends))
    return float(ends[best]), float(exponents[best])


def _log_sum(terms: np.ndarray) -> float:
    """log of the sum of e^terms."""
    top = float(terms.max())
    return top + float(np.log(np.exp(terms - top).sum()))
