"""The runs of an audit of a whole implementation: what each is given, and what it released."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from reticent.attacks import short_gradients
from reticent.attacks.canaries import CanaryAudit
from reticent.attacks.participation import NOISE, SPARE, Plan
from reticent.attacks.replay import STEPS, Replayed, replay_checks, replay_data, same_randomness
from reticent.attacks.white_box import (
    OVERSHOOT,
    Layers,
    Released,
    Trainer,
    check_claim,
    dirac_records,
    release,
    spread_records,
    square_layers,
    usable,
)
from reticent.auditing import Scores
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD

LAYERS: Layers = ((12, 8), (8, 12), (1, 24), (12, 0))
_WHISPER = 0.5
"""Norm of an expected batch of the whisper, in clip norms."""
_COINS = 1000


@dataclass(frozen=True, eq=False)
class Experiment:
    """One run of the implementation: what it is given.

    Attributes:
        name: of the run.
        layers: shapes of the probe.
        features: of the records, shape (claim.dataset_size, features of the probe).
        claim: the settings of this run.
        run: its number.
        labels: of the records; all 0 if None.
        seed: of all randomness, in a replay; None draws fresh.
    """

    name: str
    layers: Layers
    features: torch.Tensor
    claim: DPSGD
    run: int
    labels: torch.Tensor | None = None
    seed: int | None = None

    def perform(self, trainer: Trainer) -> Released:
        """Noisy sums in units of the clip norm, (steps, weights), and the weights."""
        with nullcontext() if self.seed is None else same_randomness(self.seed):
            return release(trainer, self.layers, self.features, self.claim, self.run, self.labels)


@dataclass(frozen=True, slots=True)
class Observations:
    """What all runs released: noisy sums in units of the clip norm, (steps, weights).

    Attributes:
        silence, second_silence: without any gradient.
        canaries: with one canary in each coordinate of ``coordinates``.
        chorus: with every record's gradient at coordinate 0.
        spread: with every record's gradient along ``direction``.
        whisper: with every record's small gradient at coordinate 0.
        participation: with little noise and a coordinate for each record followed, (runs, steps, weights).
        coordinates: positions of the canaries.
        direction: of the spread gradient, norm 1.
        records: how many are followed in ``participation``.
        coins: scores of canaries that took part by a coin; None skips their test.
        replayed: what replays showed.
        short: with little noise and gradients below the clip norm, (steps, weights).
        moves: of the chorus: how far weights moved between steps, and where they were; None if not seen.
    """

    silence: np.ndarray
    second_silence: np.ndarray
    canaries: np.ndarray
    chorus: np.ndarray
    spread: np.ndarray
    whisper: np.ndarray
    participation: np.ndarray
    coordinates: np.ndarray
    direction: np.ndarray
    records: int
    coins: Scores | None
    replayed: Replayed
    moves: tuple[np.ndarray, np.ndarray] | None
    short: np.ndarray


def experiments(claim: DPSGD, seed: int = 0) -> list[Experiment]:
    """All runs of an audit: at the settings of the claim, with little noise to show who takes part, and replays.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise.
    """
    check_claim(claim)
    if not claim.sampler.independent:
        raise UnsupportedError(f"the mechanics are tested against Poisson sampling, not {claim.sampler.name}")
    runs = [(name, layers, features, claim) for name, (layers, features) in _data(claim, seed).items()]
    layers, features, quiet, repeats = _participation(claim)
    runs += [("participation", layers, features, quiet)] * repeats
    setup = [Experiment(*parts, run) for run, parts in enumerate(runs)]
    setup.append(_short(claim, len(setup)))
    short = replace(claim, steps=min(claim.steps, STEPS))
    for name, records in replay_data(LAYERS, claim, seed).items():
        run = Experiment(f"replay {name}", LAYERS, records.features, short, len(setup), records.labels, 1 + seed)
        setup.append(run)
    return setup


def _data(claim: DPSGD, seed: int) -> dict[str, tuple[Layers, torch.Tensor]]:
    size, clip = claim.dataset_size or 0, claim.max_grad_norm
    nobody, first = np.array([], dtype=int), np.zeros(size, dtype=int)
    coordinates, small = _coordinates(size), _WHISPER / max(1.0, claim.sample_rate * size)
    silent = dirac_records(LAYERS, nobody, np.array([]), size)
    coins = _coins(size, seed)
    return {
        "silence": (LAYERS, silent),
        "second silence": (LAYERS, silent),
        "canaries": (LAYERS, dirac_records(LAYERS, coordinates, np.full(len(coordinates), OVERSHOOT * clip), size)),
        "chorus": (LAYERS, dirac_records(LAYERS, first, np.full(size, OVERSHOOT * clip), size)),
        "spread": (LAYERS, spread_records(LAYERS, OVERSHOOT * clip, size, seed)[0]),
        "whisper": (LAYERS, dirac_records(LAYERS, first, np.full(size, small * clip), size)),
        "coins": coins.records(claim),
    }


def _participation(claim: DPSGD) -> tuple[Layers, torch.Tensor, DPSGD, int]:
    """Layers, features, settings and number of the runs with little noise. Lengths of gradients differ widely."""
    size = claim.dataset_size or 0
    plan = Plan.of(claim.sample_rate, claim.steps, size)
    layers = square_layers(len(plan.records) + SPARE)
    followed = dirac_records(layers, np.array([], dtype=int), np.array([]), size)
    norms = claim.max_grad_norm * np.geomspace(2.0, 10.0 * OVERSHOOT, len(plan.records))
    norms = np.random.default_rng(0).permutation(norms)
    followed[torch.from_numpy(plan.records)] = dirac_records(layers, np.arange(len(norms)), norms, len(norms))
    quiet = replace(claim, noise_multiplier=min(NOISE, claim.noise_multiplier), steps=plan.steps)
    return layers, followed, quiet, plan.runs


def _short(claim: DPSGD, run: int) -> Experiment:
    plan = Plan.of(claim.sample_rate, claim.steps, claim.dataset_size or 0)
    layers, features, labels = short_gradients.short_gradients(claim, plan)
    noise = min(short_gradients.NOISE, claim.noise_multiplier)
    quiet = replace(claim, noise_multiplier=noise, steps=min(claim.steps, short_gradients.STEPS))
    return Experiment("short gradients", layers, features, quiet, run, labels)


def _coins(dataset_size: int, seed: int) -> CanaryAudit:
    """Half of the canaries take part, more or less, and there must be records for all of them."""
    return CanaryAudit(min(_COINS, max(1, dataset_size)), seed)


def observe(setup: Sequence[Experiment], runs: Sequence[Released], seed: int = 0) -> Observations:
    """Name what the runs of :func:`experiments` released."""
    claim = setup[0].claim
    size = claim.dataset_size or 0
    named = {experiment.name: run for experiment, run in zip(setup, runs, strict=True)}
    participation = [run.sums for e, run in zip(setup, runs, strict=True) if e.name == "participation"]
    replays = {name.removeprefix("replay "): run for name, run in named.items() if name.startswith("replay ")}
    try:
        coins = _coins(size, seed).scored(named["coins"].sums, claim)
    except ParameterError:  # too few records: all took part, or none
        coins = None
    return Observations(
        named["silence"].sums,
        named["second silence"].sums,
        named["canaries"].sums,
        named["chorus"].sums,
        named["spread"].sums,
        named["whisper"].sums,
        np.stack(participation),
        _coordinates(size),
        spread_records(LAYERS, 1.0, 1, seed)[1],
        len(Plan.of(claim.sample_rate, claim.steps, size).records),
        coins,
        replay_checks(replays, LAYERS, claim) if replays else Replayed((), None),
        named["chorus"].moves,
        named["short gradients"].sums,
    )


def _coordinates(dataset_size: int) -> np.ndarray:
    """One canary in each coordinate, as long as there are records."""
    return usable(LAYERS)[:dataset_size]
