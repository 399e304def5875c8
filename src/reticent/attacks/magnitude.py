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
from numpy.typing import ArrayLike

from reticent import _check
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import Gaussian, Laplace

_ROUNDING = 1e-9  # by which a norm of 1 may exceed 1


@dataclass(frozen=True, eq=False)
class ReleaseGame:
    """The membership game on a noisy sum, played many times with fresh noise.

    Section 5.1 of KAISSIS2022 (several releases, scalar), 5.2 (50 dimensions); section 5 of KAISSIS2023.

    Attributes:
        mechanism: Gaussian noise, or Laplace noise on a scalar; its ``releases`` share one contribution.
        centre: the sum without the target, shape (dimension,), in units of the largest contribution.
        contribution: the target's, same shape, norm at most 1.
        sample_rate: probability that the target takes part in a release in which it may; the attacker knows
            which of the *other* records take part.

    Raises:
        ParameterError: rate, noise or shapes are outside their domain, or the contribution is longer than 1.
        UnsupportedError: Laplace noise on vectors.
    """

    mechanism: Gaussian | Laplace
    centre: np.ndarray
    contribution: np.ndarray
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        _check.rate(sample_rate=self.sample_rate)
        _check.positive(noise_multiplier=self.mechanism.noise_multiplier)
        centre, contribution = np.asarray(self.centre, dtype=float), np.asarray(self.contribution, dtype=float)
        if centre.ndim != 1 or centre.shape != contribution.shape:
            raise ParameterError("contribution", contribution.shape, f"of the shape of the centre, {centre.shape}")
        if not np.linalg.norm(contribution) <= 1.0 + _ROUNDING:
            raise ParameterError("contribution", float(np.linalg.norm(contribution)), "a vector of norm at most 1")
        if isinstance(self.mechanism, Laplace) and centre.size != 1:
            raise UnsupportedError("Laplace noise is for scalar releases (KAISSIS2023:R14)")

    def play(self, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Observations without and with the target, each of shape (runs, releases, dimension).

        Raises:
            ParameterError: ``runs`` is not a whole number >= 1.
        """
        shape = (_check.count(runs=runs), self.mechanism.releases, len(self.centre))
        absent = self.centre + self._noise(rng, shape)
        takes_part = rng.random((*shape[:2], 1)) < self.sample_rate
        present = self.centre + takes_part * self.contribution + self._noise(rng, shape)
        return absent, present

    def magnitude(self, runs: int, rng: np.random.Generator) -> Scores:
        """Play ``runs`` times on each side and score by :func:`magnitude_scores`."""
        return self._played(runs, rng, None)

    def one_sided(self, runs: int, rng: np.random.Generator, direction: ArrayLike) -> Scores:
        """Play ``runs`` times on each side and score by :func:`one_sided_scores`."""
        return self._played(runs, rng, direction)

    def _played(self, runs: int, rng: np.random.Generator, direction: ArrayLike | None) -> Scores:
        several = self.mechanism.releases > 1
        if several and (isinstance(self.mechanism, Laplace) or self.sample_rate < 1.0):
            raise UnsupportedError("adding up several releases is optimal only for Gaussian noise without subsampling")
        absent, present = (
            magnitude_scores(seen, self.centre) if direction is None else one_sided_scores(seen, self.centre, direction)
            for seen in self.play(runs, rng)
        )
        attack = "magnitude" if direction is None else "one-sided"
        meta: dict[str, MetaValue] = {"attack": attack, "releases": self.mechanism.releases, "runs": runs}
        return Scores(present, absent, meta, Design.INDEPENDENT)

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if isinstance(self.mechanism, Laplace):
            return rng.laplace(scale=self.mechanism.noise_multiplier, size=shape)
        return self.mechanism.noise_multiplier * rng.standard_normal(shape)


def magnitude_scores(observed: ArrayLike, centre: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Distance of the added-up releases from the centre: needs no guess of the direction.

    Args:
        observed: shape (runs, releases, dimension).
        centre: the sum without the target, broadcast against ``observed``.
        weights: one per release; optimal is sensitivity over noise variance, which for equal releases is a
            constant. (An unweighted mean of unequal releases, as Lemma 8 of KAISSIS2023 has it, is not optimal.)

    Returns:
        Euclidean norms, shape (runs,).
    """
    return np.linalg.norm(_added(observed, centre, weights), axis=1)


def one_sided_scores(observed: ArrayLike, centre: ArrayLike, direction: ArrayLike) -> np.ndarray:
    """Component of the added-up releases along a guessed direction, shape (runs,).

    Args:
        observed, centre: as for :func:`magnitude_scores`.
        direction: shape (dimension,), not zero; its length plays no part.

    Raises:
        ParameterError: ``direction`` is zero or not finite.
    """
    along = _check.reals(direction=direction)
    length = np.linalg.norm(along)
    if not 0.0 < length < np.inf:
        raise ParameterError("direction", along.tolist(), "a finite vector that is not zero")
    return _added(observed, centre) @ (along / length)


def _added(observed: ArrayLike, centre: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    moved = _check.reals(observed=observed) - _check.reals(centre=centre)
    if moved.ndim != 3:
        raise ParameterError("observed", moved.shape, "of shape (runs, releases, dimension)")
    each = np.ones(moved.shape[1]) if weights is None else _check.reals(weights=weights)
    return np.einsum("i,rid->rd", each, moved)
