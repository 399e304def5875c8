"""Where the noise comes from, and whether it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity
from reticent.facts.steps import Generator, Randomness
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


UNRECORDED_STEPS = Fact("unrecorded-steps")
UNKNOWN_NOISE = Fact("unknown-noise")
PUBLIC_SEED = Fact("publicly-seeded-noise", vouches=_vouches)
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
