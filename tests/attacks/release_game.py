"""Tests on one noisy vector or number: how far from the centre, and in which direction.

The attacker knows the sum without the target (the centre) and not the target's contribution. *Magnitude* rejects
for observations far from the centre: the optimal test where every direction is as likely (Theorems 1 and 2 of
KAISSIS2023, whose curves ``RelaxedGaussianTradeOff`` and ``RelaxedLaplaceTradeOff`` give). *One-sided*
looks along a guessed direction: where the guess is right it is the worst case, although the contribution's size
is not known (KAISSIS2023:R3): counts, non-negative features and known average gradients give the sign away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.auditing import Design, Scores
from reticent.kernel.mechanisms import Gaussian
from reticent.mechanisms import Laplace


@dataclass(frozen=True, eq=False)
class ReleaseGame:
    """The membership game on a noisy sum, played many times with fresh noise.

    Section 5.1 of KAISSIS2022 (several releases, scalar), 5.2 (50 dimensions); section 5 of KAISSIS2023.

    Attributes:
        mechanism: Gaussian noise, or Laplace noise on a scalar; its ``releases`` share one contribution.
        centre: the sum without the target, shape (dimension,), in units of the largest contribution.
        contribution: the target's, same shape, norm at most 1.
        sample_rate: probability that the target takes part in a release in which it may; the attacker knows
            which of the *other* records take part. Several releases are Gaussian, and take part in all.
    """

    mechanism: Gaussian | Laplace
    centre: np.ndarray
    contribution: np.ndarray
    sample_rate: float = 1.0

    def play(self, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Observations without and with the target, each of shape (runs, releases, dimension)."""
        shape = (runs, self.mechanism.releases, len(self.centre))
        absent = self.centre + self._noise(rng, shape)
        takes_part = rng.random((*shape[:2], 1)) < self.sample_rate
        present = self.centre + takes_part * self.contribution + self._noise(rng, shape)
        return absent, present

    def magnitude(self, runs: int, rng: np.random.Generator) -> Scores:
        """Play ``runs`` times on each side and score by :func:`magnitude_scores`."""
        absent, present = (magnitude_scores(seen, self.centre) for seen in self.play(runs, rng))
        return Scores(present, absent, {}, Design.INDEPENDENT)

    def one_sided(self, runs: int, rng: np.random.Generator, direction: np.ndarray) -> Scores:
        """Play ``runs`` times on each side and score by :func:`one_sided_scores`."""
        absent, present = (one_sided_scores(seen, self.centre, direction) for seen in self.play(runs, rng))
        return Scores(present, absent, {}, Design.INDEPENDENT)

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if isinstance(self.mechanism, Laplace):
            return rng.laplace(scale=self.mechanism.noise_multiplier, size=shape)
        return self.mechanism.noise_multiplier * rng.standard_normal(shape)


def magnitude_scores(observed: np.ndarray, centre: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Distance of the added-up releases from the centre, (runs,): needs no guess of the direction.

    Args:
        observed: shape (runs, releases, dimension).
        centre: the sum without the target, broadcast against ``observed``.
        weights: one per release; optimal is sensitivity over noise variance, which for equal releases is a
            constant. (An unweighted mean of unequal releases, as Lemma 8 of KAISSIS2023 has it, is not optimal.)
    """
    return np.linalg.norm(_added(observed, centre, weights), axis=1)


def one_sided_scores(observed: np.ndarray, centre: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Component of the added-up releases along a guessed direction, whose length plays no part, (runs,)."""
    return _added(observed, centre, None) @ (direction / np.linalg.norm(direction))


def _added(observed: np.ndarray, centre: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    each = np.ones(observed.shape[1]) if weights is None else weights
    return np.einsum("i,rid->rd", each, observed - centre)
