"""Two-dimensional Fourier route of the common sign; docs/theory/relaxed/sign.md derives every bound.

In the notation of ``step``, the likelihood ratio e^B cosh A has on the line Re s = c < 0 the Mellin transform

    H(s) = E[e^{sB} cosh^s A] = (1/2 pi) int K_s(w) phi(s, w)^T dw,    phi(s, w) = E[e^{s b + i w a}],

(of steps that differ, the product of their phi) with K_s the Fourier transform of cosh^s, a product of Gamma
functions. (A, B) is blurred by a Gaussian of standard deviation ``blur``: above, the blur is a martingale for the
likelihood ratio, so it only helps the attacker; below, it is noise that the attacker adds, so its test is a legal
one. It makes every integral converge with a known tail, and it costs both sides once, not once per step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import erfc, loggamma

from reticent.adversaries.relaxed.sign import copies
from reticent.adversaries.relaxed.sign.kernel import GammaTable, commensurate, log_cosh_variance, turned
from reticent.adversaries.relaxed.sign.noise import GaussianSign, Kinds, odd_and_even
from reticent.adversaries.relaxed.sign.step import (
    REACH,
    CertifiedBounds,
    FoldedNodes,
    OutsideBound,
    TiltedLaw,
    TransformTable,
)
from reticent.kernel.curves._logs import EPS, TINY
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.curves.polygon import mirrored
from reticent.kernel.curves.sums import roundings, weighted
from reticent.kernel.errors import NumericalError
from reticent.kernel.stopping import checkpoint

_LOG_MAGNITUDE = 5.0  # log of the largest term over the result: what cancels
_ALIAS = 30.0  # exponent that makes one period of the damped payoff negligible
_CUT = 9.0  # standard deviations of the blur in frequency
_LOG_TINY = math.log(1e-8)  # delta at the last threshold
_MOST_FREQUENCIES = 3_000_000  # pairs of them that are summed
_FINE, _COARSE = 40.0, 14.0  # exponents of the strip bound
_COARSE_REACH = 5.5  # deviations of y that coarse nodes cover: beyond lies less than 1e-7
_ROUGH_SPACING = 0.02  # of nodes for real moments
_ULPS = 1e-15  # relative rounding of sums that this file returns
_COUNT, _COARSE_COUNT = 640, 48  # thresholds to either side of 0: those that are answered, those that place them
_RISE = 1e-3  # of -log delta from one coarse threshold to the next, at least
_CHERNOFF = np.geomspace(1e-3, 1e3, 61)  # exponents that plan the grids, over the deviation of A
_FURTHEST_LINE, _HALVINGS = 1e4, 60  # the line that is looked for, in the same units, and the search for it
_MORE = 4.0  # multiple of the line at which the copies down in B are planned
_BESIDE = 30.0  # exponent that makes A beyond half the width negligible
_FINEST_SPACING, _WIDEST_SPACING, _STRIP_SPACING = 1e-4, 0.25, 0.04  # of nodes in y; of places on the strip's edge
_THIN, _THICK, _STRIPS = 0.01, 6.0, 16  # half widths of strips that are tried, and how many
_SINGULAR = 0.9  # of the way to the first singularity: no strip is wider
_BLOCK = 50_000  # frequencies at once
_ROUNDED, _PER_EXPONENT = 40.0, 4.0  # eps of one term, and for each unit of its exponents
_MISSING = 40.0  # what all steps are missing at a frequency at which anything is left


@dataclass(frozen=True, slots=True)
class FourierPlan:
    """Line, grids and blur. Frequencies are tau_j = j dtau of B and w_k = k dw of A, from 0 on.

    Attributes:
        kinds: the steps.
        rough: nodes for real moments, of each kind.
        line: c < 0.
        low, high: the thresholds of interest are in [-low, high].
        blur_a, blur_b: standard deviations.
        dtau, dw: distances between frequencies of B and of A.
    """

    kinds: Kinds
    rough: Sequence[FoldedNodes]
    blur_a: float
    blur_b: float
    line: float = 0.0
    low: float = 0.0
    high: float = 0.0
    dtau: float = 1.0
    dw: float = 1.0

    @property
    def ends(self) -> tuple[float, float]:
        """Where the blur alone has damped the frequencies of B and of A."""
        return _CUT / self.blur_b, _CUT / self.blur_a

    @property
    def beyond(self) -> float:
        """Bound on what the blur leaves of all frequencies beyond its ends, as a sum times their spacings."""
        edges = (1.0 + self.blur_b * self.dtau) * (1.0 + self.blur_a * self.dw)
        return math.pi * float(erfc(_CUT / math.sqrt(2.0))) / (self.blur_a * self.blur_b) * edges

    @property
    def blur_mean(self) -> float:
        """Mean of the blur of B: E e^{blur of B} cosh(blur of A) = 1."""
        return -0.5 * (self.blur_a**2 + self.blur_b**2)

    def cumulant(self, s: float, w: float) -> float:
        """log E_P e^{s B + w A} after all steps, blurred; real arguments."""
        noise = 0.5 * (self.blur_b * s) ** 2 + 0.5 * (self.blur_a * w) ** 2 + self.blur_mean * s
        return self.total(lambda nodes: nodes.log_moment(s, w)) + noise

    def total(self, of: Callable[[FoldedNodes], float]) -> float:
        """Sum over all steps of what ``of`` finds on the nodes of one."""
        return sum(steps * of(nodes) for (_, steps), nodes in zip(self.kinds, self.rough, strict=True))

    def copies(self) -> copies.Kinds:
        """What the two trapezoid sums add."""
        scale = math.sqrt(self.total(FoldedNodes.square) + self.blur_a**2)
        return copies.kinds_of(self.cumulant, scale, -self.line, 2.0 * math.pi / self.dtau, 2.0 * math.pi / self.dw)


class Frequencies(NamedTuple):
    """Which are summed of one law: at tau_j the first ``counts[j]`` of A.

    Attributes:
        plan: with their spacings.
        lift: 0 for "absent", 1 for "present".
        counts: shape (n,), whole numbers >= 1.
        rest: bound on |phi^T| times the blur, relative to phi(c, 0)^T, summed over all others, times the spacings.
    """

    plan: FourierPlan
    lift: float
    counts: np.ndarray
    rest: float

    @property
    def box(self) -> tuple[float, float]:
        """Around all that are summed."""
        return len(self.counts) * self.plan.dtau, int(self.counts.max()) * self.plan.dw

    def points(self) -> np.ndarray:
        """s_j = c + i tau_j on the line."""
        return self.plan.line + 1j * self.plan.dtau * np.arange(len(self.counts))


@dataclass(frozen=True, slots=True)
class Mellin:
    """H(s_j) of one law, and what is summed.

    Attributes:
        summed: the frequencies.
        values: at the points of ``summed``.
        rounding: of a sum of them over |s|, in units of the machine epsilon.
    """

    summed: Frequencies
    values: np.ndarray
    rounding: float

    def error(self, thresholds: np.ndarray) -> np.ndarray:
        """Absolute error of P(log LR <= l), or of Q(log LR <= l): frequencies left out, and rounding.

        Times e^l that of "absent" bounds the error of the payoff as well, because |1/(s(s-1))| <= 1/|s| where Re s < 0.
        """
        plan, c, lift = self.summed.plan, self.summed.plan.line, self.summed.lift
        # log of int cosh^c, the largest modulus of K_s on the line
        kernel = float(2.0 * loggamma(-0.5 * c) - loggamma(-c) - (c + 1.0) * math.log(2.0))
        # log of the largest modulus of phi^T, and of the blur's factor
        size = plan.total(lambda nodes: nodes.log_moment(c + lift, lift)) + 0.5 * (plan.blur_b * c) ** 2
        level = math.exp(kernel + size + plan.blur_mean * c) / (2.0 * math.pi**2 * abs(c))
        return np.exp(-c * thresholds) * (4.0 * self.summed.rest * level + EPS * self.rounding)


def bounds(kinds: Kinds, blur: float, count: int = _COUNT) -> CertifiedBounds:
    """Certified bounds at ``count`` thresholds per direction.

    Args:
        kinds: sampled steps, of each kind so many that its transform decays.
        blur: standard deviation of the blur relative to those of A and of the log likelihood ratio.

    Raises:
        NumericalError: the frequencies needed do not fit the budget; a larger ``blur`` needs fewer.
    """
    plan = plan_of(kinds, blur)
    summed, present = (frequencies_of(plan, lift) for lift in (0.0, 1.0))
    absent = transform_of(summed)
    low, high = np.linspace(-plan.low, 0.0, _COARSE_COUNT), np.linspace(0.0, plan.high, _COARSE_COUNT)
    coarse = np.concatenate([low[:-1], high])
    thresholds = _even_thresholds(coarse, _put(absent, coarse), count)
    put = _put(absent, thresholds)
    # Put-call parity where l >= 0; the rounding of what is left is added.
    above, rounding = thresholds >= 0.0, _ULPS * np.exp(np.maximum(thresholds, 0.0))
    delta = np.where(above, -np.expm1(thresholds) + put, put * np.exp(-thresholds)) + rounding
    if not np.all(np.isfinite(delta)):
        raise NumericalError("common-sign composition: the losses are too large")
    return CertifiedBounds(thresholds, np.clip(delta, TINY, 1.0), partial(_tests, absent, present, thresholds))


def estimate(kinds: Kinds, blur: float, most: int) -> Callable[[np.ndarray], np.ndarray]:
    """delta(epsilon >= 0) of the add direction without any certificate: for steering and drawing, never for claims.

    Args:
        kinds, blur: as of ``bounds``.
        most: pairs of frequencies that may be summed; a million takes about a fifth of a second.

    Raises:
        NumericalError: more are needed; a larger ``blur`` needs fewer.
    """
    absent = transform_of(frequencies_of(plan := plan_of(kinds, blur), 0.0, most))

    def delta(epsilon: np.ndarray) -> np.ndarray:
        epsilon = np.minimum(epsilon, plan.high)  # beyond, nothing is known
        return np.exp(epsilon) * inverted(absent, epsilon, 1) - np.expm1(epsilon)

    return delta


def _tests(absent: Mellin, frequencies: Frequencies, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the tests "LR > e^l"; the ``frequencies`` are those of "present"."""
    present, alias = transform_of(frequencies), copies.most_of(absent.summed.plan.copies(), ratio)
    fpr = np.clip(1.0 + inverted(absent, ratio, 0) + absent.error(ratio) + alias, 0.0, 1.0)
    fnr = np.clip(present.error(ratio) - inverted(present, ratio, 0), 0.0, 1.0)
    return np.minimum(fpr + _ULPS, 1.0), np.minimum(fnr + _ULPS, 1.0)


def _even_thresholds(ratio: np.ndarray, put: np.ndarray, count: int) -> np.ndarray:
    """Thresholds between which log delta moves by equal amounts, down to where the error takes over."""
    zero = int(np.searchsorted(ratio, 0.0))
    halves = []
    for size, delta in (
        (ratio[zero:], (1.0 - np.exp(ratio) + put)[zero:]),
        (-ratio[zero::-1], (put * np.exp(-ratio))[zero::-1]),
    ):
        log_delta = np.log(np.clip(delta, math.exp(_LOG_TINY), 1.0))
        last = int(np.argmin(log_delta)) or 1
        depth = np.maximum.accumulate(-log_delta[: last + 1])
        depth = depth - depth[0] + _RISE * np.arange(last + 1)
        halves.append(np.interp(np.linspace(0.0, depth[-1], count), depth, size[: last + 1]))
    return mirrored(-halves[1], halves[0])


def _put(absent: Mellin, ratio: np.ndarray) -> np.ndarray:
    """E_P (e^l - LR)_+ at ``ratio``, with every error on the safe side."""
    return np.maximum(np.exp(ratio) * (inverted(absent, ratio, 1) + absent.error(ratio)), 0.0)


def inverted(mellin: Mellin, ratio: np.ndarray, order: int) -> np.ndarray:
    """The sum over s of e^(-l s) H(s) / s, or with ``order`` 1 / (s (s - 1)), at ``ratio``; its real part.

    With order 0 it is -P(log LR <= l), off by what copies add and by ``Mellin.error``.
    """
    s, spacing = mellin.summed.points(), mellin.summed.plan.dtau
    weights = mellin.values / (s * (s - 1.0) if order else s) * (spacing / math.pi)
    weights[0] *= 0.5
    return np.exp(-s[0].real * ratio) * turned(spacing, weights, ratio)


def plan_of(kinds: Kinds, blur: float) -> FourierPlan:
    """Line, grids and blur by Chernoff bounds; whatever is planned, the errors that are stated hold."""
    plan = FourierPlan(kinds, [FoldedNodes.of(step, _ROUGH_SPACING) for step, _ in kinds], 0.0, 0.0)
    scale = math.sqrt(plan.total(FoldedNodes.square))
    spread = plan.total(lambda nodes: float(nodes.weight @ (nodes.b - nodes.weight @ nodes.b) ** 2))
    plan = replace(plan, blur_a=blur * scale, blur_b=blur * math.sqrt(spread + log_cosh_variance(scale)))
    cumulant, grid, most = plan.cumulant, _CHERNOFF / scale, _FURTHEST_LINE / scale
    high = min((cumulant(1.0 + t, 1.0 + t) - _LOG_TINY) / t for t in grid)
    low = min((cumulant(-t, 0.0) - _LOG_TINY) / t for t in grid)
    line = float(halved(lambda at: cumulant(-float(at), 0.0) + at * high < _LOG_MAGNITUDE, 0.0, most, _HALVINGS)[0])
    period = (cumulant(-_MORE * line, 0.0) + _MORE * line * high + _ALIAS) / ((_MORE - 1.0) * line)
    period = max(period, (_ALIAS + line * high) / ((1.0 - copies.LESS) * line))
    width = 2.0 * min((cumulant(0.0, t) + _BESIDE) / t for t in grid)
    width = max(width, 2.0 * (high + low + math.log(2.0)) + width)
    dtau, dw = commensurate(2.0 * math.pi / period, 2.0 * math.pi / width)
    return replace(plan, line=-line, low=float(low), high=float(high), dtau=float(dtau), dw=float(dw))


def frequencies_of(plan: FourierPlan, lift: float, most: int = _MOST_FREQUENCIES) -> Frequencies:
    """Those outside of which the transform is proven negligible: no more than what lies beyond the blur's ends.

    Raises:
        NumericalError: more than ``most`` would be needed.
    """
    bound = outside_bound(plan, lift)
    w, rest = (np.full(2, plan.ends[1]), 0.0) if bound is None else bound.summed((plan.dtau, plan.dw), plan.beyond)
    t = np.array([0.0, plan.ends[0]]) if bound is None else bound.t
    last = float(t[np.flatnonzero(w)[-1]]) / plan.dtau
    if last < most:
        cells = np.searchsorted(t, plan.dtau * np.arange(math.ceil(last) + 1))
        counts = np.ceil(np.append(w, 0.0)[cells] / plan.dw).astype(np.int64) + 1
        if counts.sum() <= most:
            return Frequencies(plan, lift, counts, rest + plan.beyond)
    raise NumericalError(f"common-sign composition: it needs more than {most} frequencies")


def outside_bound(plan: FourierPlan, lift: float) -> OutsideBound | None:
    """Bounds on |phi/phi(c, 0)|^T at all frequencies within the reach of the blur; None if there are too many cells."""

    def laws(ends: tuple[float, float]) -> list[TiltedLaw]:
        """On nodes that are enough for moduli to 1e-5."""
        steps = [(step, node_spacing(plan, step, ends, _COARSE, _COARSE_REACH)) for step, _ in plan.kinds]
        return [TiltedLaw.of(FoldedNodes.of(*each, _COARSE_REACH), plan.line, lift) for each in steps]

    return OutsideBound.of(laws, [steps for _, steps in plan.kinds], plan.ends)


def node_spacing(
    plan: FourierPlan, step: GaussianSign, frequencies: tuple[float, float], exponent: float, reach: float = REACH
) -> float:
    """Spacing in y at which the strip bound of the trapezoid rule is e^-exponent up to ``frequencies`` of B, A."""
    d, level, b, a = _strips(step, plan.line, reach)
    highest = np.max(level + frequencies[0] * b + frequencies[1] * a, axis=1)
    spacing = 2.0 * math.pi * d / (exponent + np.maximum(highest, 0.0))
    return float(np.clip(np.max(spacing), _FINEST_SPACING, _WIDEST_SPACING))


@lru_cache(maxsize=32)  # one plan asks for the same strips up to many frequencies
def _strips(step: GaussianSign, line: float, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Half widths of strips; on their edges, a row each, the log of the integrand without phases, |Im b| and |Im a|."""
    slope = step.slope
    y = np.arange(-reach - 2.0 * slope, reach + 2.0 * slope, _STRIP_SPACING)
    d = np.geomspace(_THIN, min(_THICK, _SINGULAR * math.pi / slope), _STRIPS)
    a, b = odd_and_even(step, y + 1j * d[:, None])
    level = 0.5 * (d[:, None] ** 2 - y * y) + line * b.real + np.maximum(b.real + np.abs(a.real), 0.0)
    return d, level, np.abs(b.imag), np.abs(a.imag)


def transform_of(summed: Frequencies) -> Mellin:
    """H(s_j) under P (lift 0), or under the mean of Q+ and Q-."""
    plan, s, counts = summed.plan, summed.points(), summed.counts
    w = plan.dw * np.arange(int(counts.max()))
    nodes = [
        FoldedNodes.of(
            step, node_spacing(plan, step, summed.box, _FINE), REACH - (1.0 - summed.lift) * 2.0 * step.slope
        )
        for step, _ in plan.kinds  # under "absent", the further out the less e^(c b) there is
    ]
    tables = [
        TransformTable.of(each, steps, w, summed.lift) for each, (_, steps) in zip(nodes, plan.kinds, strict=True)
    ]
    gamma, doubt = GammaTable(s, plan.dtau, plan.dw, len(w)), _doubt(tables, summed)
    blur_b, blur_a = 0.5 * plan.blur_b**2 * s * s + plan.blur_mean * s, 0.5 * (plan.blur_a * w) ** 2
    values, total, start = np.empty(len(s), dtype=complex), 0.0, 0
    while start < len(s):
        checkpoint()
        part = slice(start, start + max(1, min(len(s) - start, _BLOCK // int(counts[start]))))
        count = int(counts[part].max())
        kernel = gamma.log_kernel(part, count) + blur_b[part, None] - blur_a[:count]
        powers = [one.powers(s[part], count) for one in tables]
        values[part] = 0.0
        for logs in zip(*powers, strict=True):
            size = np.exp(kernel.real + sum(log.size for log in logs)) / len(powers[0])
            phase = kernel.imag + sum(log.phase for log in logs)
            real, imag = (_sum_over(size * wave(phase), plan) for wave in (np.cos, np.sin))
            values[part] += real + 1j * imag
            total += float(doubt[part] @ size.sum(axis=1))
        start = part.stop
    return Mellin(summed, values, total * plan.dw * plan.dtau / math.pi**2)


def _doubt(tables: Sequence[TransformTable], summed: Frequencies) -> np.ndarray:
    """Relative rounding error of one term over the machine epsilon, divided by |s|: exponents, powers, sums.

    Terms of a transform are at most |s b|, |e^b sinh a| and what is missing at the frequency of A.
    """
    s, powers = summed.points(), 0.0
    for steps, (weight, a, b) in ((one.steps, one.nodes) for one in tables):
        size = steps * (np.abs(s) * float(weight @ np.abs(b)) + float(weight @ np.abs(np.exp(b) * np.sinh(a))))
        powers = powers + (_PER_EXPONENT + roundings(len(weight))) * (size + _MISSING)
    sums = 0.5 * roundings(int(summed.counts.max())) + 2 * roundings(len(s), parts=2)
    return (_ROUNDED * len(tables) + sums + _PER_EXPONENT * np.abs(loggamma(-s)) + powers) / np.abs(s)


def _sum_over(terms: np.ndarray, plan: FourierPlan) -> np.ndarray:
    """Trapezoid in w over the whole axis, from w >= 0."""
    return (weighted(terms, np.ones(terms.shape[1])) - 0.5 * terms[:, 0]) * (plan.dw / math.pi)
