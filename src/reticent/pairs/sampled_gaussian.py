"""The loss law of one Poisson-sampled Gaussian step as a transform, with a bound on every error.

It is integrated by the trapezoid rule in the observation x. Bounds, derived in docs/theory/composition.md: rule
(analyticity in a strip), nodes left out (Gaussian tails), rounding; and a bound on |M(c + it)| / M(c) for all t beyond
a given one (layers of a unimodal minorant of the loss density).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reticent.kernel.curves.sums import roundings, weighted
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.columns import Numbers, against_rows, any_of, functions, joined
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture, Nodes
from reticent.pairs.line_decay import Closer, Each, LineDecay
from reticent.pairs.loss_cells import LossCells, chunks
from reticent.pairs.sampled_tails import SampledTails
from reticent.pairs.strips import argument, marked, odds_at, strips
from reticent.pairs.transforms import Decay, Transform, turned

_EPS = 2.0**-52
FAR = np.array([8.0, 30.0])
"""Where the right tail is cut, in standard deviations past the nodes."""
_LAYERS = np.linspace(0.0, 1.0, 161)  # cells of the decay bound, as shares of the nodes
LINES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
"""Of the closer decay bound: shares of the largest angle."""
MOST_GROWTH = 9.0
"""Angle times s of these lines: the normal density grows by half its square."""
_NO_MATTER = 0.1  # of what the rule's error was planned for: no further strip is tried below it
_NARROW = (4.0, 1.3)  # strips for fast oscillation, in units of the one whose rule leaves e^-digits at frequency 0
_OVERFLOWN = 1e299
_MAX_NODES = 10_000
_PLACES_AHEAD = 32  # at which the nodes may end
_TOGETHER, _FEWEST = 16_000, 64  # nodes of all kinds of a block, where each counts as at least so many
_ROOT_TWO = 1.4142135623730951


class RealMoments(NamedTuple):
    """E_P[e^(cL)] - 1 at real exponents c.

    Attributes:
        excess: one for each exponent.
        rule: bounds on the trapezoid rule's error.
        rest: bounds on all other errors, those of the two identities that the excess subtracts included.
        outside: bounds on the sum (and integral) of the integrand outside the nodes.
        cells: logs of bounds on the integral of the integrand over each cell, along the last axis.
    """

    excess: np.ndarray
    rule: np.ndarray
    rest: np.ndarray
    outside: np.ndarray
    cells: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Bounds on all errors together."""
        return self.rule + self.rest


@dataclass(frozen=True)
class SampledGaussian:
    """One Poisson-sampled Gaussian step, H0 = absent; or several kinds of them, each for itself.

    P = N(0, s^2) against (1 - rate) P + rate N(1, s^2); or, ``antipodal``, the two mixtures with means -1
    and +1. Only exponents c >= 1/2 are supported for the antipodal pair, which is symmetric.

    Of several kinds noise, rate and count have the shape (kinds, 1), and whatever is found has kinds along its first
    axis. All have as many nodes as the one that needs most.

    Attributes:
        noise_multiplier: s > 0, in units of the shift.
        rate: in (0, 1).
        antipodal: the pair of the replacement relation.
        count: how often the step runs; the node range follows it.
        reach: largest frequency times loss that the nodes must resolve.
        largest: largest exponent c for which M is wanted.
        digits: what the nodes leave out, and the rule's error, are planned below e^-digits per run.
        planned: the strips that are tried, in (0, pi): the one that their distance is planned for, and narrower ones;
            if empty it is planned for the widest of ``angles``, and these are tried.
        work: nodes times frequencies that a transform may take.
    """

    noise_multiplier: Numbers
    rate: Numbers
    antipodal: bool
    count: Numbers
    reach: float
    largest: float
    digits: float = 42.0
    planned: tuple[float, ...] = ()
    work: int = 4_000_000

    @cached_property
    def pair(self) -> GaussianMixture:
        return GaussianMixture(self.noise_multiplier, (self.rate,), antipodal=self.antipodal)

    @cached_property
    def _tails(self) -> SampledTails:
        return SampledTails(self.pair)

    @cached_property
    def angles(self) -> np.ndarray:
        """The strips on which the rule's error is bounded, along the first axis."""
        return strips(self.noise_multiplier, self.digits + self._log_count)

    @property
    def _log_count(self) -> Numbers:
        return functions(self.count).log(self.count)

    @property
    def _several(self) -> bool:
        return isinstance(self.noise_multiplier, np.ndarray)

    @cached_property
    def _span(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distance of the nodes, and the first and the last, in units of it."""
        s, tail = self.noise_multiplier, -(self.digits + 1.75 + self._log_count)
        z = (-2.0 * tail) ** 0.5
        high, furthest = 1.0 + z * s, max(self.largest, 1.0) + z * s
        if any_of(furthest > 1e4 * s):
            raise NumericalError("characteristic function: an exponent is out of reach of the nodes")
        step = functions(s).most(s, (furthest - high) / _PLACES_AHEAD)
        while any_of(short := (high < furthest) & (self._tails.right(self.largest, high) > tail)):
            high = high + step * short
        low = -high if self.antipodal else -z * s
        # The rule's error is about exp(reach + (angle s)^2/2 - 2 pi angle s^2/dx).
        angle = self.planned[0] if self.planned else self.angles[-1]
        exponent = self.digits + self._log_count + self.reach + 0.5 * (angle * s) ** 2
        dx = np.minimum(2.0 * math.pi * angle * s**2 / exponent, 0.55 * s)
        return dx, low // dx, -(-high // dx)

    @cached_property
    def nodes(self) -> Nodes:
        dx, first, last = self._span
        most = int((last - first).max())
        if most > _MAX_NODES:
            raise NumericalError(f"characteristic function: {most} nodes would be needed")
        return self.pair.nodes((first + np.arange(float(most + 1))) * dx, dx)

    def blocks(self) -> list[SampledGaussian]:
        """The same kinds, those together whose nodes are about as many and fit into memory."""
        _, first, last = self._span
        sizes = np.maximum(last - first, _FEWEST).ravel()
        order, blocks, start = np.argsort(sizes, kind="stable"), [], 0
        while start < len(order):
            fit = sizes[order[start:]] * np.arange(1, len(order) - start + 1) <= _TOGETHER
            end = start + max(int(np.count_nonzero(fit)), 1)
            part = order[start:end]
            noise, rate, count = (np.asarray(v)[part] for v in (self.noise_multiplier, self.rate, self.count))
            blocks.append(replace(self, noise_multiplier=noise, rate=rate, count=count))
            start = end
        return blocks

    @property
    def _ends(self) -> tuple[Numbers, Numbers]:
        """The first node, and the last."""
        x = self.nodes.x
        return (x[:, :1], x[:, -1:]) if self._several else (float(x[0]), float(x[-1]))

    @cached_property
    def _growth(self) -> np.ndarray:
        return np.expm1(np.minimum(self.nodes.loss, 700.0))

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """E_P[e^L - 1] on the nodes; weights times errors in 16 eps, of losses and the sum; |e^L - 1| times these."""
        grid, growth = self.nodes, self._growth[..., None, :]
        blurred = grid.weight * (grid.blur + roundings(grid.x.shape[-1]) / 32.0)
        return weighted(growth, grid.weight), blurred, _summed(np.abs(growth), blurred)

    # Real exponents.

    def real(self, exponents: np.ndarray) -> RealMoments:
        """Moments of all ``exponents`` in few array calls; 0 and 1 are added for the identities E_P 1 = E_P e^L = 1."""
        grid = self.nodes
        powers = np.concatenate([exponents, [0.0, 1.0]])
        outside, cells = self.left_out(powers.tolist()), self._cells(powers)
        whole = np.add.reduce(np.exp(np.minimum(cells, 700.0)), axis=-1)
        factors = np.minimum.reduce([self.log_strip_factor(powers, angle) for angle in self.planned or self.angles])
        rule = np.exp(np.minimum(factors, 700.0)) * (whole + 2.0 * outside)
        unit = np.add.reduce((rule + outside)[..., -2:], axis=-1, keepdims=True)
        rule, outside, cells = rule[..., :-2], outside[..., :-2], cells[..., :-2, :]
        grown, size = np.expm1(exponents[:, None] * grid.loss[..., None, :]), np.abs(exponents)
        total, blurred, uneven = self._sums
        steady = _summed(np.abs(grown), blurred) + size * uneven
        excess = weighted(grown, grid.weight) - exponents * total
        for k in [k for k, power in enumerate(powers.tolist()[:-2]) if power == 0.5]:
            # e^(L/2) - 1 - (e^L - 1) / 2 is a square
            square = grown[..., k : k + 1, :] ** 2
            excess[..., k] = -0.5 * weighted(square, grid.weight)[..., 0]
            steady[..., k] = _summed(square, blurred)[..., 0]
        rest = 2.0 * rule + (1.0 + size) * unit + 4.0 * outside + 16 * _EPS * steady
        return RealMoments(excess, rule, rest, outside, cells)

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        loss = self.nodes.loss
        result = np.full((*loss.shape[:-1], len(exponents)), np.inf)
        fits = np.maximum(exponents * float(loss.max()), exponents * float(loss.min())) <= 700.0
        for part in chunks(np.flatnonzero(fits), loss.size):
            found = self.real(exponents[part])
            bound = found.excess + found.error
            result[..., part] = np.where(bound < 1e280, np.log1p(bound), np.inf)
        return result

    def log_scale(self, c: float) -> np.ndarray:
        terms = np.expm1(c * self.nodes.loss) - c * self._growth
        found: np.ndarray = np.log1p(self._over_nodes(self.nodes.weight * terms))
        return found

    def moments(self, c: float) -> tuple[np.ndarray, np.ndarray]:
        grid = self.nodes
        tilted = grid.weight * np.exp(np.minimum(c * grid.loss, 700.0))
        tilted /= self._over_nodes(tilted)
        mean = self._over_nodes(tilted * grid.loss)
        return mean, self._over_nodes(tilted * (grid.loss - mean) ** 2)

    def _over_nodes(self, values: np.ndarray) -> np.ndarray:
        """Sums over nodes: a number, or one for each kind."""
        total: np.ndarray = np.add.reduce(values, axis=-1)
        return total[..., None] if self._several else total

    # Complex ones.

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        grid = self.nodes
        if grid.x.shape[-1] * len(frequencies) > self.work:
            raise NumericalError(f"characteristic function: nodes times frequencies exceed {self.work / 1e6:g} million")
        if c * float(grid.loss.max() if c > 0.0 else grid.loss.min()) > 700.0:
            raise NumericalError("characteristic function: e^(cL) overflows")
        tilted, steady = grid.tilted(c), self.real(np.array([c]))
        real, imaginary = self._turned(frequencies, tilted)
        excess = (steady.excess + real).astype(complex)
        excess.imag = imaginary
        rule = self.rule(c, frequencies, steady)
        error = rule + steady.rest + self.turning(tilted) * frequencies
        return Transform(excess, error, rule)

    def _turned(self, frequencies: np.ndarray, tilted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Real and imaginary part of tilted weights times e^(itL) - 1, summed."""
        loss, count = self.nodes.loss, len(frequencies)
        if count > 1 and np.array_equal(frequencies, frequencies[1] * np.arange(count)):
            return turned(float(frequencies[1]), 0, count, loss, tilted)
        parts = [turned(part, 1, 1, loss, tilted) for part in chunks(frequencies, len(loss))]
        real, imaginary = np.concatenate(parts, axis=1)[..., 0]
        return real, imaginary

    def turning(self, tilted: np.ndarray) -> np.ndarray:
        """Rounding of e^(itL) - 1 summed over ``tilted`` weights, for each unit of frequency.

        16 eps of t |L| for a term; and for the sums of ``turned`` half an eps of 2 t |L| for each rounding of either
        part, two more to add them up, and sqrt(2) for both parts together.
        """
        grid = self.nodes
        blur = grid.blur + _ROOT_TWO / 16.0 * (roundings(grid.x.shape[-1], parts=2) + 2)
        return 16 * _EPS * self._over_nodes(tilted * np.abs(grid.loss) * blur)

    def rule(self, c: float, frequencies: np.ndarray, steady: RealMoments) -> np.ndarray:
        """Bound on the trapezoid rule's error at each frequency, the best of a few strips.

        ``steady`` are moments of which c is the first exponent.

        |integrand| on the line Im x = angle s^2 is at most its modulus on the real line times
        e^((angle s)^2/2 + t arg); arg increases with x, so right ends of cells bound it. The bound grows
        with t, so it is evaluated at few frequencies and rounded up to the next. Contours that are cut are tried
        where no strip was planned, and last narrow strips: many nodes need no more, and see less oscillation there.
        """
        places, next_mark = marked(len(frequencies))
        marks = frequencies[places]
        cells, open_from = self._cell_bounds(c, steady), 0
        best = np.full((*cells.shape[:-1], len(marks)), np.inf)
        no_matter = _NO_MATTER * math.exp(-self.digits) / self.count
        for angle in self._tried():
            growth = marks[open_from:, None] * self.arguments(angle)[..., None, :] + cells[..., None, :]
            sums = np.add.reduce(_exp(growth + against_rows(self.log_strip_factor(c, angle))), axis=-1)
            if not self.planned and not np.all(sums[..., -1:] < no_matter):
                sums = np.fmin(sums, self.cut_rule(c, angle, growth, cells))
            sums[sums > _OVERFLOWN] = np.inf
            best[..., open_from:] = np.fmin(best[..., open_from:], sums)
            known = best < no_matter
            known = known.all(axis=0) if self._several else known
            if known.all():
                break
            open_from = int(known.argmin())
        found: np.ndarray = best[..., next_mark]
        return found

    def _tried(self) -> Sequence[Numbers]:
        """The strips for the rule: the planned ones, or from wide to as narrow as the nodes allow."""
        if self.planned:
            return self.planned
        finest = self.digits * self.nodes.dx / (2.0 * math.pi * self.noise_multiplier**2)
        return *self.angles[:0:-1], *(np.minimum(share * finest, self.angles[0]) for share in _NARROW)

    def cut_rule(self, c: float, angle: Numbers, growth: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """The same for a contour that returns to the real line in the middle of a cell, the best one at each frequency.

        There nothing is gained, but far out the mass is small where the argument is not. Beyond that cell nodes and
        integral count in full.
        """
        first, end = 0 if self.antipodal else 1, -1 - len(FAR)
        growth, cells, near = growth[..., first:end], cells[..., first:end], growth[..., :first]
        strip, side = against_rows(self.log_strip_factor(c, angle)), against_rows(self._log_side_factor(c, angle))
        along, side = _exp(growth + strip), _exp(growth + side)
        mass, top = 2.0 * np.exp(cells)[..., None, :], int(cells.argmax(axis=-1).min())  # any place serves as the top
        right = np.cumsum(along[..., top:], axis=-1) + side[..., top:] + _from_end(mass[..., top:])
        if not self.antipodal:
            left = _exp(near + strip).sum(axis=-1) + along[..., :top].sum(axis=-1)
            return left + right.min(axis=-1)
        left = _from_end(along[..., : top + 1]) + side[..., : top + 1] + np.cumsum(mass[..., : top + 1], axis=-1)
        return left.min(axis=-1) + right.min(axis=-1)

    def _log_side_factor(self, c: float, angle: Numbers) -> np.ndarray:
        """log of a bound on the integrals over both vertical sides in a cell, over the bound of that cell."""
        s, dx = self.noise_multiplier, self.nodes.dx
        height = angle * s**2
        grown = np.maximum(0.0, 0.5 * (angle * s) ** 2 - 2.0 * math.pi * height / dx)
        found: np.ndarray = np.log(2.0 * height / dx) + grown + self._log_negative(c, angle)
        return found

    def log_strip_factor(self, c: float | np.ndarray, angle: Numbers) -> np.ndarray:
        """log of the rule's error at frequency 0 over the sum of cell bounds; both broadcast."""
        s = self.noise_multiplier
        decay = 2.0 * math.pi * s**2 / self.nodes.dx * angle
        of = functions(decay)
        whole = 0.5 * (angle * s) ** 2 - decay + of.log(2.0 / -of.expm1(-decay))
        found: np.ndarray = whole + self._log_negative(c, angle)
        return found

    def _log_negative(self, c: float | np.ndarray, angle: Numbers) -> np.ndarray:
        """How far a negative power of |1 - rate + rate e^(i angle) r| exceeds its value at angle 0 at most, in logs."""
        least, of = functions(c).least, functions(angle)
        negative = least(c, 0.0) + least(1.0 - c, 0.0) if self.antipodal else least(c, 0.0)
        found: np.ndarray = negative * of.log(of.cos(0.5 * angle))
        return found

    def _cell_bounds(self, c: float, steady: RealMoments) -> np.ndarray:
        """log of bounds on the integral of |integrand| over the pieces of ``arguments``.

        Both tails of the antipodal pair count with the right one's pieces, as it is symmetric.
        """
        end, both = self._ends[1], math.log(2.0) if self.antipodal else 0.0
        outer = np.log(np.maximum(steady.outside[..., :1], 1e-300))
        far = [self._tails.right(c, end + k * self.noise_multiplier) + both for k in FAR.tolist()]
        near = [] if self.antipodal else [outer]
        return joined(*near, steady.cells[..., 0, :], outer, *far)

    def arguments(self, angle: Numbers) -> np.ndarray:
        """Bounds on |arg dQ/dP| on the line Im x = angle s^2: left tail, cells, right tail in three pieces.

        The argument reaches ``angle`` far out only, so the tail is cut at ``FAR``.
        """
        turn = joined(argument(self._odds, angle), angle)
        if not self.antipodal:
            return turn
        back, far = argument(self._mirrored_odds, angle), len(FAR) + 1
        return turn[..., 1:] + joined(back[..., :-1], np.repeat(back[..., -1:], far, axis=-1))

    @cached_property
    def _odds(self) -> np.ndarray:
        """Odds that the target took part, at the nodes and at ``FAR``."""
        x, s = self.nodes.x, self.noise_multiplier
        return odds_at(s, self.rate, np.concatenate([x, x[..., -1:] + s * FAR], axis=-1))

    @cached_property
    def _mirrored_odds(self) -> np.ndarray:
        return odds_at(self.noise_multiplier, self.rate, -self.nodes.x)

    def _cells(self, exponents: np.ndarray) -> np.ndarray:
        """log of bounds on the integral of |integrand| over each cell, per exponent: each factor is monotone.

        Nodes are multiples of dx, so the peak of the normal density is a node.
        """
        grid = self.nodes
        peaks = np.log(grid.dx) + _largest(grid.log_normal)
        power = exponents[:, None] * grid.mixture[..., None, :]
        inner = peaks[..., None, :] + _largest(power)
        if grid.mirrored is not None:
            power = (1.0 - exponents)[:, None] * grid.mirrored[..., None, :]
            inner = inner + _largest(power)
        return inner

    # What lies outside the nodes.

    def left_out(self, exponents: list[float]) -> np.ndarray:
        """Bounds on the sum (and integral) of the integrand outside the nodes."""
        found = self._tails.outside(exponents, *self._ends)
        return np.concatenate(found, axis=-1) if self._several else np.array(found)

    # Decay.

    def decay(self, c: float, *, closely: bool = False) -> Decay:
        moment = self.real(np.array([c]))
        least, most = moment.excess - moment.error, moment.excess + moment.error
        dx, first, last = self._span
        x = dx * (first + (last - first) * _LAYERS)
        layers = LossCells.of(self.pair, x).decay(c, np.log1p(most))
        if not closely or not np.all(least > -1.0):
            return layers
        if self._several:
            return Each([one.decay(c, closely=True) for one in self._apart()])
        return Closer(layers, self._on_lines(c, float(np.log1p(least[0]))))

    def _apart(self) -> list[SampledGaussian]:
        kinds = zip(*(np.ravel(each).tolist() for each in (self.noise_multiplier, self.rate, self.count)), strict=True)
        return [replace(self, noise_multiplier=noise, rate=rate, count=count) for noise, rate, count in kinds]

    def _on_lines(self, c: float, log_norm: float) -> LineDecay:
        """``log_norm`` bounds log M(c) from below."""
        angles = LINES * min(math.pi, MOST_GROWTH / self.noise_multiplier)
        turns = argument(self._odds[: len(self.nodes.x)], angles[:, None])
        turns = (
            turns[:, :-1] + argument(self._mirrored_odds, angles[:, None])[:, 1:] if self.antipodal else turns[:, :-1]
        )
        growth = 0.5 * (angles * self.noise_multiplier) ** 2 + self._log_negative(c, angles)
        left_out = math.log(max(float(self.left_out([c])[0]), 1e-300))
        return LineDecay.of(growth - log_norm, self._cells(np.array([c]))[0], turns, left_out)


def _exp(logs: np.ndarray) -> np.ndarray:
    """e^logs, large numbers instead of infinite ones; ``logs`` is overwritten."""
    return np.exp(np.minimum(logs, 700.0, out=logs), out=logs)


def _largest(values: np.ndarray) -> np.ndarray:
    """The larger end of each cell, along the last axis."""
    return np.maximum(values[..., :-1], values[..., 1:])


def _from_end(values: np.ndarray) -> np.ndarray:
    """Sums of everything from each position on, along the last axis."""
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]


def _summed(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows times weights over nodes, without a count of roundings."""
    total: np.ndarray = rows @ weights if weights.ndim == 1 else np.matmul(rows, weights[..., None])[..., 0]
    return total
