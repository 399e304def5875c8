"""The runs of an audit of a whole implementation: what each is given, and what it released."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from reticent.attacks import short_gradients
from reticent.attacks.participation import NOISE, SPARE, Plan
from reticent.attacks.replay import STEPS, replay_data, same_randomness
from reticent.attacks.white_box import (
    OVERSHOOT,
    Layers,
    Released,
    TrainFunction,
    check_claim,
    dirac_records,
    release,
    spread_records,
    square_layers,
)
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD

LAYERS: Layers = ((12, 8), (8, 12), (1, 24), (12, 0))
REPLAY = "replay "
"""How the names of replays begin."""
_FIRST = (
    "silence",
    "spread",
    *(f"{REPLAY}{name}" for name in ("base", "again", "fewer")),
    "chorus",
    *(f"{REPLAY}{name}" for name in ("longer", "up", "down")),
)
"""What shows most faults: noise that is wrong, missing clipping, what a record counts, how many take part."""
_WHISPER = 0.5
"""Norm of an expected batch of the whisper, in clip norms."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One run of the implementation: what it is given.

    Attributes:
        name: of the run.
        layers: shapes of the probe.
        features: of the records, shape (claim.dataset_size, features of the probe).
        claim: the settings of this run.
        labels: of the records; all 0 if None.
        seed: of all randomness, in a replay; None draws fresh.
    """

    name: str
    layers: Layers
    features: torch.Tensor
    claim: DPSGD
    labels: torch.Tensor | None = None
    seed: int | None = None

    def perform(self, train: TrainFunction) -> Released:
        """Noisy sums in units of the clip norm, (steps, weights), and the weights."""
        with nullcontext() if self.seed is None else same_randomness(self.seed):
            return release(train, self.layers, self.features, self.claim, self.labels)


def experiments(claim: DPSGD, seed: int = 0) -> list[Experiment]:
    """All runs of an audit: at the settings of the claim, with little noise to show who takes part, and replays.

    Those that show most faults come first.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    check_claim(claim)
    if not claim.sampler.independent:
        raise UnsupportedError(f"the mechanics are tested against Poisson sampling, not {claim.sampler.name}")
    short = replace(claim, steps=min(claim.steps, STEPS))
    plan = Plan.of(claim.sample_rate, claim.steps, claim.dataset_size or 0)
    found = [
        *(Experiment(name, LAYERS, features, claim) for name, features in _data(claim, seed).items()),
        *_participation(claim, plan),
        _short(claim, plan),
        *(
            Experiment(f"{REPLAY}{name}", LAYERS, features, short, labels, 1 + seed)
            for name, (features, labels) in replay_data(LAYERS, claim, seed).items()
        ),
    ]
    return sorted(found, key=lambda one: _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST))


def _data(claim: DPSGD, seed: int) -> dict[str, torch.Tensor]:
    size, clip = claim.dataset_size or 0, claim.max_grad_norm
    nobody, first = np.array([], dtype=int), np.zeros(size, dtype=int)
    small = _WHISPER / max(1.0, claim.sample_rate * size)
    silent = dirac_records(LAYERS, nobody, np.array([]), size)
    return {
        "silence": silent,
        "second silence": silent,
        "chorus": dirac_records(LAYERS, first, np.full(size, OVERSHOOT * clip), size),
        "spread": spread_records(LAYERS, OVERSHOOT * clip, size, seed)[0],
        "whisper": dirac_records(LAYERS, first, np.full(size, small * clip), size),
    }


def _participation(claim: DPSGD, plan: Plan) -> list[Experiment]:
    """Runs with little noise and a coordinate for each record followed. Lengths of gradients differ widely."""
    layers = square_layers(len(plan.records) + SPARE)
    norms = claim.max_grad_norm * np.geomspace(2.0, 10.0 * OVERSHOOT, len(plan.records))
    norms = np.random.default_rng(0).permutation(norms)
    followed = dirac_records(layers, np.arange(len(norms)), norms, claim.dataset_size or 0, plan.records)
    quiet = replace(claim, noise_multiplier=min(NOISE, claim.noise_multiplier), steps=plan.steps)
    return [Experiment("participation", layers, followed, quiet)] * plan.runs


def _short(claim: DPSGD, plan: Plan) -> Experiment:
    layers, features, labels = short_gradients.short_gradients(claim, plan)
    noise = min(short_gradients.NOISE, claim.noise_multiplier)
    quiet = replace(claim, noise_multiplier=noise, steps=min(claim.steps, short_gradients.STEPS))
    return Experiment(short_gradients.NAME, layers, features, quiet, labels)
