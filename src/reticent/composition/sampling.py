"""What may be claimed for each sampler: the one place where a run turns into accountable releases."""

from __future__ import annotations

import math
from dataclasses import replace

from reticent.mechanism import DPSGD, Gaussian, Laplace, Ledger, Mechanism, Neighbouring, Sampler

NOISE_NOTE = (
    "The noise is taken as real numbers, as theorems do; what the rounding of floating-point noise may reveal is not "
    "covered."
)
POISSON_NOTE = (
    "Poisson sampling is assumed: each record joins each batch by a coin of its own that lands with probability "
    "sample_rate; batches cut from shuffled data, or of a fixed size, need their own answer (sampler)."
)
MU_NOTE = (
    "mu holds at every error rate, where sampling cannot lower it: as the false positive rate goes to 0, the curve "
    "comes as close as one likes to that of a run in which every step uses the record."
)
FIXED_SIZE_NOTE = (
    "Batches of fixed size: a drawn record takes another one's place, so it moves the sum by up to 2 (BALLE2018); "
    "sample_rate is the batch size over the data size, the target counted."
)


def release_notes(mechanism: Mechanism) -> tuple[str, ...]:
    """What a reader must know about how batches and noise were drawn, one sentence or two for each fact."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    notes: list[str] = []
    for part in parts:
        notes += _sampler_notes(part)
    if any(part.noise_multiplier > 0.0 for part in parts):
        notes.append(NOISE_NOTE)
    return tuple(dict.fromkeys(notes))


def _sampler_notes(part: Gaussian | Laplace | DPSGD) -> list[str]:
    if isinstance(part, Gaussian):
        return []
    if isinstance(part, Laplace):
        return [POISSON_NOTE] if part.sample_rate < 1.0 else []
    if part.sampler is Sampler.SHUFFLED:
        return [_shuffled_note(part)]
    about_mu = [MU_NOTE] if part.sample_rate < 1.0 and part.noise_multiplier > 0.0 else []
    if part.sampler is Sampler.FIXED_SIZE:
        return [FIXED_SIZE_NOTE, *about_mu]
    return [POISSON_NOTE, *about_mu] if part.sample_rate < 1.0 else []


def _shuffled_note(run: DPSGD) -> str:
    batches, epochs = batches_per_epoch(run), accountable(run).steps
    known = run.batches_per_epoch is not None or math.isclose(batches * run.sample_rate, 1.0, rel_tol=1e-9)
    why = f"{batches} per epoch" if known else f"{batches} per epoch, as the loader may drop an incomplete batch"
    updates = "1 step" if run.steps == 1 else f"{run.steps} steps"
    return (
        "Shuffled batches: no amplification by sampling is claimed; each started epoch counts as one release that "
        f"contains the target: {epochs} counted ({updates}, {why}). Batch boundaries must not depend on the "
        "target."
    )


def batches_per_epoch(run: DPSGD) -> int:
    """Noisy updates per pass over shuffled data: as recorded, else the fewest that there can be.

    A loader that drops the last incomplete batch makes floor(1/sample_rate), one that keeps it rounds up; the
    fewer fit into an epoch, the more epochs were started.
    """
    return run.batches_per_epoch or max(1, math.floor((1.0 + 1e-12) / run.sample_rate))


def accountable(run: DPSGD) -> DPSGD:
    """The Poisson run whose curve holds for ``run``: shuffled epochs become full-batch releases.

    A record appears at most once per epoch, so given the permutation only one noisy sum per epoch depends on
    it; an epoch that was started counts in full. Poisson and fixed-size runs are returned as they are.
    """
    if run.sampler is not Sampler.SHUFFLED:
        return run
    epochs = -(-run.steps // batches_per_epoch(run))
    return replace(run, sample_rate=1.0, steps=epochs, sampler=Sampler.POISSON, batches_per_epoch=None)


def shift(run: DPSGD, neighbouring: Neighbouring) -> float:
    """How far the target moves the sum of one step, in clip norms.

    In batches of fixed size the target takes another record's place, so the sum moves by up to 2 under every
    relation.
    """
    return 2.0 if run.sampler is Sampler.FIXED_SIZE else neighbouring.sensitivity


def attained_shift(run: DPSGD, neighbouring: Neighbouring) -> float:
    """How far the target moves the sum of one step in a data set that exists; 0 where none is known.

    Lower ends stand on this (docs/sampling.md). Fixed size: all other gradients are opposite to the target's,
    which a full batch without the target would contradict; under zero-out they are zero.
    """
    match run.sampler:
        case Sampler.SHUFFLED:
            return neighbouring.sensitivity if run.sample_rate == 1.0 else 0.0
        case Sampler.FIXED_SIZE if neighbouring is Neighbouring.ADD_REMOVE:
            return 2.0 if run.sample_rate < 1.0 else 0.0
        case _:
            return neighbouring.sensitivity
