"""The ledger: what really ran, as frozen data that needs no torch.

``reticent train`` and ``reticent.watching`` write it from what was executed, never from what was asked for. It states
each fact once: mechanism, faults, warnings and conditions are computed from the facts when they are read. Everything
but ``diagnostics`` may be published with the model, as ``published`` makes it. What is unknown gets no amplification by
sampling, and where no proof covers the run at all, the mechanism is one without noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from reticent.facts import Fact, all_facts, known
from reticent.facts.base import Word
from reticent.facts.draws import rearranges
from reticent.facts.hidden_steps import contraction_of, unequal_settings, unequal_steps
from reticent.facts.selected_run import SelectionRecord
from reticent.facts.spread import Limits, limits_of
from reticent.facts.start_weights import StartRecord
from reticent.facts.steps import ClippingRecord, Randomness, SamplerRecord, Segment
from reticent.io import strict
from reticent.io.files import refuse_no_folder
from reticent.io.models import Count, Positive, Sha256, Terse, validated
from reticent.io.outputs import signature_of, write_together
from reticent.io.strict import canonical, portable
from reticent.io.times import Date
from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.mechanisms.dpsgd import DPSGD
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.text import Brief
from reticent.mechanisms.gradients import GradientsRecord
from reticent.records import release
from reticent.records.chain import MOST_EARLIER
from reticent.records.parts import DataRecord, Diagnostics, Environment, ParameterRecord, PublicData, Utility
from reticent.records.publication import published

LEDGER_SCHEMA: Literal["reticent.ledger/2"] = "reticent.ledger/2"

_MOST_SEGMENTS = 4096
_MOST_FACTS = 200
_READABLE_STEPS = 10_000
_ORDER = (Status.ASSUMED, Status.DECLARED, Status.CHECKED)
_OF_A_WATCH = ("unit", "start", "earlier")
_OF_OUR_TRAINER = ("utility", "selection")
Digest = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
"""SHA-256 of all other facts, or nothing before the ledger is sealed."""


class RunLedger(Brief, Terse):
    """What one run of ``reticent train`` did, or one loop that was watched.

    Attributes:
        created: when it ended, in UTC.
        config: what ``reticent train`` was asked for; None of a loop of somebody else.
        data: which records ``reticent train`` used; None of a loop of somebody else.
        sampler, clipping: how records were drawn and gradients clipped.
        segments: equal steps, in order.
        divisor: what the noisy sum was divided by, a constant; None where it was not seen or changed.
        records_per_user: the most records of one person, as the program states it; left out where it states nothing.
        unit: what is drawn, clipped and protected as one; left out of the file where it is a record.
        num_parameters: trained coordinates.
        parameters: tensors of the model, in the order of flat vectors; of ``reticent train``.
        gradients: what the form of the model says about gradients; left out of the file where nobody looked.
        environment: where and with what it ran.
        utility: quality on the test records; left out of the file where there are none, or nobody looked.
        weights_sha256: of the bytes that ``safetensors`` writes for parameters and buffers by name; None if the loop
            did not end, or nobody looked.
        facts: by key, what was found and follows from nothing else here; ``faults`` has all.
        start: the weights at which the loop began; left out of the file where nobody looked.
        earlier: loops that ran before on the same model, in order: each ended at the weights at which the next began.
            Their releases count as well.
        selection: of which runs this one is the best; left out of the file, where it is the only one.
        diagnostics: of the training records; None in the public form.
        digest: SHA-256 of all other facts when the run ended.
    """

    schema_: Literal["reticent.ledger/2"] = Field(default=LEDGER_SCHEMA, alias="schema")
    created: Date
    config: dict[str, Any] | None = None
    data: DataRecord | PublicData | None = None
    sampler: SamplerRecord
    clipping: ClippingRecord
    segments: Annotated[tuple[Segment, ...], Field(min_length=1, max_length=_MOST_SEGMENTS)]
    divisor: Positive | None
    records_per_user: Count | None = None
    unit: Unit = Unit.RECORD
    num_parameters: Count | None
    parameters: tuple[ParameterRecord, ...] = ()
    gradients: GradientsRecord | None = None
    environment: Environment
    utility: Utility = Utility(test_accuracy=None, test_loss=None)
    weights_sha256: Sha256 | None = None
    facts: Annotated[dict[Word, Any], Field(default_factory=dict, max_length=_MOST_FACTS)]
    start: StartRecord | None = None
    earlier: Annotated[tuple[RunLedger, ...], Field(max_length=MOST_EARLIER)] = ()
    selection: SelectionRecord | None = None
    diagnostics: Diagnostics | None = None
    digest: Digest = ""

    model_config = ConfigDict(populate_by_name=True)

    left_out = (
        *("config", "data", "records_per_user", "unit", "parameters", "gradients"),
        *("utility", "facts", "start", "earlier", "selection", "diagnostics"),
    )

    @field_validator("facts")
    @classmethod
    def _values(cls, stated: dict[str, Any]) -> dict[str, Any]:
        return {key: all_facts()[key].value(value) if key in all_facts() else value for key, value in stated.items()}

    @model_validator(mode="after")
    def _of_one_program(self) -> Self:
        """Our trainer has a configuration, records, tensors and seeds; of another loop nobody knows them."""
        ours, where = self.config is not None, self.environment
        known = [one is not None for one in (self.data, where.seeds, self.parameters or None)]
        if {*known, isinstance(where.randomness, Randomness)} != {ours}:
            raise ValueError("config, data, parameters, seeds and the randomness of our trainer go together")
        for name in _OF_A_WATCH if ours else _OF_OUR_TRAINER:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no place in a ledger {'with' if ours else 'without'} config")
        if self.diagnostics is not None and len(self.diagnostics.batch_sizes) != self.steps:
            raise ValueError("diagnostics.batch_sizes must have one entry per step")
        return self

    @property
    def steps(self) -> int:
        """Noisy updates."""
        return sum(segment.steps for segment in self.segments)

    @property
    def asked(self) -> dict[str, Any]:
        """The configuration; nothing where there is none."""
        return self.config or {}

    @property
    def own_data(self) -> DataRecord:
        """Which records ``reticent train`` used.

        Raises:
            UnsupportedError: the ledger does not say.
        """
        if not isinstance(self.data, DataRecord):
            raise UnsupportedError("the ledger does not say which records were used: it is no whole ledger of a run")
        return self.data

    @property
    def counted(self) -> int:
        """Noisy updates that count: those that ran, and those that were planned beyond them."""
        return sum(part.steps for part in release.read(self).segments)

    @property
    def every_segment(self) -> tuple[Segment, ...]:
        """Equal steps in order, each with all that is known of it."""
        return release.filled(self)

    @property
    def first(self) -> Segment:
        """The first of them."""
        return self.every_segment[0]

    @property
    def changes(self) -> bool:
        """Whether noise, rate, clip norm or divisor changed along the run."""
        return len(self.segments) > 1

    @property
    def dataset_size(self) -> int | None:
        """Training records, if they are known."""
        return self.sampler.dataset_size if self.data is None else self.data.dataset_size

    @property
    def loops(self) -> tuple[RunLedger, ...]:
        """Those that ran before on the same model, and this one."""
        return (*self.earlier, self)

    def found(self) -> Iterator[Fact]:
        """Every fact of this loop alone: what was found, and what other facts show. Unknown ones come first."""
        yield from (known(key) for key in self.facts if key not in all_facts())
        for fact in all_facts().values():
            value = self.facts.get(fact.key)
            if value is not None or (fact.shown is not None and fact.shown(self)):
                yield fact.because(value[0]) if isinstance(value, tuple) else fact

    @property
    def faults(self) -> tuple[Fact, ...]:
        """What a reader must know, of this loop and of those that it continues."""
        found = {fact: fact for one in self.loops for fact in one.found()}
        order = [*(fact for fact in found if fact.key not in all_facts()), *all_facts().values()]
        said = [found[fact] for fact in order if fact in found and fact.said]
        if self.config is None:
            return tuple(said)
        return tuple(fact.of_ours() if fact.ours else fact for fact in said if fact.ours or fact.key in self.facts)

    def mechanism(self) -> Mechanism:
        """The mechanism to account for: what was released, or the selection of which it is the best."""
        return self.one_run() if self.selection is None else self.selection.release()

    def one_run(self) -> Mechanism:
        """This run alone, with those that it continues: at least as much risk as any run that fits the facts."""
        return release.of(self)

    def equal_steps(self) -> DPSGD:
        """What ran, where all steps are equal: fewer than planned where the run stopped.

        Raises:
            UnsupportedError: noise, rate or clip norm changed along the run.
        """
        if self.changes:
            raise UnsupportedError(
                "noise, sample rate or clip norm changed along this run: only equal steps are answered"
            )
        return release.equal_steps(self)

    def vouches(self) -> dict[str, Status]:
        """The conditions, by key, that this ledger establishes, and those it continues: what all do, the weakest.

        ``checked`` is what was seen, ``declared`` what somebody says; what is left out is assumed. Where a fact voids
        the run, nothing is established.
        """
        if any(fact.voids for one in self.loops for fact in one.found()):
            return {}
        each = [_vouched(one) for one in self.loops]
        everywhere = set.intersection(*(set(found) for found in each))
        return {key: min((one[key] for one in each), key=_ORDER.index) for key in each[-1] if key in everywhere}

    @property
    def unstated(self) -> frozenset[str]:
        """Conditions that the program did not state, where it could have: assumed then is silence."""
        every = (found for fact in all_facts().values() for found in fact.silent.items())
        return frozenset(key for key, says_nothing in every if says_nothing(self))

    @property
    def contraction(self) -> float | None:
        """By which factor the updates contract, where this ledger establishes it; see ``hidden_steps``.

        No watch sees it: the person who certifies may declare one.
        """
        return contraction_of(self)

    @property
    def unequal_updates(self) -> str | None:
        """What keeps the updates of this run from being equal; see ``hidden_steps``."""
        return unequal_steps(self) if self.config is None else unequal_settings(self.config)

    @property
    def spread(self) -> Limits | None:
        """The limits that gradients of a public pool kept at every step; see ``facts.spread``."""
        return limits_of(self)

    @property
    def looks_to_stop(self) -> bool:
        """Whether a budget of private gradients (``sensitive.budget``) could end the run before its plan."""
        asked = self.asked.get("sensitive")
        return isinstance(asked, dict) and asked.get("budget") is not None

    def rearranges(self, neighbouring: Neighbouring) -> bool:
        """Whether a record may have decided who else was in a batch (condition ``kept-places``)."""
        return any(rearranges(one, neighbouring) for one in self.loops)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Pairs of a fact and what is wrong there. Whoever makes the digest anew states another run."""
        if not self.digest:
            yield "digest", "is missing: the ledger is not as it was written"
        elif self.digest != digest_of(self):
            yield "digest", "is not that of the other facts: they were changed after the run"

    def sealed(self) -> Self:
        """The same ledger with the digest of its facts, without which nobody accepts it."""
        return self.model_copy(update={"digest": digest_of(self)})

    def public(self) -> dict[str, Any]:
        """The ledger as JSON data as anybody may see it; see ``publication.published``."""
        return published(self).model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """Strict JSON text."""
        return strict.dumps(self.model_dump(mode="json", by_alias=True), indent=self.steps <= _READABLE_STEPS)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "ledger.json") -> RunLedger:
        """Read a ledger back.

        Raises:
            ArtifactError: the text is not strict JSON or not a ledger of this version.
        """
        return ledger_of(strict.loads(text, where), where)

    def save(self, path: Path | str, *, overwrite: bool = False, signature: bytes | None = None) -> None:
        """Write the ledger as JSON; it is not for publication, as it holds diagnostics of the training records.

        Args:
            path: of the file.
            overwrite: whether another file may lie there.
            signature: an envelope around this JSON; it is written next to it, in ``NAME.dsse.json``.

        Raises:
            ArtifactError: something lies there, and ``overwrite`` is not said; or it cannot be written.
        """
        path, text = Path(path), self.to_json().encode()
        if path.exists() and not overwrite:
            raise ArtifactError(f"{path} already exists; choose another name, or say overwrite=True")
        refuse_no_folder(path)
        contents = {path: text} | ({} if signature is None else {signature_of(path): signature})
        write_together(contents, private=[path], gone=[signature_of(path)] if overwrite else [])

    def _lines(self) -> list[str]:
        drawn = self.sampler
        if self.config is not None and self.data is not None:
            first = self.first
            head = f"run on {self.data.name or 'records that are not named'}: {self.steps} noisy steps, "
            head += f"{drawn.name} batches, sample rate {first.sample_rate:.6g}, "
            head += f"noise multiplier {first.noise_multiplier:.6g}, clip norm {first.max_grad_norm:.6g}"
            changed = ["the first stage is shown; later ones differ"] if self.changes else []
            return [head, *changed, *(f"warning: {fault.key}" for fault in self.faults)]
        head = f"watched loop: {self.steps} noisy steps, batches {drawn.drawn} ({drawn.source})"
        if self.earlier:
            head += f", after {sum(run.steps for run in self.earlier)} steps in {len(self.earlier)} earlier"
        head += "".join(f", {value}" for value in self.facts.values() if isinstance(value, BaseModel))
        return [head, *(f"{fault.severity}: {fault.key}" for fault in self.faults)]


def _vouched(run: RunLedger) -> dict[str, Status]:
    return {key: status for fact in all_facts().values() for key, status in fact.vouches(run).items()}


def digest_of(ledger: BaseModel) -> str:
    """SHA-256 over all facts of a ledger but the digest itself; 1 and 1.0 are one number."""
    document = ledger.model_dump(mode="json", by_alias=True, exclude={"digest"})
    return hashlib.sha256(canonical(portable(document))).hexdigest()


def read_ledger(path: Path) -> RunLedger:
    """The ledger in a file.

    Raises:
        ArtifactError: the file is missing, too large, not strict JSON, or no ledger.
    """
    return ledger_of(strict.load(path), str(path))


def ledger_of(document: Any, where: str) -> RunLedger:
    """The ledger that a JSON document is.

    Raises:
        ArtifactError: it is none.
    """
    return validated(RunLedger, document, where)


def held(what: object, *others: Any) -> Any:
    """The ledger, or one of other kinds, that ``what`` is or holds as its ``ledger``; None where it is none."""
    kinds: tuple[type, ...] = (RunLedger, *others)
    return next((one for one in (what, getattr(what, "ledger", None)) if isinstance(one, kinds)), None)


def watched(what: object) -> RunLedger | None:
    """The whole ledger of a watched loop that ``what`` is or holds; None where it is something else."""
    found: RunLedger | None = held(what)
    return None if found is None or found.config is not None or found.diagnostics is None else found
