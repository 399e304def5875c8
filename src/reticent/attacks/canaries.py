"""Canaries through one whole run: every one has its own coordinate and takes part by its own fair coin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import TensorDataset

from reticent.attacks.white_box import (
    OVERSHOOT,
    Probe,
    TrainFunction,
    check_claim,
    dirac_records,
    in_clip_norms,
    sizes,
    square_layers,
)
from reticent.auditing.scores import Design, MetaValue, Scores
from reticent.kernel import checks
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD


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


@dataclass(frozen=True)
class CanaryAudit:
    """Many Dirac canaries through one whole training run.

    Attributes:
        canaries: how many; each takes part by its own fair coin.
        seed: of the coins.
    """

    canaries: int = 1000
    seed: int = 0

    def scores(self, train: TrainFunction, claim: DPSGD) -> Scores:
        """Run an implementation that returns what it releases, and score.

        For an implementation that does what it claims, the scores are independent of each other: every canary
        has a coordinate and a sampling mask of its own. So a verdict against the claim is valid; a lower bound
        for an implementation that turns out to be faulty assumes that its noise is independent across coordinates.

        Raises:
            ParameterError: there are more canaries than records.
        """
        check_claim(claim)
        layers = square_layers(checks.count(canaries=self.canaries))
        rng = np.random.default_rng(self.seed)
        coordinates = rng.permutation(sum(sizes(layers)))[: self.canaries]
        member = rng.random(self.canaries) < 0.5
        norms = np.full(int(member.sum()), OVERSHOOT * claim.max_grad_norm)
        features = dirac_records(layers, coordinates[member], norms, claim.dataset_size or 0)
        model = Probe(layers)
        found = train(model, TensorDataset(features, torch.zeros(len(features), dtype=torch.int64)), claim)
        scores = canary_scores(in_clip_norms(found, model, claim, np.float32)[:, coordinates], claim)
        meta: dict[str, MetaValue] = {
            "attack": "canary",
            "canaries": self.canaries,
            "steps": claim.steps,
            "seed": self.seed,
        }
        return Scores(scores[member], scores[~member], meta, Design.INDEPENDENT)
