"""What samplers share that use each record in one step of each pass over the data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import Run, Sampler, by_coins
from reticent.kernel.samplers.epochs import MOST_STEPS, batches_of_a_pass, epochs_to_steps, whole_batches_of_a_pass


@dataclass(frozen=True, slots=True, repr=False)
class Passes(Sampler):
    """Each record in one step of each epoch, and everybody may know in which.

    Attributes:
        batches_per_epoch: how many steps an epoch has, if it is known whether the loader keeps the last incomplete
            batch; None is answered as if it were dropped, which is safe.
    """

    batches_per_epoch: int | None = field(default=None, metadata=described("Noisy updates per pass over the data."))

    in_passes: ClassVar[bool] = True
    public_places: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.batches_per_epoch is not None:
            checks.count(batches_per_epoch=self.batches_per_epoch)

    def check(self, run: Run) -> None:
        """An epoch has as many steps as batches fit, or one more.

        Raises:
            ParameterError: it has not.
        """
        fewest, most = whole_batches_of_a_pass(run.sample_rate), batches_of_a_pass(run.sample_rate)
        batches = self.batches_per_epoch
        if batches is not None and not fewest <= batches <= max(fewest, most):
            raise ParameterError("batches_per_epoch", batches, f"1 / sample_rate, rounded ({fewest} or {most})")

    def in_batches(self, batches: int | None) -> Self:
        return replace(self, batches_per_epoch=batches)

    def batches_of(self, sample_rate: float, *, attained: bool = False) -> int:
        """As stated, else the fewest that there can be, or the most for a lower end."""
        return self.batches_per_epoch or (batches_of_a_pass if attained else whole_batches_of_a_pass)(sample_rate)

    def steps_in(self, epochs: float, sample_rate: float, most: int = MOST_STEPS) -> int:
        """An epoch has as many whole batches as fit.

        So as many epochs are counted as were stated, whether or not the loader keeps a smaller last batch.
        """
        return epochs_to_steps(epochs, 1.0 / self.batches_of(checks.rate(sample_rate=sample_rate)), most)

    def releases(self, run: Run) -> int:
        """One for each epoch that was started."""
        return -(-run.steps // self.batches_of(run.sample_rate))

    def theorems(self, run: Run) -> tuple[str, ...]:
        return ("RETICENT:shuffled-epochs",) if run.sample_rate < 1.0 else ()

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Given who is in which batch, one noisy sum of each epoch depends on the record."""
        if attained and not self.takes_all(run):  # nobody sees which batch of an epoch held the target
            return ()
        return by_coins(run.noise_multiplier, 1.0, self.releases(run), neighbouring, *self.theorems(run))

    def notes(self, run: Run) -> tuple[Message, ...]:
        batches = self.batches_of(run.sample_rate)
        dropped = batches != self.batches_of(run.sample_rate, attained=True)
        counted = {"epochs": self.releases(run), "n": run.steps, "batches": batches}
        key = "note.shuffled-dropped" if dropped else "note.shuffled"
        return (Message(key, **{name: Figure(str(count)) for name, count in counted.items()}),)
