"""A curve from a table of delta(epsilon): the safe version, and how far from the truth it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reticent import _check
from reticent.curves._logs import LOG_HALF, log1mexp, log_sub
from reticent.curves.base import LogErrors, TradeOff
from reticent.curves.piecewise import PolygonTradeOff
from reticent.errors import ParameterError

_ROUNDING = 1e-12  # by which a power may exceed 1


class ProfileTradeOff(PolygonTradeOff):
    """The least safe curve that a table of privacy guarantees allows.

    Each row (epsilon, delta) is a supporting line ``beta >= 1 - delta - e^epsilon alpha`` and, by the
    table of the other direction, ``alpha >= 1 - delta - e^epsilon beta``. The curve is the maximum
    of these lines: it never lies above a curve that fulfils the table, so deltas that are upper
    bounds give a safe curve. Between rows, delta is linear in e^epsilon.

    ``optimistic`` is the largest curve that the same table allows, if its deltas are exact: the truth
    lies between the two. The gap falls with the square of the grid step.

    Attributes:
        epsilons: increasing, finite, the first 0.
        log_deltas: log delta at ``epsilons``, <= 0, -inf for 0. Upper bounds may be noisy: rows that
            the others imply are dropped.
        log_deltas_reversed: the same with H0 and H1 exchanged; left out: both directions alike.

    Raises:
        ParameterError: lengths differ, epsilons do not increase from 0, or the deltas contradict
            each other (no curve has them).
    """

    __slots__ = ("epsilons", "log_deltas", "log_deltas_reversed")

    def __init__(
        self, epsilons: ArrayLike, log_deltas: ArrayLike, log_deltas_reversed: ArrayLike | None = None
    ) -> None:
        self.epsilons = _check.reals(epsilons=epsilons)
        self.log_deltas = _check.log_probabilities(log_deltas=log_deltas)
        other = self.log_deltas if log_deltas_reversed is None else log_deltas_reversed
        self.log_deltas_reversed = _check.log_probabilities(log_deltas_reversed=other)
        _check_table(self.epsilons, self.log_deltas, self.log_deltas_reversed)
        advantage = min(self.log_deltas[0], self.log_deltas_reversed[0])
        right = _half(self.epsilons, self.log_deltas, advantage)
        left = _half(self.epsilons, self.log_deltas_reversed, advantage)
        super().__init__(*_join(right, left))

    @classmethod
    def of(cls, curve: TradeOff, epsilons: ArrayLike) -> ProfileTradeOff:
        """Tabulate both directions of ``curve`` at ``epsilons``.

        Raises:
            ParameterError: ``epsilons`` do not increase from 0, or are not finite.
        """
        epsilons = _check.reals(epsilons=epsilons)
        return cls(epsilons, curve.log_delta(epsilons), curve.reversed.log_delta(epsilons))

    @property
    def reversed(self) -> TradeOff:
        return ProfileTradeOff(self.epsilons, self.log_deltas_reversed, self.log_deltas)

    @property
    def optimistic(self) -> PolygonTradeOff:
        """The largest curve whose delta has the tabulated values; an upper bound on the exact curve.

        The exact curve touches every tabulated line between two vertices of the safe curve, so it
        stays below each chord that skips one vertex.
        """
        return PolygonTradeOff(*_skipping_chords(self.vertices))

    def __repr__(self) -> str:
        return f"ProfileTradeOff(<{len(self.epsilons)} rows up to epsilon {self.epsilons[-1]!r}>)"


def _check_table(epsilons: np.ndarray, log_deltas: np.ndarray, log_deltas_reversed: np.ndarray) -> None:
    if epsilons.ndim != 1 or not len(epsilons) or epsilons[0] != 0.0 or not np.isfinite(epsilons[-1]):
        raise ParameterError("epsilons", epsilons.tolist(), "one list of finite numbers that starts with 0")
    if np.any(np.diff(epsilons) <= 0):
        raise ParameterError("epsilons", epsilons.tolist(), "increasing")
    for name, table in (("log_deltas", log_deltas), ("log_deltas_reversed", log_deltas_reversed)):
        if table.shape != epsilons.shape:
            raise ParameterError(name, table.tolist(), "as long as epsilons")


def _half(epsilons: np.ndarray, log_deltas: np.ndarray, advantage: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(epsilon, log alpha, log power) of the lines of one direction: lower hull of delta over e^epsilon.

    Vertex i joins the line of epsilon[i] with the next one; the last has alpha = 0.
    """
    log_deltas = np.minimum.accumulate(np.minimum(log_deltas, advantage))
    keep: list[int] = []
    drops: list[float] = []
    for k in range(len(epsilons)):
        if keep and log_deltas[keep[-1]] == log_deltas[k]:
            continue
        drop = np.inf
        while keep:
            drop = _drop(epsilons, log_deltas, keep[-1], k)
            if len(keep) == 1 or drop < drops[-1]:
                break
            keep.pop()
            drops.pop()
        if keep:
            drops.append(drop)
        keep.append(k)
    log_alpha = np.array([*drops, -np.inf])
    log_power = np.logaddexp(log_deltas[keep], epsilons[keep] + log_alpha)
    if log_power[0] > _ROUNDING:
        raise ParameterError(
            "log_deltas", log_deltas.tolist(), "values of one curve: they fall too fast from epsilon 0"
        )
    return epsilons[keep], log_alpha, np.minimum(log_power, 0.0)


def _drop(epsilons: np.ndarray, log_deltas: np.ndarray, i: int, k: int) -> float:
    """log of (delta_i - delta_k) / (e^epsilon_k - e^epsilon_i): the false positive rate between both."""
    return float(log_sub(log_deltas[i], log_deltas[k]) - log_sub(epsilons[k], epsilons[i]))


def _join(
    right: tuple[np.ndarray, np.ndarray, np.ndarray], left: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[LogErrors, np.ndarray]:
    """Vertices of both halves, alpha increasing; the line of slope -1 belongs to both."""
    e_right, fpr, tpr = (part[::-1] for part in right)
    e_left, fnr, tnr = left
    vertices = LogErrors(
        fpr=np.concatenate([fpr, log1mexp(tnr)]),
        tnr=np.concatenate([log1mexp(fpr), tnr]),
        fnr=np.concatenate([log1mexp(tpr), fnr]),
        tpr=np.concatenate([tpr, log1mexp(fnr)]),
    )
    slopes = np.concatenate([e_right, -e_left[1:]])
    if vertices.tnr[-1] > -np.inf:
        # The reversed table ends at delta > 0: beta is 0 from there on.
        vertices = _append(vertices, -1, LogErrors(*(np.array(v) for v in (0.0, -np.inf, -np.inf, 0.0))))
        slopes = np.append(slopes, -np.inf)
    moves = (vertices.fpr[1:] > vertices.fpr[:-1]) | (vertices.tnr[1:] < vertices.tnr[:-1])
    return vertices.at(np.append(True, moves)), slopes[moves]


def _append(vertices: LogErrors, where: int, vertex: LogErrors) -> LogErrors:
    """``vertices`` with one more in front (0) or at the end (-1)."""
    position = len(vertices.fpr) if where else 0
    return LogErrors(*(np.insert(part, position, new) for part, new in zip(vertices, vertex, strict=True)))


def _skipping_chords(vertices: LogErrors) -> tuple[LogErrors, np.ndarray]:
    """Upper envelope of the chords from each vertex to the next but one, in logarithms."""
    if vertices.fnr[0] < 0.0:
        vertices = _append(vertices, 0, LogErrors(*(np.array(v) for v in (-np.inf, 0.0, 0.0, -np.inf))))
    if len(vertices.fpr) < 3:
        return vertices, np.zeros(1)
    run = _steps(vertices.fpr, vertices.tnr[::-1])
    fall = _steps(vertices.fnr[::-1], vertices.tpr)[::-1]
    log_slopes = np.logaddexp(fall[:-1], fall[1:]) - np.logaddexp(run[:-1], run[1:])
    one, two, far = slice(None, -2), slice(1, -1), slice(2, None)
    near = np.logaddexp(_cross(run, fall, one, two), _cross(run, fall, one, far))
    rest = _cross(run, fall, two, far)
    straight = np.isneginf(near) & np.isneginf(rest)
    near, rest = np.where(straight, 0.0, near), np.where(straight, -np.inf, rest)
    total = np.logaddexp(near, rest)
    inner = [np.logaddexp(rest - total + part[:-3], near - total + part[2:-1]) for part in vertices]
    ends = LogErrors(*(np.concatenate([part[:1], mid, part[-1:]]) for part, mid in zip(vertices, inner, strict=True)))
    return LogErrors(*(np.minimum(part, 0.0) for part in ends)), log_slopes


def _steps(increasing: np.ndarray, complement_backwards: np.ndarray) -> np.ndarray:
    """log differences of neighbours, by whichever of a rate and its complement is smaller."""
    complement = complement_backwards[::-1]
    direct = log_sub(increasing[1:], increasing[:-1])
    mirrored = log_sub(complement[:-1], complement[1:])
    return np.where(increasing[1:] < LOG_HALF, direct, mirrored)


def _cross(run: np.ndarray, fall: np.ndarray, first: slice, second: slice) -> np.ndarray:
    """log of the cross product of two edges, positive because the curve is convex."""
    return log_sub(fall[first] + run[second], run[first] + fall[second])
