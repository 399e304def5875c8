"""DP-SGD, and what may be claimed for each of its samplers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeGuard

from reticent import _check, pairs
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms.base import Mechanism, check_noise, check_rate
from reticent.mechanisms.epochs import MOST_STEPS, batches_of_a_pass, epochs_to_steps, whole_batches_of_a_pass
from reticent.mechanisms.sampler_pairs import allocated_parts, kept_parts, truncated_parts
from reticent.mechanisms.sampling import (
    ALLOCATED_NOTE,
    EVERY_STEP,
    FIXED_SIZE_NOTE,
    MU_NOTE,
    ONE_STEP,
    TRUNCATED_NOTE,
    Sampler,
)
from reticent.mechanisms.units import CLIENT_NOTE, Unit
from reticent.pairs import Neighbouring, Part
from reticent.registry import Parameter, described

DRAWS = {
    Sampler.POISSON: "poisson-draws",
    Sampler.FIXED_SIZE: "fixed-size-draws",
    Sampler.SHUFFLED: "shuffled-draws",
    Sampler.CYCLIC: "shuffled-draws",
    Sampler.RANDOM_ALLOCATION: "allocation-draws",
    Sampler.ALLOCATED_ONCE: "kept-allocation-draws",
    Sampler.TRUNCATED_POISSON: "truncated-draws",
}
"""The condition that each sampler states."""
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
        batches_per_epoch: where each record is in one step of each epoch, how many steps that are, if it is known
            whether the loader keeps the last incomplete batch; None is answered as if it were dropped, which is safe.
        uses_per_epoch: under ``RANDOM_ALLOCATION``, in how many steps of an epoch a record is used, drawn without
            replacement; None is 1.
        draws_per_step: under ``POISSON``, how many independent draws, each at ``sample_rate``, are summed before the
            noise of one step (micro-batches, workers); None is 1.
        max_batch_size: under ``TRUNCATED_POISSON``, the size at which batches are cut; needs ``dataset_size``.
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
    sampler: Sampler = field(default=Sampler.POISSON, metadata=described("How batches are drawn."))
    batches_per_epoch: int | None = field(default=None, metadata=described("Noisy updates per pass over the data."))
    records_per_user: int | None = field(
        default=None, metadata=described("Most records of one person; then all of them are protected together.")
    )
    unit: Unit = field(default=Unit.RECORD, metadata=described("What is protected."))

    uses_per_epoch: int | None = field(default=None, metadata=described("Uses of a record per pass, for allocation."))
    max_batch_size: int | None = field(default=None, metadata=described("Size at which truncated batches are cut."))

    draws_per_step: int | None = field(default=None, metadata=described("Poisson draws summed before the noise."))

    copies: int | None = None

    name: ClassVar[str] = "dpsgd"
    extras: ClassVar[tuple[Parameter, ...]] = (
        Parameter.in_place("epochs", float, "Passes over the data, instead of steps; with batch and dataset size."),
    )

    def __post_init__(self) -> None:
        check_noise(self.noise_multiplier)
        check_rate(self.sample_rate)
        _check.count(steps=self.steps)
        _check.positive(max_grad_norm=self.max_grad_norm)
        for name in (
            "num_parameters",
            "batch_size",
            "dataset_size",
            "records_per_user",
            "uses_per_epoch",
            "max_batch_size",
            "draws_per_step",
            "copies",
        ):
            if getattr(self, name) is not None:
                _check.count(**{name: getattr(self, name)})
        _check.strict_member(Sampler, sampler=self.sampler)
        _check.strict_member(Unit, unit=self.unit)
        if self.unit is Unit.CLIENT and self.records_per_user is not None:
            hint = "left out with unit client: a client is protected with all its records"
            raise ParameterError("records_per_user", self.records_per_user, hint, shown=False)
        if self.batches_per_epoch is not None:
            self._check_epoch(_check.count(batches_per_epoch=self.batches_per_epoch))
        self._check_own()

    def _check_own(self) -> None:
        """What belongs to one sampler."""
        uses, most = self.uses_per_epoch, self.max_batch_size
        if uses is not None and (self.sampler is not Sampler.RANDOM_ALLOCATION or uses > batches_per_epoch(self)):
            wanted = "left out unless the sampler is random-allocation; at most the steps of an epoch"
            raise ParameterError("uses_per_epoch", uses, wanted, shown=False)
        if self.draws_per_step is not None and self.sampler is not Sampler.POISSON:
            raise ParameterError(
                "draws_per_step", self.draws_per_step, "left out unless the sampler is poisson", shown=False
            )
        truncated = self.sampler is Sampler.TRUNCATED_POISSON
        if truncated != (most is not None):
            raise ParameterError(
                "max_batch_size",
                most,
                "given with the sampler truncated-poisson, and with no other",
                shown=most is not None,
            )
        if truncated and self.dataset_size is None:
            raise ParameterError("dataset_size", None, "given with the sampler truncated-poisson", shown=False)

    def _check_epoch(self, batches: int) -> None:
        if not self.sampler.in_passes:
            wanted = "left out unless each record is in one step of each epoch"
            raise ParameterError("batches_per_epoch", batches, wanted, shown=False)
        fewest, most = whole_batches_of_a_pass(self.sample_rate), batches_of_a_pass(self.sample_rate)
        if not fewest <= batches <= max(fewest, most):
            raise ParameterError("batches_per_epoch", batches, f"1 / sample_rate, rounded ({fewest} or {most})")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        run = accountable(self)
        if self.sampler.allocated and self._is_followed(neighbouring):
            batches = (most_batches if attained else batches_per_epoch)(self)
            return allocated_parts(self, neighbouring, batches, attained=attained)
        if self.records > 1:
            return _whole_users(self, run, neighbouring, attained)
        if self.sampler is Sampler.TRUNCATED_POISSON:
            return truncated_parts(self, neighbouring, attained=attained)
        shift = attained_shift(self, neighbouring) if attained else largest_shift(self, neighbouring)
        if shift == 0.0:
            return ()
        if attained and self.sampler is Sampler.CYCLIC:  # a record of the first batch, in epochs that are certain
            run = replace(run, steps=-(-self.steps // most_batches(self)))
        pair, key = _dominating(run, neighbouring, shift, attained)
        return (Part(pair, run.steps, (key, *epoch_theorems(self))),)

    def _is_followed(self, neighbouring: Neighbouring) -> bool:
        """Whether hidden steps of an allocation take something off; several uses in an epoch, of one record alone."""
        alone = self.records == 1 and neighbouring is not Neighbouring.REPLACE
        return self.noise_multiplier > 0.0 and (alone or (self.uses_per_epoch or 1) == 1)

    @property
    def work(self) -> float:
        """Each record of a person may be in the sum of a step or not: a law of as many values."""
        return _WORK_OF_A_RECORD * (self.records - 1)

    @property
    def records(self) -> int:
        """How many coins of one person may come up in a step: records, times copies, times draws; usually 1."""
        return (self.records_per_user or 1) * (self.copies or 1) * (self.draws_per_step or 1)

    def _followed(self) -> list[tuple[str, Any, str]]:
        batch = None if self.dataset_size is None else f"{self.sample_rate * self.dataset_size:.6g}"
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
        fields = dict(given)
        epochs = fields.pop("epochs", None)
        rate = fields.get("sample_rate")
        if rate is not None:
            _check.rate(sample_rate=rate)
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
            batches = fields.get("batches_per_epoch")
            sampler = Sampler(fields.get("sampler") or Sampler.POISSON)
            fields["steps"] = steps_in(epochs, rate, sampler, batches)
        return fields

    @property
    def notes(self) -> tuple[str, ...]:
        person = () if self.records_per_user is None else (_person_note(self.records_per_user),)
        person = (CLIENT_NOTE,) if self.unit is Unit.CLIENT else person
        if self.sampler in (Sampler.SHUFFLED, Sampler.CYCLIC):
            return (_shuffled_note(self), *person)
        how: tuple[str, ...] = ()
        if self.sampler is Sampler.FIXED_SIZE:
            how = (FIXED_SIZE_NOTE,)
        elif self.sampler is Sampler.TRUNCATED_POISSON:
            how = (TRUNCATED_NOTE.format(self.max_batch_size),)
        elif self.sampler.allocated:
            how = (ALLOCATED_NOTE.format(batches_per_epoch(self)),)
        sampled = self.sample_rate < 1.0 and self.noise_multiplier > 0.0
        least = MU_NOTE.format(ONE_STEP if self.sampler.allocated else EVERY_STEP)
        return (*how, *((least,) if sampled else ()), *person)

    def _stated(self) -> tuple[str, ...]:
        drawn = () if self._whole else (DRAWS[self.sampler],)
        person = () if self.records_per_user is None else ("records-per-person",)
        return ("clipped", *drawn, *person, "planned-steps", "public-divisor")

    def _unseen(self) -> tuple[str, ...]:
        if self._whole:
            return ("start-weights",)
        public = self.sampler in (Sampler.SHUFFLED, Sampler.CYCLIC)
        return ("kept-places" if public else "hidden-draws", "start-weights")

    @property
    def _whole(self) -> bool:
        """Whether every batch is all records."""
        return self.sample_rate == 1.0 and self.sampler is not Sampler.TRUNCATED_POISSON


def epoch_theorems(run: DPSGD) -> tuple[str, ...]:
    """Keys of what the count of epochs follows from, where batches are shuffled."""
    return ("RETICENT:shuffled-epochs",) if run.sampler.in_passes and run.sample_rate < 1.0 else ()


def steps_in(
    epochs: float, sample_rate: float, sampler: Sampler, batches: int | None = None, most: int = MOST_STEPS
) -> int:
    """Noisy updates in ``epochs``: where a record is in one step of each, an epoch has as many whole batches as fit.

    So as many epochs are counted as were stated, whether or not the loader keeps a smaller last batch.

    Args:
        epochs: passes over the data, > 0.
        sample_rate: share of the data in one step.
        sampler: how batches are drawn.
        batches: steps per epoch, where they are known.
        most: steps that are allowed.

    Raises:
        ParameterError: as for ``epochs_to_steps``.
    """
    if batches is None and sampler.in_passes:
        batches = whole_batches_of_a_pass(sample_rate)
    return epochs_to_steps(epochs, sample_rate if batches is None else 1.0 / batches, most)


def _ratio(batch_size: int, dataset_size: int) -> float:
    ratio = _check.count(batch_size=batch_size) / _check.count(dataset_size=dataset_size)
    if ratio > 1.0:
        raise ParameterError("batch_size", batch_size, f"at most the dataset size, {dataset_size}")
    return ratio


def _dominating(run: DPSGD, neighbouring: Neighbouring, shift: float, attained: bool) -> tuple[pairs.Pair, str]:
    """The pair of one step of an accountable run, and the theorem that proves it."""
    noise, rate, fixed = run.noise_multiplier, run.sample_rate, run.sampler is Sampler.FIXED_SIZE
    sizes_agree = neighbouring is not Neighbouring.ADD_REMOVE
    if rate == 1.0:
        key = "DONG2022:Definition 2.3"
    elif fixed:
        key = "DONG2022:Theorem 4.2" if sizes_agree else "RETICENT:fixed-size-dominance"
    else:
        replaced = neighbouring is Neighbouring.REPLACE
        key = "RETICENT:replace-dominance" if replaced else "ZHU2022:Proposition 30"
    if noise == 0.0:
        return pairs.Disclosure(rate, displaces=fixed), key
    if fixed and sizes_agree and not attained:
        return pairs.SymmetrisedGaussianPair(noise, rate, shift), key
    return pairs.GaussianPair(noise, rate, shift) if fixed else pairs.poisson_gaussian(noise, rate, neighbouring), key


def _whole_users(stated: DPSGD, run: DPSGD, neighbouring: Neighbouring, attained: bool) -> tuple[Part, ...]:
    """All records of one person together (docs/theory/whole-users.md); ``run`` is the accountable form of ``stated``.

    Shuffled epochs: given the permutation, what a person adds to the sums of an epoch has norm at most ``records``.
    """
    noise, rate, records = run.noise_multiplier, run.sample_rate, run.records
    if run.sampler.displaces:
        raise UnsupportedError("several records of one person in batches of fixed size: no dominating pair is proven")
    if attained and stated.sampler.in_passes and stated.sample_rate < 1.0:
        return ()
    keys = ("RETICENT:whole-user-dominance", *epoch_theorems(stated))
    if noise == 0.0:
        return (Part(pairs.Disclosure(rate), run.steps * records, keys),)  # each record shows the person independently
    pair: pairs.Pair
    if rate == 1.0:
        pair = pairs.GaussianPair(noise, 1.0, records * neighbouring.sensitivity)
    else:
        pair = pairs.WholeUserGaussianPair(noise, rate, records, neighbouring is Neighbouring.REPLACE)
    return (Part(pair, run.steps, keys),)


def _person_note(records: int) -> str:
    if records == 1:
        return "Stated: each person contributed one record."
    return f"Stated: each person contributed at most {records} records. The numbers are about all of these together."


def _shuffled_note(run: DPSGD) -> str:
    batches, epochs = batches_per_epoch(run), accountable(run).steps
    why = f"{batches} per epoch"
    if batches != most_batches(run):
        why += ", as the loader may drop an incomplete batch"
    updates = "1 step" if run.steps == 1 else f"{run.steps} steps"
    return (
        "Shuffled batches: no amplification by sampling is claimed; each started epoch counts as one release that "
        f"contains the target: {epochs} counted ({updates}, {why})."
    )


def batches_per_epoch(run: DPSGD) -> int:
    """Noisy updates per pass over shuffled data: as recorded, else the fewest that there can be.

    A loader that drops the last incomplete batch makes floor(1/sample_rate), one that keeps it rounds up; the
    fewer fit into an epoch, the more epochs were started.
    """
    return run.batches_per_epoch or whole_batches_of_a_pass(run.sample_rate)


def most_batches(run: DPSGD) -> int:
    """Noisy updates per pass: as recorded, else the most that there can be, which lower ends rest on.

    Args:
        run: with one use of each record per pass.
    """
    return run.batches_per_epoch or batches_of_a_pass(run.sample_rate)


def accountable(run: DPSGD) -> DPSGD:
    """The Poisson run whose curve holds for ``run``: epochs in which a record is used once become full-batch releases.

    An attacker who sees the step of the record knows that only one noisy sum per epoch depends on it; an epoch that was
    started counts in full. So do all uses of a record in it. Runs with other samplers are returned as they are.
    """
    if not run.sampler.in_passes:
        return run
    epochs = -(-run.steps // batches_per_epoch(run)) * (run.uses_per_epoch or 1)
    poisson = replace(run, sampler=Sampler.POISSON, batches_per_epoch=None, uses_per_epoch=None)
    return replace(poisson, sample_rate=1.0, steps=epochs)


def keeps_steps(part: Mechanism) -> TypeGuard[DPSGD]:
    """Whether each record has one hidden step, which was drawn once for all epochs."""
    if not isinstance(part, DPSGD) or part.sampler is not Sampler.ALLOCATED_ONCE:
        return False
    return part.noise_multiplier > 0.0 and batches_per_epoch(part) > 1


def kept_together(runs: Sequence[DPSGD], neighbouring: Neighbouring) -> tuple[Part, ...]:
    """Runs that keep steps, in one ledger: their draws may be one and the same."""
    if not runs:
        return ()
    epochs = [-(-run.steps // batches_per_epoch(run)) for run in runs]
    noises = [run.noise_multiplier / math.sqrt(count) for run, count in zip(runs, epochs, strict=True)]
    return kept_parts(noises, min(map(batches_per_epoch, runs)), runs[0].records, neighbouring)


def one_record(mechanism: Mechanism, what: str) -> None:
    """Refuse a run whose numbers are to hold for several records of one person.

    Args:
        what: the start of the error's sentence.

    Raises:
        UnsupportedError: ``what`` is known for one record per person only.
    """
    for part in getattr(mechanism, "parts", (mechanism,)):
        if isinstance(part, DPSGD) and part.records > 1:
            raise UnsupportedError(f"{what} is known for one record per person only")


def largest_shift(run: DPSGD, neighbouring: Neighbouring) -> float:
    """How far the target moves the sum of one step, in clip norms.

    In batches of fixed size the target takes another record's place, so the sum moves by up to 2 under every
    relation.
    """
    return 2.0 if run.sampler.displaces else neighbouring.sensitivity


def singly_sampled(release: Mechanism) -> TypeGuard[DPSGD]:
    """Whether single records are protected, each drawn independently: what closed forms are known for."""
    return isinstance(release, DPSGD) and release.sampler is Sampler.POISSON and release.records == 1


def attained_shift(run: DPSGD, neighbouring: Neighbouring) -> float:
    """How far the target moves the sum of one step in a data set that exists; 0 where none is known.

    Lower ends follow from this (docs/theory/sampling.md). Fixed size: all other gradients are opposite to the target's,
    which a full batch without the target would contradict; under zero-out they are zero.
    """
    match run.sampler:
        case Sampler.SHUFFLED | Sampler.RANDOM_ALLOCATION | Sampler.ALLOCATED_ONCE:
            return neighbouring.sensitivity if run.sample_rate == 1.0 else 0.0
        case Sampler.FIXED_SIZE if neighbouring is Neighbouring.ADD_REMOVE:
            return 2.0 if run.sample_rate < 1.0 else 0.0
        case _:
            return neighbouring.sensitivity
