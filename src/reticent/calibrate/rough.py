"""The same estimate where few sampled steps with little noise matter: there the transform does not decay.

The loss of one step goes onto a lattice, each node's mass onto three points that keep its mean and its variance
(some masses are slightly negative), and the lattice law to the power of the steps by Fourier transform. Errors of
1e-5 relative: to steer by, never to claim.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.mechanism import Neighbouring

_SPACING = 0.01
_SIZE = 1 << 16
_FINEST = 100.0  # points per standard deviation
_REACH = 8.0  # standard deviations of the noise
_ROOT_TWO_PI = 2.5066282746310002


class RoughProfile:
    """delta(epsilon) of the symmetrised worst case, for epsilon in [0, ``largest``].

    Attributes:
        largest: the largest epsilon that may be asked for.
    """

    def __init__(self, noise: float, rate: float, steps: float, neighbouring: Neighbouring, largest: float) -> None:
        self.largest = min(largest, 40.0)
        self.symmetric = neighbouring is Neighbouring.REPLACE
        x = _nodes(noise, self.symmetric)
        absent = np.exp(-0.5 * (x / noise) ** 2) * (x[1] - x[0]) / (noise * _ROOT_TWO_PI)
        forth = np.log1p(rate * np.expm1(np.minimum((x - 0.5) / noise**2, 700.0)))
        back = np.log1p(rate * np.expm1(np.minimum((-x - 0.5) / noise**2, 700.0))) if self.symmetric else 0.0 * x
        # Without the target the loss is next to an atom: the lattice starts there.
        self._start = 0.0 if self.symmetric else math.log1p(-rate)
        cap = self.largest + 20.0
        loss = np.clip(forth - back - self._start, -cap, cap)
        middle = absent * np.exp(0.5 * (forth + back))
        spread = math.sqrt(steps * float(middle @ (forth - back) ** 2))
        room = 4.0 * float(np.max(np.abs(loss))) + 20.0 * spread
        spacing = min(_SPACING, max(spread / _FINEST, room / _SIZE))
        self._points = spacing * (np.arange(_SIZE) - _SIZE // 2) + steps * self._start
        loss /= spacing
        self._present = _composed(loss, absent * np.exp(forth), steps)
        self._absent = self._present if self.symmetric else _composed(loss, absent * np.exp(back), steps)

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Larger of both directions."""
        values = [self._one(float(e)) for e in np.atleast_1d(epsilon)]
        return np.clip(np.array(values), 0.0, 1.0)

    def _one(self, epsilon: float) -> float:
        gain = -np.expm1(np.minimum(epsilon - self._points, 0.0))
        add = float(gain @ self._present)
        if self.symmetric:
            return add
        return max(add, float(-np.expm1(np.minimum(epsilon + self._points, 0.0)) @ self._absent))


def _nodes(noise: float, symmetric: bool) -> np.ndarray:
    low = -_REACH * noise - (1.0 if symmetric else 0.0)
    high = 1.0 + _REACH * noise
    return np.linspace(low, high, int(min(max((high - low) / (0.5 * _SPACING * noise**2), 1000.0), 20_000.0)))


def _composed(loss: np.ndarray, mass: np.ndarray, steps: float) -> np.ndarray:
    """Lattice masses of the sum, its middle at index ``_SIZE // 2``; ``loss`` in units of the spacing."""
    place = np.rint(loss).astype(int)
    off = loss - place
    law = np.zeros(_SIZE)
    for shift, share in ((-1, 0.5 * off * (off - 1.0)), (0, 1.0 - off * off), (1, 0.5 * off * (off + 1.0))):
        law += np.bincount((place + shift) % _SIZE, weights=mass * share, minlength=_SIZE)
    law /= law.sum()
    return np.roll(np.fft.irfft(np.fft.rfft(law) ** steps, _SIZE), _SIZE // 2)
