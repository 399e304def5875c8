"""The common sign on a coarse lattice: an estimate that steers a search in milliseconds and states no error.

Each node of a step goes onto nine points that keep its means, its variances and its covariance in (a, b); some of these
masses are slightly negative, so nothing is dominated. In the notation of ``step``, addition only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reticent.adversaries.relaxed.sign.lattice import Sketch, above, end_of
from reticent.adversaries.relaxed.sign.noise import Kinds
from reticent.kernel.curves._logs import LOG_2, TINY
from reticent.kernel.errors import NumericalError

_ROWS, _COLUMNS = 256, 2048  # of the lattice, in a and in b: the ratio e^b cosh a moves by tanh a only as a does
_PLACES = 1001  # observations of one step
_TAIL, _ROOM = 1e-9, 1.05  # probability that a sum may leave the window by; room around it


def rough_delta(kinds: Kinds) -> Callable[[np.ndarray], np.ndarray]:
    """delta(epsilon) at epsilon >= 0, roughly.

    Raises:
        NumericalError: the losses are too large.
    """
    with np.errstate(all="ignore"):
        ratio, present = _sum(kinds)
    seen = ratio >= 0.0
    ratio, present = ratio[seen], present[seen]
    shrunk = present * np.exp(-ratio)

    def delta(epsilon: np.ndarray) -> np.ndarray:
        order, found = np.argsort(epsilon), np.empty(len(epsilon))
        more, less = (above(epsilon[order], ratio, mass) for mass in (present, shrunk))
        found[order] = more - np.exp(epsilon[order]) * less
        return np.clip(found, 0.0, 1.0)

    return delta


def _sum(kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
    """log LR at the points of the lattice, and their masses under "present with +" after all steps."""
    sketches = [Sketch.of(noise, steps, _PLACES) for noise, steps in kinds]
    windows = [
        _window(sketches, [kind.a for kind in sketches], _ROWS),
        _window(sketches, [kind.b for kind in sketches], _COLUMNS),
    ]
    image = np.ones((_ROWS, _COLUMNS // 2 + 1), dtype=complex)
    for kind in sketches:
        mass = np.exp(kind.log_mass + kind.centre + kind.b + kind.a)
        law = _spread(kind.a / windows[0][1], kind.b / windows[1][1], mass / mass.sum())
        image *= _raised(np.fft.rfft2(law), kind.steps)
    total = np.fft.irfft2(image, (_ROWS, _COLUMNS))
    a, b = (pitch * (first + np.arange(size)) for (first, pitch), size in zip(windows, total.shape, strict=True))
    total = np.roll(total, [-first for first, _ in windows], axis=(0, 1))
    size, centre = np.abs(a)[:, None], sum(kind.steps * kind.centre for kind in sketches)
    return (b + centre + size + np.log1p(np.exp(-2.0 * size)) - LOG_2).ravel(), total.ravel()


def _raised(image: np.ndarray, steps: int) -> np.ndarray:
    """``image`` to a power: a third of the time that complex powers take."""
    size, phase = np.log(np.maximum(np.abs(image), TINY)), np.angle(image)
    raised: np.ndarray = np.exp(steps * (size + 1j * phase))
    return raised


def _window(sketches: Sequence[Sketch], losses: Sequence[np.ndarray], size: int) -> tuple[int, float]:
    """(first index, pitch) of an axis of ``size`` points that holds the sum under "present with +" and "with -"."""
    high, low = (max(end_of(sketches, [sign * x for x in losses], 1.0, _TAIL)[0], 0.0) for sign in (1.0, -1.0))
    pitch = _ROOM * (high + low) / (size - 6)
    if not 0.0 < pitch < np.inf:
        raise NumericalError("rough sign lattice: no window")
    return -int(_ROOM * low / pitch) - 3, pitch


def _spread(a: np.ndarray, b: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The law of one step; ``a`` and ``b`` in cells."""
    law = np.zeros(_ROWS * _COLUMNS)
    rows, columns = (_around(x) for x in (a, b))
    for i, share in rows:
        for j, other in columns:
            law += np.bincount((i % _ROWS) * _COLUMNS + j % _COLUMNS, mass * share * other, len(law))
    return law.reshape(_ROWS, _COLUMNS)


def _around(x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three points around each place, with shares that keep it and its square."""
    middle = np.rint(x).astype(np.int64)
    off = x - middle
    shares = 0.5 * off * (off - 1.0), 1.0 - off * off, 0.5 * off * (off + 1.0)
    return [(middle + step, share) for step, share in zip((-1, 0, 1), shares, strict=True)]
