"""A sampler: fewer records in every second step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from reticent.kernel import checks
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.registry import described
from reticent.kernel.samplers import Run, Sampler, by_coins, of_draws


@dataclass(frozen=True, slots=True, repr=False)
class Alternating(Sampler):
    """Each record independently, at the stated rate in the first step, at a share of it in the second, and so on.

    Which steps are quiet is fixed beforehand, so each step is one of Poisson sampling at its own rate.

    Attributes:
        quiet: rate of the second step over that of the first, in (0, 1].
    """

    quiet: float = field(default=0.5, metadata=described("Rate of every second step, over that of the others."))

    name: ClassVar[str] = "alternating"
    title: ClassVar[str] = "alternating"
    sentence: ClassVar[str] = "Each record is drawn by chance, more rarely in every second step."
    condition: ClassVar[Kind] = of_draws(
        "alternating-draws",
        "Read the loader's code: which steps are quiet must be settled before the first.",
        "Each record is included in each batch independently: in odd steps with the stated probability, in even steps "
        "with the stated share of it.",
    )

    def __post_init__(self) -> None:
        checks.rate(quiet=self.quiet)

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Attained by gradients that are 0 but for the target's."""
        noise, rate, steps = run.noise_multiplier, run.sample_rate, run.steps
        loud = by_coins(noise, rate, -(-steps // 2), neighbouring)
        return (*loud, *by_coins(noise, self.quiet * rate, steps // 2, neighbouring)) if steps > 1 else loud

    def takes_all(self, run: Run) -> bool:
        return False
