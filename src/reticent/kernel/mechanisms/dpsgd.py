"""DP-SGD, and what may be claimed for each of its samplers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from reticent.kernel import checks, pairs
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms.base import OF_A_START, Mechanism, check_noise, check_rate
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import Parameter, described, gathered
from reticent.kernel.samplers import INDEPENDENT, SAMPLERS, Sampler
from reticent.kernel.samplers.base import sampler_given

_WORK_OF_A_RECORD = 1e4


@dataclass(frozen=True, slots=True, repr=False)
class DPSGD(Mechanism):
    """DP-SGD: noisy sums of clipped gradients over batches.

    Attributes:
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the *sum*, >= 0.
        sample_rate: probability that one record is in one batch, in (0, 1]; of batches that are cut, before the cut.
            Where each record is in one step of each epoch, the share of the data in one batch.
        steps: number of noisy updates, >= 1.
        max_grad_norm: clip norm (L2); results do not depend on it, gradients in their own units do.
        num_parameters: number of trained parameters, or None where it is not known.
        batch_size: expected records per batch, or None.
        dataset_size: number of training records, or None.
        sampler: how batches were really drawn.
        records_per_user: the most records that one person contributed: the numbers then hold for all records of a
            person together. None states nothing, and they hold for one record.
        unit: what is drawn into a batch, clipped as one and protected. With ``client`` a batch is the cohort of a
            round, and the sizes count clients.
        copies: at how many positions the data list one record, as a watch saw; all of them are protected together. That
            says nothing of persons. None is 1.

    Raises:
        ParameterError: a field is outside its domain, or contradicts the sampler.
    """

    noise_multiplier: float = field(metadata=described("Noise over the clip norm, on the sum of a batch."))
    sample_rate: float = field(metadata=described("Inclusion probability of one record per step."))
    steps: int = field(metadata=described("Number of noisy updates."))
    max_grad_norm: float = field(default=1.0, metadata=described("Clip norm (L2)."))
    num_parameters: int | None = field(default=None, metadata=described("Number of trained parameters."))
    batch_size: int | None = field(default=None, metadata=described("Expected records per batch."))
    dataset_size: int | None = field(default=None, metadata=described("Number of training records."))
    sampler: Sampler = field(default=INDEPENDENT, metadata=described("How batches are drawn.", one_of=SAMPLERS))
    records_per_user: int | None = field(
        default=None, metadata=described("Most records of one person; then all of them are protected together.")
    )
    unit: Unit = field(default=Unit.RECORD, metadata=described("What is protected."))

    copies: int | None = None

    name: ClassVar[str] = "dpsgd"
    sentence: ClassVar[Message | str] = Message("mechanism.dpsgd")
    extras: ClassVar[tuple[Parameter, ...]] = (
        Parameter.in_place("epochs", float, "Passes over the data, instead of steps; with batch and dataset size."),
    )

    def __post_init__(self) -> None:
        check_noise(self.noise_multiplier)
        check_rate(self.sample_rate)
        checks.count(steps=self.steps)
        checks.positive(max_grad_norm=self.max_grad_norm)
        for name in ("num_parameters", "batch_size", "dataset_size", "records_per_user", "copies"):
            if getattr(self, name) is not None:
                checks.count(**{name: getattr(self, name)})
        if not isinstance(self.sampler, Sampler):
            sampler_given(self.sampler)
        checks.strict_member(Unit, unit=self.unit)
        if self.unit is Unit.CLIENT and self.records_per_user is not None:
            hint = "left out with unit client: a client is protected with all its records"
            raise ParameterError("records_per_user", self.records_per_user, hint, shown=False)
        self.sampler.check(self)

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        if self.records > 1 and not self.sampler.of_persons(self):
            return _whole_users(self, self.accountable, neighbouring, attained)
        return self.sampler.parts(self, neighbouring, attained=attained)

    @property
    def work(self) -> float:
        """Each record of a person may be in the sum of a step or not: a law of as many values."""
        return _WORK_OF_A_RECORD * (self.records - 1)

    @property
    def training(self) -> DPSGD:
        return self

    @property
    def coordinates(self) -> int | None:
        return self.num_parameters

    @property
    def accountable(self) -> DPSGD:
        """The Poisson run whose curve holds for this one: epochs that use a record once become full-batch releases.

        An attacker who sees the step of the record knows that only one noisy sum per epoch depends on it; an epoch that
        was started counts in full. So do all uses of a record in it. Runs with other samplers stay as they are.
        """
        releases = self.sampler.releases(self)
        return self if releases is None else replace(self, sampler=INDEPENDENT, sample_rate=1.0, steps=releases)

    @property
    def singly_sampled(self) -> bool:
        """Whether single records are protected, each drawn independently: what closed forms are known for."""
        return self.sampler.independent and self.records == 1

    @classmethod
    def searched(cls) -> tuple[str, ...]:
        return ("noise_multiplier", "sample_rate", "steps", "batch_size")

    def changed(self, name: str, value: float) -> Mechanism:
        """A batch size is the sample rate in other words. At another rate, how many steps a pass has is not known.

        Raises:
            ParameterError: it is the batch size, and the number of records is not known.
        """
        if name not in ("sample_rate", "batch_size"):
            return Mechanism.changed(self, name, value)
        if name == "batch_size" and self.dataset_size is None:
            wanted = "given, as the batch size is the sample rate times it"
            raise ParameterError("dataset_size", None, wanted, shown=False)
        batch = {"batch_size": value} if name == "batch_size" else {}
        rate = min(value / (self.dataset_size or 1) if batch else value, 1.0)
        return replace(self, sample_rate=rate, sampler=self.sampler.in_batches(None), **batch)  # type: ignore[arg-type]

    @property
    def records(self) -> int:
        """How many coins of one person may come up in a step: records, times copies, times draws; usually 1."""
        return (self.records_per_user or 1) * (self.copies or 1) * self.sampler.draws

    def _followed(self) -> list[tuple[str, Any, str]]:
        share = self.sample_rate * self.sampler.uses
        batch = None if self.dataset_size is None else f"{share * self.dataset_size:.6g}"
        return [
            ("expected batch", batch if self.batch_size is None else None, "Records per batch, on average."),
            ("epochs", f"{self.steps * self.sample_rate:.6g}", "Passes over the data, on average."),
        ]

    @classmethod
    def resolved(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The rate may come from batch and dataset size, the steps from epochs: each started step counts.

        Raises:
            ParameterError: rate and sizes contradict each other, steps and epochs are both given, or a rate is missing.
        """
        fields = gathered(cls, given)
        epochs = fields.pop("epochs", None)
        rate = fields.get("sample_rate")
        if rate is not None:
            checks.rate(sample_rate=rate)
        if fields.get("batch_size") is not None and fields.get("dataset_size") is not None:
            ratio = _ratio(fields["batch_size"], fields["dataset_size"])
            if rate is not None and not abs(rate - ratio) <= 0.01 * ratio:
                raise ParameterError("sample_rate", rate, f"batch over dataset size, {ratio:g}, or left out")
            rate = fields["sample_rate"] = ratio if rate is None else rate
        if epochs is not None:
            if fields.get("steps") is not None:
                raise ParameterError("epochs", epochs, "left out where steps are given", shown=False)
            if rate is None:
                raise ParameterError(
                    "epochs", epochs, "given together with the batch size and the dataset size", shown=False
                )
            fields["steps"] = fields["sampler"].steps_in(epochs, rate)
        return fields

    @property
    def notes(self) -> tuple[Message | str, ...]:
        stated, drawn = self.records_per_user, self.sampler.notes(self)
        if self.unit is Unit.CLIENT:
            return (*drawn, Message("note.clients"))
        return drawn if stated is None else (*drawn, Message("note.records-per-person", n=Figure(str(stated))))

    def _stated(self) -> tuple[str, ...]:
        drawn = () if self.sampler.takes_all(self) else (self.sampler.condition.key,)
        person = () if self.records_per_user is None else ("records-per-person",)
        return ("clipped", *drawn, *person, "planned-steps", "public-divisor")

    def _unseen(self) -> tuple[str, ...]:
        if self.sampler.takes_all(self):
            return OF_A_START
        return ("kept-places" if self.sampler.public_places else "hidden-draws", *OF_A_START)


def _ratio(batch_size: int, dataset_size: int) -> float:
    ratio = checks.count(batch_size=batch_size) / checks.count(dataset_size=dataset_size)
    if ratio > 1.0:
        raise ParameterError("batch_size", batch_size, f"at most the dataset size, {dataset_size}")
    return ratio


def _whole_users(stated: DPSGD, run: DPSGD, neighbouring: Neighbouring, attained: bool) -> tuple[Part, ...]:
    """All records of one person together (docs/theory/whole-users.md); ``run`` is the accountable form of ``stated``.

    Shuffled epochs: given the permutation, what a person adds to the sums of an epoch has norm at most ``records``.
    """
    noise, rate, records = run.noise_multiplier, run.sample_rate, run.records
    if not (stated.sampler.independent or stated.sampler.in_passes):
        kind = stated.sampler.title
        raise UnsupportedError(f"several records of one person in batches of {kind}: no dominating pair is proven")
    if attained and not stated.sampler.independent and stated.sample_rate < 1.0:
        return ()
    keys = ("RETICENT:whole-user-dominance", *stated.sampler.theorems(stated))
    if noise == 0.0:
        return (Part(pairs.Disclosure(rate), run.steps * records, keys),)  # each record shows the person independently
    pair: pairs.Pair
    if rate == 1.0:
        pair = pairs.GaussianPair(noise, 1.0, records * neighbouring.sensitivity)
    else:
        pair = pairs.WholeUserGaussianPair(noise, rate, records, neighbouring is Neighbouring.REPLACE)
    return (Part(pair, run.steps, keys),)
