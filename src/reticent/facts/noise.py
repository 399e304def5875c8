"""Where the noise comes from, and whether it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Found, Severity
from reticent.facts.steps import Generator, Randomness, Source
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_SECRET = (Randomness.FRESH, Generator.SECURE)


def _none(run: RunLedger) -> bool:
    """Of steps that nobody recorded nobody knows whether they had noise."""
    unknown = UNRECORDED_STEPS.key in run.facts
    return not unknown and any(segment.noise_multiplier == 0.0 for segment in run.segments)


def _differ(values: list[float]) -> bool:
    """Whether they are not all one number, but for the rounding of a computer."""
    return max(values) > min(values) * (1.0 + 1e-9)


def _changed(run: RunLedger) -> bool:
    noises, rates = ([getattr(part, n) or 0.0 for part in run.segments] for n in ("noise_multiplier", "sample_rate"))
    return _differ(noises) or _differ(rates)


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    return {"unpredictable-noise": Status.CHECKED} if run.environment.randomness in _SECRET else {}


def _problems(run: RunLedger) -> Found:
    """Who saw the optimizer saw its generator, unless its noise is unknown."""
    where = run.environment  # an optimizer that adds noise holds another one inside
    unseen, private = where.randomness is Generator.NOT_SEEN, len(where.optimiser) > 1
    if unseen and UNKNOWN_NOISE.key in run.facts:
        return
    if unseen == private:
        around = " around ".join(where.optimiser) or "unknown"
        yield "environment.randomness", f"is {where.randomness.value}, and the optimizer is {around}"
    if unseen and run.clipping.source is Source.SEEN:
        yield "environment.randomness", "was not seen, and the optimizer that adds the noise was"


def _seeds(run: RunLedger) -> Found:
    """Seeds are those of the configuration, or secret."""
    seeds, complete = run.environment.seeds, run.diagnostics is not None
    kept = run.environment.randomness is Randomness.REPRODUCIBLE
    for name in ("sampling", "noise"):
        if (getattr(seeds, name) is not None) != (kept and complete):
            yield f"environment.seeds.{name}", "is missing" if kept and complete else "has no place here"
    missing = seeds is None or seeds.initialisation is None
    if missing != (kept and not complete):
        yield "environment.seeds.initialisation", "is missing" if missing else "has no place here"
    asked = run.asked.get("seed")
    for name in ("initialisation", "sampling", "noise"):
        used = getattr(seeds, name)
        if None not in (asked, used) and str(used) != str(asked):
            yield f"environment.seeds.{name}", "is not the seed of the configuration"


UNRECORDED_STEPS = Fact("unrecorded-steps")
UNKNOWN_NOISE = Fact("unknown-noise")
PUBLIC_SEED = Fact("publicly-seeded-noise", vouches=_vouches, watched=(_problems,), trained=(_seeds,))
SEEDED_ON_THE_WAY = Fact("seeded-while-it-ran", Severity.NOTE)
REPEATED_NOISE = Fact("repeated-noise")
CHANGED_GRADIENTS = Fact("gradients-changed-after-noise")
TOO_LITTLE_NOISE = Fact("noise-not-added")
NO_NOISE = Fact("no-noise", Severity.WARNING, _none, ours=True)
SEEDED_NOISE = Fact("seeded-noise", Severity.WARNING, lambda run: run.environment.randomness is Generator.OF_PROGRAM)
REPRODUCIBLE_NOISE = Fact(
    "reproducible-noise",
    Severity.WARNING,
    lambda run: run.environment.randomness is Randomness.REPRODUCIBLE,
    ours=True,
)
CHANGED_NOISE = Fact("changed-noise", Severity.NOTE, _changed)
INSECURE_GENERATOR = Fact(
    "insecure-generator", Severity.NOTE, lambda run: run.environment.randomness is Generator.DEFAULT
)
