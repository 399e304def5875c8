"""How fast the transform of one sampled Gaussian step decays: layers of a unimodal minorant of its loss density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from reticent.kernel.pairs.columns import Numbers, functions
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture

_CHUNK = 500_000  # elements of one array
_SINC_FLOOR = 0.217233628211222  # largest |sin z / z| beyond the first zero


class LossCells(NamedTuple):
    """The loss of one step on cells of the observation, or of several kinds, as in ``SampledGaussian``.

    Attributes:
        pair: with one shift, of 1.
        x: ends of the cells, increasing along the last axis. The density beyond them counts as 0.
        mixture, mirrored: log of mixture over N(0, s^2) at x and at -x; the second is 0 if P is that normal law.
        log_normal: log density of N(0, s^2).
    """

    pair: GaussianMixture
    x: np.ndarray
    mixture: np.ndarray
    mirrored: Numbers
    log_normal: np.ndarray

    @classmethod
    def of(cls, pair: GaussianMixture, x: np.ndarray) -> LossCells:
        """Cells between ``x``."""
        mirrored = pair.log_mixture(-x) if pair.antipodal else 0.0
        return cls(pair, x, pair.log_mixture(x), mirrored, pair.log_normal(x))

    def variance(self) -> float:
        """E[L^2] under sqrt(PQ), roughly: it only plans. Cells must be even."""
        loss = self.mixture - self.mirrored
        weight = np.exp(self.log_normal + 0.5 * (self.mixture + self.mirrored))
        return float(weight @ (loss * loss)) * float(self.x[1] - self.x[0])

    def decay(self, c: float, log_norm: float | np.ndarray) -> LayeredDecay:
        """Bounds on |M(c + it)| / M(c); ``log_norm`` bounds log M(c) from above."""
        loss, log_p = self.mixture, self.log_normal
        least, steepest = _lower(log_p) + _lower(c * loss), self._posterior(self.x)[..., 1:]
        if self.pair.antipodal:
            least = least + _lower((1.0 - c) * self.mirrored)
            loss, steepest = loss - self.mirrored, steepest + self._posterior(-self.x)[..., :-1]
        density = np.exp(least + (2.0 * np.log(self.pair.noise_multiplier) - log_norm)) / steepest
        minorant = _unimodal(density)
        order, widths = (-minorant).argsort(axis=-1, kind="stable"), loss[..., 1:] - loss[..., :-1]
        one = order.ndim == 1
        heights = minorant[order] if one else np.take_along_axis(minorant, order, axis=-1)
        spans = (widths[order] if one else np.take_along_axis(widths, order, axis=-1)).cumsum(axis=-1)
        heights[..., :-1] -= heights[..., 1:]
        return LayeredDecay(spans, heights * spans)

    def _posterior(self, x: np.ndarray) -> np.ndarray:
        """Probability that the target took part, given x: s^2 dL/dx of the one-sided pair; increasing."""
        rate = self.pair.weights[0]
        of = functions(rate)
        odds: np.ndarray = expit((of.log(rate) - of.log1p(-rate)) + (x - 0.5) / self.pair.noise_multiplier**2)
        return odds


@dataclass(frozen=True, slots=True)
class LayeredDecay:
    """A law that contains a mixture of uniforms: each contributes at most the envelope of its sinc; or several laws."""

    widths: np.ndarray
    weights: np.ndarray

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""
        parts = chunks(frequencies, self.widths.size)
        widths, weights = self.widths[..., None, :], self.weights[..., None]
        lost = [np.matmul(1.0 - sinc_envelope((0.5 * t[:, None]) * widths), weights)[..., 0] for t in parts]
        whole = lost[0] if len(lost) == 1 else np.concatenate(lost, axis=-1)
        return np.log1p(np.minimum(whole, 1.0 - 1e-12) * (1e-9 - 1.0))


def _unimodal(density: np.ndarray) -> np.ndarray:
    """The largest function below that rises and then falls, along the last axis."""
    top = density.argmax(axis=-1)
    if density.ndim == 1:
        left = np.minimum.accumulate(density[top::-1])[::-1]
        return np.concatenate([left, np.minimum.accumulate(density[top + 1 :])])
    place = np.arange(density.shape[-1])
    before = np.where(place <= top[..., None], density, np.inf)[..., ::-1]
    after = np.where(place >= top[..., None], density, np.inf)
    rising = np.minimum.accumulate(before, axis=-1)[..., ::-1]
    return np.minimum(rising, np.minimum.accumulate(after, axis=-1))


def sinc_envelope(y: np.ndarray) -> np.ndarray:
    """sup of |sin z / z| over z >= y."""
    y = np.maximum(y, 1e-300)
    inverse = 1.0 / y
    envelope: np.ndarray = np.maximum(np.sin(np.minimum(y, np.pi)) * inverse, np.minimum(inverse, _SINC_FLOOR))
    return envelope


def chunks(values: np.ndarray, nodes: int) -> list[np.ndarray]:
    """``values`` in parts that, times ``nodes``, fit into memory."""
    count = len(values) * nodes // _CHUNK
    return [values] if count < 2 else np.array_split(values, count)


def _lower(values: np.ndarray) -> np.ndarray:
    """The smaller end of each cell."""
    return np.minimum(values[..., :-1], values[..., 1:])
