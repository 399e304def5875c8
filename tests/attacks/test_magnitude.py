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
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes

from reticent.auditing import Design, Scores, audit_claim, empirical_trade_off
from reticent.auditing.verdict import Finding
from reticent.curves import LaplaceTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.mechanisms import Gaussian
from reticent.mechanisms import Laplace
from tests.auditing.games import contains

RUNS = 1024


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

    def scores(self, runs: int, seed: int, direction: np.ndarray | None = None) -> Scores:
        """Play ``runs`` times on each side: the length of what was added up, or its part along a direction."""
        rng, shape = np.random.default_rng(seed), (runs, self.mechanism.releases, len(self.centre))
        absent = self._noise(rng, shape)
        present = (rng.random((*shape[:2], 1)) < self.sample_rate) * self.contribution + self._noise(rng, shape)
        sides = [(self.centre + seen - self.centre).sum(axis=1) for seen in (present, absent)]
        if direction is None:
            return Scores(*(np.linalg.norm(side, axis=1) for side in sides), design=Design.INDEPENDENT)
        return Scores(*(side @ direction for side in sides), design=Design.INDEPENDENT)

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if isinstance(self.mechanism, Laplace):
            return rng.laplace(scale=self.mechanism.noise_multiplier, size=shape)
        return self.mechanism.noise_multiplier * rng.standard_normal(shape)


def scalar_game(mechanism, rate=1.0):
    return ReleaseGame(mechanism, np.array([3.25]), np.array([1.0]), rate)


def diabetes_game(noise_multiplier: float) -> ReleaseGame:
    """Clipped gradients of the last layer of a linear network with a 50-dimensional latent space."""
    features, targets = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(5)
    latent = (features / features.std(axis=0)) @ rng.standard_normal((10, 50)) / np.sqrt(10)
    head = 0.1 * rng.standard_normal(50)
    residual = latent @ head - (targets - targets.mean()) / targets.std()
    gradients = residual[:, None] * latent
    norms = np.linalg.norm(gradients, axis=1)
    target = int(np.argmax(norms))
    clip = np.median(norms)
    clipped = gradients / np.maximum(norms / clip, 1.0)[:, None] / clip
    return ReleaseGame(Gaussian(noise_multiplier, dimension=50), clipped.sum(axis=0) - clipped[target], clipped[target])


CASES = {
    "gaussian": (scalar_game(Gaussian(1.0)), RelaxedGaussianTradeOff(1.0, 1), GaussianTradeOff(1.0)),
    "gaussian, 70 releases": (
        scalar_game(Gaussian(6.0, releases=70)),
        RelaxedGaussianTradeOff(70 / 36, 1),
        GaussianTradeOff(np.sqrt(70 / 36)),
    ),
    "laplace": (scalar_game(Laplace(1.0)), RelaxedLaplaceTradeOff(1.0), LaplaceTradeOff(1.0)),
    "subsampled": (
        scalar_game(Gaussian(0.5), 0.3),
        Subsampled(RelaxedGaussianTradeOff(4.0, 1), 0.3),
        Subsampled(GaussianTradeOff(2.0), 0.6),
    ),
    "diabetes": (diabetes_game(0.5), RelaxedGaussianTradeOff(4.0, 50), GaussianTradeOff(2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_empirical_curve_lies_in_the_band_around_j_and_its_inverse_and_not_around_the_worst_case(name):
    """The scores do not fit the curve of an attacker who knows the direction: the test has teeth."""
    game, curve, worst = CASES[name]
    scores = game.scores(RUNS, 11)
    swapped = Scores(-scores.non_member, -scores.member, scores.meta, scores.design)  # is the target absent?
    assert contains(empirical_trade_off(scores, 0.99), curve)
    assert contains(empirical_trade_off(swapped, 0.99), curve.reversed)
    assert audit_claim(scores, curve, confidence=0.999).finding is not Finding.INCONSISTENT
    assert not contains(empirical_trade_off(game.scores(4 * RUNS, 11), 0.99), worst)


@pytest.mark.parametrize(
    ("game", "relaxed", "worst"),
    [
        (scalar_game(Gaussian(0.5)), RelaxedGaussianTradeOff(4.0, 1), GaussianTradeOff(2.0)),
        (scalar_game(Laplace(0.5)), RelaxedLaplaceTradeOff(2.0), LaplaceTradeOff(2.0)),
        CASES["diabetes"],
    ],
    ids=["gaussian", "laplace", "diabetes"],
)
def test_a_guessed_direction_beats_the_relaxed_curve_but_not_the_worst_case(game, relaxed, worst):
    """KAISSIS2023:R2, KAISSIS2023:R3: the relaxed curve is no bound for an attacker who can guess the sign."""
    scores = game.scores(2 * RUNS, 7, game.contribution)
    assert audit_claim(scores, relaxed, confidence=0.99).finding is Finding.INCONSISTENT
    assert audit_claim(scores, worst, confidence=0.99).finding is not Finding.INCONSISTENT


def test_who_knows_the_latent_layer_faces_the_dimensions_of_the_data():
    """KAISSIS2023:R15: the 50 latent features are made of 10, so every gradient lies in a space of 10 dimensions."""
    game, rng, runs = diabetes_game(0.5), np.random.default_rng(11), 40_000
    features, _ = load_diabetes(return_X_y=True)
    latent = np.random.default_rng(5).standard_normal((10, 50))  # drawn as in the game
    span = np.linalg.qr(latent.T)[0]
    assert np.linalg.norm(game.contribution @ span) == pytest.approx(np.linalg.norm(game.contribution), rel=1e-9, abs=0)
    noise = 0.5 * rng.standard_normal((2, runs, 50))
    absent, present = (np.linalg.norm(x @ span, axis=1) for x in (noise[0], noise[1] + game.contribution))
    found = np.mean(present > np.quantile(absent, 0.99))
    right, printed = (float(RelaxedGaussianTradeOff(4.0, d).power(0.01)) for d in (features.shape[1], 50))
    assert right == pytest.approx(stats.ncx2.sf(stats.chi2.isf(0.01, 10), 10, 4.0), rel=1e-9, abs=0)
    assert (round(right, 3), round(printed, 3)) == (0.077, 0.029)
    assert found == pytest.approx(right, rel=0.1, abs=0)
