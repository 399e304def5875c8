"""The least noise under each sampler, for one data set, a number of epochs and a memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reticent.calibration.solve import Calibration, UnreachableError, calibrate
from reticent.calibration.targets import Target
from reticent.calibration.unknowns import NoiseMultiplier
from reticent.kernel import checks
from reticent.kernel.adversaries import Adversary, Method
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import SAMPLERS, Sampler


@dataclass(frozen=True, slots=True)
class Choice:
    """The least noise of one sampler at one batch size.

    Attributes:
        sampler: how batches are drawn.
        batch_size: records per batch, on average.
        largest_batch: records that no batch exceeds, but in one run of a million.
        answer: the least noise multiplier.
    """

    sampler: type[Sampler]
    batch_size: int
    largest_batch: int
    answer: Calibration

    @property
    def noise_of_mean(self) -> float:
        """Noise of the mean gradient, in clip norms: the noise multiplier over the batch size."""
        return self.answer.value / self.batch_size


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A sampler without an answer.

    Attributes:
        sampler: how batches would be drawn.
        batch_size: records per batch, on average; None where no size fits the memory.
        reason: why there is none.
    """

    sampler: type[Sampler]
    batch_size: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is trained, whatever the sampler.

    Attributes:
        dataset_size: number of training records.
        epochs: passes over the data.
        memory: most records in one batch, or None.

    Raises:
        ParameterError: a number is outside its domain.
    """

    dataset_size: int
    epochs: float
    memory: int | None = None

    def __post_init__(self) -> None:
        checks.count(dataset_size=self.dataset_size)
        checks.positive(epochs=self.epochs)
        if self.memory is not None:
            checks.count(memory=self.memory)

    def run(self, sampler: type[Sampler], batch_size: int) -> DPSGD:
        """The run, with any noise. A loader that makes passes keeps its last batch, as that of torch does.

        Raises:
            ParameterError: the batch is larger than the data.
            UnsupportedError: batches are to be cut, and nothing says where.
        """
        if not batch_size <= self.dataset_size:
            raise ParameterError("batch_size", batch_size, f"at most the dataset size, {self.dataset_size}")
        drawn = sampler.planned(-(-self.dataset_size // checks.count(batch_size=batch_size)), self.memory)
        sizes = {"batch_size": batch_size, "dataset_size": self.dataset_size, "epochs": self.epochs}
        return DPSGD(**DPSGD.resolved({"noise_multiplier": 1.0, "sampler": drawn, **sizes}))

    def fits(self, sampler: type[Sampler], batch_size: int) -> bool:
        """Whether the batches fit the memory; those that are cut do where a cut is as rare."""
        if self.memory is None:
            return True
        run = self.run(sampler, batch_size)
        return run.sampler.largest_draw(run) <= self.memory

    def largest_that_fits(self, sampler: type[Sampler]) -> int | None:
        """The largest batch size that fits the memory; None where not even single records do."""
        sizes = range(1, min(self.memory or self.dataset_size, self.dataset_size) + 1)
        return bisect_left(sizes, True, key=lambda size: not self.fits(sampler, size)) or None


def calibrate_samplers(
    plan: Plan,
    target: Target,
    samplers: Sequence[type[Sampler]] = (),
    batch_sizes: Sequence[int] = (),
    adversary: Adversary | None = None,
    neighbouring: Neighbouring | None = None,
    method: Method = Method.EXACT,
    progress: Callable[[str], None] | None = None,
) -> tuple[tuple[Choice, ...], tuple[LeftOut, ...]]:
    """The least noise of each sampler at each batch size; first those with the least noise of the mean gradient.

    Args:
        samplers: which; none are all.
        batch_sizes: which; none are the largest that fits the memory, for each sampler.
        adversary, neighbouring, method: as for ``calibrate``.
        progress: called with a few words before each search.

    Raises:
        ParameterError: neither batch sizes nor a memory are given, or a batch is larger than the data.
    """
    if not batch_sizes and plan.memory is None:
        raise ParameterError("batch_size", None, "given, or a memory")
    found: list[Choice] = []
    left_out: list[LeftOut] = []
    for sampler in dict.fromkeys(samplers or SAMPLERS.values()):
        sizes: Sequence[int | None] = batch_sizes or [None]
        for given in dict.fromkeys(sizes):
            size = given
            try:
                size = given or plan.largest_that_fits(sampler)
                if progress is not None:
                    progress(f"{sampler.name}, batches of {size}")
                run, most = _fitting(plan, sampler, size)
                answer = calibrate(run, NoiseMultiplier(), target, adversary, neighbouring, method)
                found.append(Choice(sampler, run.batch_size or 1, most, answer))
            except (UnsupportedError, UnreachableError) as error:
                left_out.append(LeftOut(sampler, size, str(error)))
    return tuple(sorted(found, key=lambda one: one.noise_of_mean)), tuple(left_out)


def _fitting(plan: Plan, sampler: type[Sampler], size: int | None) -> tuple[DPSGD, int]:
    """The run and its largest batch, which fits the memory."""
    if size is None:
        raise UnsupportedError(f"no batch size keeps all batches within {plan.memory} records")
    run = plan.run(sampler, size)
    most = run.sampler.largest_batch(run)
    if plan.memory is not None and max(most, size) > plan.memory:
        raise UnsupportedError(f"a batch may have {max(most, size)} records, and {plan.memory} fit the memory")
    return run, most
