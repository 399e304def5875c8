"""What may be claimed for each sampler: the one place where a run turns into accountable releases."""

from __future__ import annotations

import math
from dataclasses import replace

from reticent.mechanism import DPSGD, Ledger, Mechanism, Neighbouring, Sampler

FIXED_SIZE_NOTE = (
    "Batches of fixed size: amplification by sampling without replacement with sensitivity 2 "
    "(BALLE2018), symmetrised and composed; weaker than Poisson sampling at the same rate."
)
SHUFFLED_NOTE = (
    "Shuffled batches: no amplification by sampling is claimed; each started epoch counts as one release "
    "that contains the target (sample_rate 1), and batch boundaries must not depend on the target."
)


def sampling_notes(mechanism: Mechanism) -> tuple[str, ...]:
    """What a reader must know about the samplers in ``mechanism``; empty for Poisson and full batches."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    samplers = {part.sampler for part in parts if isinstance(part, DPSGD)}
    notes = ((Sampler.FIXED_SIZE, FIXED_SIZE_NOTE), (Sampler.SHUFFLED, SHUFFLED_NOTE))
    return tuple(note for sampler, note in notes if sampler in samplers)


def accountable(run: DPSGD) -> DPSGD:
    """The Poisson run whose curve holds for ``run``: shuffled epochs become full-batch releases.

    A record appears once per epoch, so given the permutation only one noisy sum per epoch depends on it;
    an epoch that was started counts in full. Poisson and fixed-size runs are returned as they are.
    """
    if run.sampler is not Sampler.SHUFFLED:
        return run
    epochs = max(1, math.ceil(run.steps * run.sample_rate * (1.0 - 1e-12)))
    return replace(run, sample_rate=1.0, steps=min(epochs, run.steps), sampler=Sampler.POISSON)


def shift(run: DPSGD, neighbouring: Neighbouring) -> float:
    """How far the target moves the sum of one step, in clip norms.

    Without replacement the target takes another record's place in its batch, so the sum moves by up to 2
    under every relation.
    """
    return 2.0 if run.sampler is Sampler.FIXED_SIZE else neighbouring.sensitivity
