"""Canaries through one whole run: every one has its own coordinate and takes part by its own fair coin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from reticent import _check
from reticent.attacks.white_box import (
    OVERSHOOT,
    Layers,
    Trainer,
    check_claim,
    dirac_records,
    release,
    sizes,
    square_layers,
)
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD


def canary_scores(sums: np.ndarray, claim: DPSGD) -> np.ndarray:
    """Log likelihood ratio of "took part" against "did not", per coordinate, over the whole run.

    The optimal test where the mask is unknown: each step contributes ``log(1 - q + q e^{(y - 1/2)/s^2})``
    (Poisson sampling at rate q, noise multiplier s, canary of clip norm).

    Args:
        sums: noisy sums at the canaries' coordinates in units of the clip norm, (steps, canaries).

    Raises:
        UnsupportedError: batches are not drawn by Poisson sampling.
    """
    if not claim.sampler.independent:
        raise UnsupportedError(f"the canary test is derived for Poisson sampling, not for {claim.sampler.name}")
    variance, total = claim.noise_multiplier**2, np.zeros(np.shape(sums)[1:])
    for step in sums:  # one at a time: a run of a hundred thousand canaries is large
        ratio = (np.asarray(step, dtype=np.float64) - 0.5) / variance
        if claim.sample_rate == 1.0:
            total += ratio
        else:
            total += np.logaddexp(np.log1p(-claim.sample_rate), np.log(claim.sample_rate) + ratio)
    return total


def unknown_sign_scores(sums: np.ndarray, claim: DPSGD) -> np.ndarray:
    """The relaxed attacker's score: the canary's direction is known up to one sign, the same in all steps.

    The mean of both likelihood ratios is the optimal test where either sign is as likely. Adding up squares
    step by step, as if the sign were new in every step, is weaker (KAISSIS2023:R11).
    """
    return np.logaddexp(canary_scores(sums, claim), canary_scores(-sums, claim)) - np.log(2.0)


@dataclass(frozen=True)
class CanaryAudit:
    """Many Dirac canaries through one whole training run.

    Attributes:
        canaries: how many; each takes part by its own fair coin.
        seed: of the coins.
        layers: shapes of the probe, or None for two square-ish layers that hold the canaries.
        sign_known: whether the attacker knows the canary's sign; without it this is the relaxed attacker.
    """

    canaries: int = 1000
    seed: int = 0
    layers: Layers | None = None
    sign_known: bool = True

    def scores(self, trainer: Trainer, claim: DPSGD) -> Scores:
        """Run and score.

        For an implementation that does what it claims, the scores are independent of each other: every canary
        has a coordinate and a sampling mask of its own. So a verdict against the claim is valid; a lower bound
        for an implementation that turns out to be faulty assumes that its noise is independent across coordinates.

        Raises:
            ParameterError: there are more canaries than records or coordinates.
        """
        layers, features = self.records(claim)
        return self.scored(release(trainer, layers, features, claim, run=0, dtype=np.float32).sums, claim)

    def records(self, claim: DPSGD) -> tuple[Layers, torch.Tensor]:
        """The probe's layers and the features of all records. Raises as ``scores``."""
        check_claim(claim)
        layers = self.layers or square_layers(_check.count(canaries=self.canaries))
        dimension = sum(sizes(layers))
        if self.canaries > dimension:
            raise ParameterError("canaries", self.canaries, f"at most the {dimension} coordinates of the probe")
        coordinates, member = self._draw(dimension)
        norms = np.full(int(member.sum()), OVERSHOOT * claim.max_grad_norm)
        return layers, dirac_records(layers, coordinates[member], norms, claim.dataset_size or 0)

    def scored(self, sums: np.ndarray, claim: DPSGD) -> Scores:
        """Score the noisy sums, (steps, dimension), that a run on ``records`` released."""
        coordinates, member = self._draw(sums.shape[1])
        score = canary_scores if self.sign_known else unknown_sign_scores
        scores = score(sums[:, coordinates], claim)
        meta: dict[str, MetaValue] = {
            "attack": "canary",
            "canaries": self.canaries,
            "steps": claim.steps,
            "seed": self.seed,
        }
        return Scores(scores[member], scores[~member], meta, Design.INDEPENDENT)

    def _draw(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        coordinates = rng.permutation(dimension)[: self.canaries]
        return coordinates, rng.random(self.canaries) < 0.5
