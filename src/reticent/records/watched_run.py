"""The ledger of a training loop that was watched: what was seen, what was declared, and what stays unknown.

``reticent.watching`` writes it; no torch is needed to read it. Everything outside ``diagnostics`` is public once the
model is. What is unknown gets no amplification by sampling, and where no proof covers the run at all, the mechanism is
one without noise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from reticent.io import files
from reticent.io.models import Closed, Count, Finite, NonNegative, Positive, Rate, Sha256, Terse, Whole
from reticent.io.times import Date
from reticent.mechanisms import DPSGD, Mechanism
from reticent.mechanisms.gradients import GradientsRecord
from reticent.mechanisms.ledger import together
from reticent.mechanisms.units import Unit
from reticent.pairs import Neighbouring
from reticent.proofs import Status
from reticent.records import vouched
from reticent.records.hidden_steps import unequal_steps
from reticent.records.merged import coarse
from reticent.records.planned import PlannedSteps, charged
from reticent.records.rules import Digest, Versions, Word
from reticent.records.run_parts import MOST_STEPS
from reticent.records.sealed import Sealed, facts_of
from reticent.records.watch_faults import Fault
from reticent.records.watch_rules import WATCH_RULES, demanded_faults, seen_faults
from reticent.records.watch_source import Drawn as Drawn
from reticent.records.watch_source import Randomness as Randomness
from reticent.records.watch_source import Source as Source
from reticent.records.watch_start import MOST_EARLIER, StartRecord
from reticent.samplers import INDEPENDENT, Sampler
from reticent.samplers.base import seen_as

WATCH_SCHEMA: Literal["reticent.watch/1"] = "reticent.watch/1"

_MOST_SEGMENTS = 4096

Name = Annotated[str, Field(max_length=300)]


class SamplerRecord(Terse):
    """How batches were drawn.

    Attributes:
        drawn: the kind of draw.
        source: whether the sampler itself was looked at.
        name: the class of the sampler, or what was declared.
        sample_rate: probability of one record per batch, under Poisson sampling and with batches of a fixed size.
        batch_size: records in one full batch, where that is fixed.
        dataset_size: records to draw from, if known.
        batches_per_epoch: batches in one pass over the data, if passes exist.
        times_per_epoch: how often one record can be drawn in one pass; None where passes bound nothing.
        drop_last: whether the last incomplete batch is left out; None where there is none.
        copies: positions of the data at which one and the same record lies, at most; left out of the file where each
            record lies at one.
    """

    drawn: Drawn
    source: Source
    name: Word
    sample_rate: Rate | None = None
    batch_size: Count | None = None
    dataset_size: Count | None = None
    batches_per_epoch: Count | None = None
    times_per_epoch: Count | None = None
    drop_last: bool | None = None
    copies: Count | None = None

    left_out = ("copies",)

    @property
    def most_uses(self) -> int:
        """How often one record can be in a batch, or in a pass over the data."""
        if self.drawn in (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT):
            return self.batch_size or 1
        return self.times_per_epoch or 1

    @model_validator(mode="after")
    def _poisson_has_a_rate(self) -> SamplerRecord:
        if (self.drawn in (Drawn.POISSON, Drawn.FIXED_SIZE)) != (self.sample_rate is not None):
            raise ValueError("sample_rate goes with poisson and fixed-size")
        return self


class ClippingRecord(Closed):
    """How gradients were clipped.

    Attributes:
        kind: ``flat``, ``per-layer``, ``adaptive``, ``automatic`` or ``unknown``.
        source: whether the optimizer was looked at.
        smallest, largest: clip norms over the steps, L2 over all parameters; None where they are not known.
    """

    kind: Literal["flat", "per-layer", "adaptive", "automatic", "unknown"]
    source: Source
    smallest: Positive | None = None
    largest: Positive | None = None


class Segment(Closed):
    """Equal steps.

    Attributes:
        noise_multiplier: noise standard deviation over the norm to which gradients were clipped, on the sum.
        steps: noisy updates.
        sample_rate: probability of one record per batch under Poisson sampling, where it is not that of the
            sampler record, because it changed.
        batches: most batches that one of these steps added up.
        passes: passes over the data from which these steps drew, started ones included; None if not seen.
        mixed_passes: most passes from which one of these steps drew.
    """

    noise_multiplier: NonNegative
    steps: Count
    sample_rate: Rate | None = None
    batches: Count = 1
    passes: Count | None = None
    mixed_passes: Count = 1


class Tally(Closed):
    """What the segments add up to, written down when the loop ended: they must still do so.

    Attributes:
        steps: noisy updates.
        exposures: sum over steps of how often one record can have been in them.
        records_per_user: as the program stated it; None where it stated nothing.
        planned_steps, unit: as in the ledger.
        divisor: of every step, if it is known and the same.
        faults: how many of the faults were seen and follow from no other fact.
        inverse_noise: sum over steps of 1 / noise multiplier squared; None where a step had no noise.
        coins: sum over steps of the sample rate, under Poisson sampling.
        passes: sums over segments of their passes, and over steps of the passes that they drew from.
        mixed_passes: see ``passes``.
    """

    steps: Count
    exposures: Count
    records_per_user: Count | None
    planned_steps: Count | None = None
    unit: Unit = Unit.RECORD
    divisor: Positive | None
    faults: Whole
    inverse_noise: Positive | None
    coins: NonNegative
    passes: Whole
    mixed_passes: Count


class MeasuredChange(Closed):
    """What a recorder accumulated about one attribute: the fields of its ``SensitivityRecord``.

    Attributes:
        steps: noisy updates seen.
        scope: whose gradients were compared.
        squared_change, published_squared_change: sums over steps of squared distances of clipped gradients.
        mask_term, largest_mask_term: sum over steps of the mask term, and the largest of a step.
        noise_multiplier: at which mask terms were evaluated.
        budget: largest ``mask_term`` that a filter allowed, fixed before training, or None.
    """

    steps: Count
    scope: Name
    squared_change: NonNegative
    mask_term: NonNegative
    largest_mask_term: NonNegative
    published_squared_change: NonNegative | None
    noise_multiplier: Positive
    budget: NonNegative | None = None


class WatchDiagnostics(Terse):
    """Computed from the training records without noise: not covered by any guarantee.

    Attributes:
        batch_sizes: realised number of records, one per step; None where it was not seen.
        clipped: records whose gradient norm exceeded the clip norm, one per step; None where it was not measured.
        seconds: wall time of the loop.
        sensitivity: what was recorded about one attribute, if that was asked for and could be measured; left out of
            the file where there is none.
        start_salt: of the commitment to the start weights; left out of the file where there is none.
    """

    batch_sizes: Annotated[tuple[Whole | None, ...], Field(max_length=MOST_STEPS)]
    clipped: Annotated[tuple[Whole | None, ...], Field(max_length=MOST_STEPS)]
    seconds: Finite
    sensitivity: MeasuredChange | None = None
    start_salt: Sha256 | None = None

    left_out = ("sensitivity", "start_salt")


class PublicWatchedRun(Sealed):
    """What one watched loop did, without what no guarantee covers.

    Attributes:
        created: time at which the loop ended.
        sampler, clipping: how records were drawn and gradients clipped.
        segments: equal steps, in order.
        divisor: what the noisy sum was divided by; None where it was not seen or changed.
        num_parameters: trained coordinates.
        tally: what the segments add up to; nobody accepts a ledger without.
        records_per_user: the most records of one person, as the program states it; None where it states nothing. Left
            out of the file then.
        optimiser: classes of the private optimizer and of the one inside it.
        mixing_layers: layers that mix the records of a batch, by name.
        randomness: where the noise came from.
        digest: SHA-256 of all other facts when the loop ended; see ``sealed``.
        device: where the model lay.
        weights_sha256: of the bytes that ``safetensors`` writes for parameters and buffers by name; None if
            the loop did not end.
        versions: by package.
        faults: what a reader must know; those that follow from the other facts must be among them.
        gradients: what the form of the model says about gradients; None, and left out of the file, where nobody looked.
        start: the weights at which the loop began; left out of the file where nobody looked.
        earlier: loops that ran before on the same model, in order: each ended at the weights at which the next began.
            Their releases count as well. Left out of the file where there is none.
        planned: how many steps there were to be at most; None, and left out of the file, where nothing is stated.
        unit: what is drawn, clipped and protected as one; left out of the file where it is a record.
    """

    schema_: Literal["reticent.watch/1"] = Field(default=WATCH_SCHEMA, alias="schema")
    created: Date
    sampler: SamplerRecord
    clipping: ClippingRecord
    segments: Annotated[tuple[Segment, ...], Field(min_length=1, max_length=_MOST_SEGMENTS)]
    divisor: Positive | None
    num_parameters: Count | None
    optimiser: tuple[Word, ...]
    mixing_layers: tuple[Word, ...]
    randomness: Randomness
    device: Word
    weights_sha256: Sha256 | None
    versions: Versions
    faults: tuple[Fault, ...]
    records_per_user: Count | None = None
    gradients: GradientsRecord | None = None
    start: StartRecord | None = None
    earlier: Annotated[tuple[PublicWatchedRun, ...], Field(max_length=MOST_EARLIER)] = ()
    planned: PlannedSteps | None = None
    unit: Unit = Unit.RECORD
    tally: Tally | None = None
    digest: Digest = ""

    rules = WATCH_RULES
    left_out = ("records_per_user", "gradients", "planned", "start", "unit", "earlier")

    @property
    def contraction(self) -> None:
        """No watch sees by which factor updates contract: the person who certifies may declare one."""
        return None

    @property
    def unequal_updates(self) -> str | None:
        """What keeps the updates of the loop from being equal; see ``hidden_steps``."""
        return unequal_steps(self)

    @property
    def looks_to_stop(self) -> bool:
        """Never by the watch: it keeps no budget of private gradients."""
        return False

    def rearranges(self, neighbouring: Neighbouring) -> bool:
        """Whether a record may have decided who else was in a batch (condition ``kept-places``)."""
        return any(vouched.rearranges(run, neighbouring) for run in (*self.earlier, self))

    def vouches(self) -> dict[str, Status]:
        """The conditions, by key, that this ledger establishes; see ``reticent.proofs``."""
        return vouched.of_watched(self)

    def _lines(self) -> list[str]:
        drawn = self.sampler
        head = f"watched loop: {self.steps} noisy steps, batches {drawn.drawn} ({drawn.source})"
        if self.earlier:
            head += f", after {sum(run.steps for run in self.earlier)} steps in {len(self.earlier)} earlier"
        head += f", of at most {self.planned.steps} planned" if self.planned is not None else ""
        return [head, *(f"{fault.explanation.severity}: {fault.value}" for fault in self.faults)]

    @property
    def steps(self) -> int:
        """Noisy updates."""
        return sum(segment.steps for segment in self.segments)

    def added_up(self) -> Tally:
        """What the segments add up to."""
        usual = self.sampler.sample_rate
        squares = [(s.steps, s.noise_multiplier) for s in self.segments]
        silent = any(noise == 0.0 for _, noise in squares)
        return Tally(
            steps=self.steps,
            exposures=sum(s.steps * s.batches for s in self.segments) * self.sampler.most_uses,
            records_per_user=self.records_per_user,
            planned_steps=None if self.planned is None else self.planned.steps,
            unit=self.unit,
            divisor=self.divisor,
            faults=seen_faults(self),
            inverse_noise=None if silent else sum(steps * noise**-2 for steps, noise in squares),
            coins=sum(s.steps * (s.sample_rate or usual or 0.0) for s in self.segments),
            passes=sum(s.passes or 0 for s in self.segments),
            mixed_passes=sum(s.steps * s.mixed_passes for s in self.segments),
        )

    def counted(self, faults: tuple[Fault, ...]) -> Self:
        """The same with these faults and with its tally, sealed anew."""
        found = self.model_copy(update={"faults": faults})
        return found.model_copy(update={"tally": found.added_up()}).sealed()

    def mechanism(self) -> Mechanism:
        """The safe reading of what was seen: at least as much risk as any run that fits the facts.

        Poisson batches, one for each step, are accounted as such. Everywhere else no amplification by sampling is
        claimed: a record counts as often as it can have been in the sums, and each record of a person as often as
        one that is alone. Where draws are not of each record by itself, this rests on no record deciding who else is in
        a batch (``rearranges``). A fault that voids the guarantee leaves no noise. Earlier loops on the same model are
        composed with it.
        """
        runs = [*self.earlier, self]
        if any(fault.voids for run in runs for fault in run.faults):
            return self._part(0.0, 1.0, sum(run.steps for run in runs))
        return together(coarse([run._of(segment) for run in runs for segment in charged(run)]))

    def demanded(self) -> tuple[Fault, ...]:
        """The faults that follow from the other facts."""
        return demanded_faults(self)

    def published(self, **changes: Any) -> PublicWatchedRun:
        """Without diagnostics, with ``changes``, sealed anew."""
        return facts_of(PublicWatchedRun, self, changes)

    def _of(self, segment: Segment) -> DPSGD:
        """The release that a segment amounts to."""
        noise, steps, sampler = segment.noise_multiplier, segment.steps, self.sampler
        kind = seen_as(sampler.drawn) if Fault.OTHER_BATCHES not in self.faults else None
        if kind is not None and kind.in_passes and sampler.times_per_epoch is not None:
            return self._in_passes(segment, sampler.times_per_epoch, kind())
        rate = segment.sample_rate or sampler.sample_rate
        public = kind is not None and kind.independent and Fault.PUBLIC_DRAWS in self.faults
        if kind is not None and not kind.in_passes and not public and rate is not None and segment.batches == 1:
            return self._part(noise, rate, steps, kind())
        often = sampler.times_per_epoch or 1
        if sampler.drawn in (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT):
            often = sampler.batch_size or 0  # a record may fill a batch
        return self._part(noise / (segment.batches * often) if often else 0.0, 1.0, steps)

    def _in_passes(self, segment: Segment, times: int, kind: Sampler) -> DPSGD:
        """A record that each pass draws at most ``times`` times.

        If it is in the steps m_1, m_2, ... times, then sum m_t <= passes * times and each m_t <= mixed * times, so
        sum m_t^2 <= passes * times * mixed * times releases of the whole data are on the safe side.
        """
        noise, steps, batches = segment.noise_multiplier, segment.steps, self.sampler.batches_per_epoch
        if segment.passes is None:
            return self._part(noise / (segment.batches * times), 1.0, steps)
        if segment.batches == times == 1 and batches is not None and kind.allocated:
            unbroken = segment.passes == -(-steps // batches)
            counted = steps if unbroken else segment.passes * batches  # each pass that was begun is an epoch
            return self._part(noise, 1.0 / batches, counted, kind.in_batches(batches))
        per_step = min(segment.batches, segment.mixed_passes) if times == 1 else segment.mixed_passes * times
        if segment.batches == times == 1 and batches is not None and segment.passes == -(-steps // batches):
            return self._part(noise, 1.0 / batches, steps, kind.in_batches(batches))  # no pass was broken off
        return self._part(noise, 1.0, min(segment.passes * times * per_step, steps * per_step**2))

    def _part(self, noise: float, rate: float, steps: int, sampler: Sampler = INDEPENDENT) -> DPSGD:
        return DPSGD(
            noise_multiplier=noise,
            sample_rate=rate,
            steps=steps,
            max_grad_norm=self.clipping.smallest or 1.0,  # a change of gradients counts against the least noise
            num_parameters=self.num_parameters,
            dataset_size=self.sampler.dataset_size,
            sampler=sampler,
            records_per_user=self.records_per_user,
            copies=self.sampler.copies,
            unit=self.unit,
        )


class WatchedRun(PublicWatchedRun):
    """The whole ledger of a watched loop: what ``PublicWatchedRun`` holds, and diagnostics of the training records."""

    diagnostics: WatchDiagnostics

    @model_validator(mode="after")
    def _one_entry_per_step(self) -> WatchedRun:
        if not len(self.diagnostics.batch_sizes) == len(self.diagnostics.clipped) == self.steps:
            raise ValueError("diagnostics must have one entry per step")
        return self

    def public(self) -> dict[str, Any]:
        """The ledger as JSON data without diagnostics."""
        return self.published().model_dump(mode="json", by_alias=True)

    def save(self, path: Path | str) -> None:
        """Write the ledger as JSON; it is not for publication, as it holds diagnostics of the training records.

        Raises:
            ArtifactError: it cannot be written.
        """
        with files.writing(Path(path)):
            files.write_atomic(Path(path), self.to_json().encode())
