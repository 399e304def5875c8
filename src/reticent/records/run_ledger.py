"""The ledger: what really ran, as frozen data that needs no torch.

A ledger is written by the training loop from what it executed, never from what was asked for. It has
two halves. Everything outside ``diagnostics`` is public once the model is: settings, versions, counts.
``diagnostics`` is computed from the training records without noise (batch sizes, clipping, accuracy on
the training records), so no guarantee covers it; do not publish it with the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from reticent.errors import UnsupportedError
from reticent.io.models import Count, NonNegative, Positive, Rate
from reticent.io.times import Date
from reticent.mechanisms.base import Mechanism
from reticent.mechanisms.dpsgd import DPSGD
from reticent.mechanisms.gradients import Gradients, GradientsRecord
from reticent.mechanisms.ledger import together
from reticent.pairs import Neighbouring
from reticent.proofs import Status
from reticent.records import vouched
from reticent.records.hidden_steps import contraction_of, unequal_settings
from reticent.records.publication import published
from reticent.records.rules import Digest, Versions, Word, section
from reticent.records.run_parts import (
    MOST_STAGES,
    OF_A_STAGE,
    DataRecord,
    Diagnostics,
    ParameterRecord,
    PublicData,
    Seeds,
    StageRecord,
    Utility,
)
from reticent.records.run_rules import RUN_RULES, planned_stages
from reticent.records.run_warnings import Randomness, RunWarning
from reticent.records.sealed import Sealed, facts_of
from reticent.records.selected_run import SelectionRecord
from reticent.samplers.epochs import batches_of_a_pass
from reticent.samplers.named import Named

LEDGER_SCHEMA: Literal["reticent.ledger/1"] = "reticent.ledger/1"


class PublicLedger(Sealed):
    """What one DP-SGD run did, without what no guarantee covers.

    Where noise, rate or clip norm changed along the run, ``noise_multiplier``, ``max_grad_norm``, ``sample_rate``,
    ``expected_batch_size`` and ``divisor`` are those of the first step, and ``stages`` has all.

    Attributes:
        schema_: of the file; ``schema`` there.
        created: when, in UTC.
        config: what was asked for, as the configuration file states it.
        data: which records were used.
        sampler: how batches were drawn.
        noise_multiplier: noise standard deviation over ``max_grad_norm``, on the sum.
        max_grad_norm: clip norm (L2) of each record's gradient over all parameters.
        sample_rate: inclusion probability per step; under other samplers batch over data size.
        expected_batch_size: ``sample_rate`` times the number of training records.
        divisor: what the noisy sum was divided by; a constant, never the realised batch size.
        steps: noisy updates executed, empty batches included.
        planned_steps: what the configuration asked for.
        records_per_user: the most records of one person, as the configuration states it; None where it states nothing.
        num_parameters: trained coordinates.
        parameters: trained tensors, in the order of flat vectors.
        optimiser, device: that were used.
        digest: SHA-256 of all other facts when the run ended; see ``sealed``.
        randomness: where noise and draws came from.
        seeds: that were used.
        utility: quality on the test records.
        versions: of libraries, by name.
        warnings: what no guarantee covers.
        stages: equal steps in order, where not all are equal; left out of the file where they are.
        gradients: what the form of the model says about gradients; None, and left out of the file, where nobody looked.
        selection: of which runs this one is the best; None, and left out of the file, where it is the only one.
    """

    schema_: Literal["reticent.ledger/1"] = Field(default=LEDGER_SCHEMA, alias="schema")
    created: Date
    config: dict[str, Any]
    data: PublicData
    sampler: Named
    noise_multiplier: NonNegative
    max_grad_norm: Positive
    sample_rate: Rate
    expected_batch_size: Positive | None
    divisor: Positive
    steps: Count
    planned_steps: Count
    records_per_user: Count | None = None
    num_parameters: Count
    parameters: tuple[ParameterRecord, ...]
    optimiser: Word
    device: Word
    randomness: Randomness
    seeds: Seeds
    utility: Utility
    versions: Versions
    warnings: tuple[RunWarning, ...]
    stages: Annotated[tuple[StageRecord, ...], Field(max_length=MOST_STAGES)] = ()
    gradients: GradientsRecord | None = None
    selection: SelectionRecord | None = None
    digest: Digest = ""

    rules = RUN_RULES
    left_out = ("gradients", "selection", "stages")

    @model_validator(mode="after")
    def _gradients_fit(self) -> PublicLedger:
        if self.gradients is None:
            return self
        if not self.gradients.fits([parameter.shape for parameter in self.parameters], self.num_parameters):
            raise ValueError("gradients must fit the parameters: one linear layer is trained, with that many columns")
        if self.gradients.kind in (Gradients.FIXED, Gradients.ONE_DIRECTION) and self.data.classes != 2:
            raise ValueError("gradients must fit the data: one direction needs two labels")
        if self.gradients.normalised != (self.config.get("clipping") == "normalise"):
            raise ValueError("gradients must fit config.clipping: they are normalised, or not")
        return self

    @model_validator(mode="after")
    def _stages_fit(self) -> PublicLedger:
        if not self.stages:
            return self
        if len(self.stages) == 1 or sum(stage.steps for stage in self.stages) != self.steps:
            raise ValueError("stages must be two or more and have all steps together")
        if any(getattr(self.stages[0], name) != getattr(self, name) for name in OF_A_STAGE):
            raise ValueError("the first of the stages must have the noise, norm, rate and divisor of the ledger")
        changed = {(stage.noise_multiplier, stage.sample_rate) for stage in self.stages}
        if self.sampler.in_passes and len(changed) > 1:
            raise ValueError("noise and rate may not change where each record is in one step of an epoch")
        return self

    def _lines(self) -> list[str]:
        drawn = f"{self.sampler.name} batches, sample rate {self.sample_rate:.6g}"
        noise = f"noise multiplier {self.noise_multiplier:.6g}, clip norm {self.max_grad_norm:.6g}"
        changed = ["the first stage is shown; later ones differ"] if self.stages else []
        head = f"run on {self.data.name or 'records that are not named'}: {self.steps} noisy steps, {drawn}, {noise}"
        return [head, *changed, *(f"warning: {warning.value}" for warning in self.warnings)]

    def vouches(self) -> dict[str, Status]:
        """The conditions, by key, that this ledger establishes; see ``reticent.proofs``."""
        return vouched.of_run(self)

    @property
    def contraction(self) -> float | None:
        """By which factor the updates contract, where this ledger establishes it; see ``hidden_steps``."""
        return contraction_of(self)

    @property
    def unequal_updates(self) -> str | None:
        """What keeps the updates of this run from being equal; see ``hidden_steps``."""
        return unequal_settings(self.config)

    @property
    def looks_to_stop(self) -> bool:
        """Whether a budget of private gradients (``sensitive.budget``) could end the run before its plan."""
        asked = self.config.get("sensitive")
        return isinstance(asked, dict) and asked.get("budget") is not None

    def rearranges(self, neighbouring: Neighbouring) -> bool:
        """In passes by place over a table of one's own: places follow hashes, so one that is replaced moves others.

        Else never beyond what the conditions of the sampler say: the loop draws by itself and looks at no record.
        """
        by_place = self.sampler.public_places and self.sample_rate < 1.0
        of_table = section(self.config, "data").get("table") is not None
        return neighbouring is Neighbouring.REPLACE and of_table and by_place

    def published(self, **changes: Any) -> PublicLedger:
        """The facts that a public ledger has, with ``changes``, sealed anew; what it leaves out, others decide."""
        return facts_of(PublicLedger, self, changes)

    @property
    def noisy(self) -> bool:
        """Whether every step had noise."""
        return all(stage.noise_multiplier > 0.0 for stage in self.every_stage)

    @property
    def every_stage(self) -> tuple[StageRecord, ...]:
        """Equal steps in order: ``stages``, or one stage where all steps are equal."""
        first = {name: getattr(self, name) for name in OF_A_STAGE}
        return self.stages or (StageRecord(steps=self.steps, **first),)

    def mechanism(self) -> Mechanism:
        """The mechanism to account for: what this run released, or the selection of which it is the best."""
        return self.one_run() if self.selection is None else self.selection.release()

    def one_run(self) -> Mechanism:
        """This run alone: the real sampler, and the steps that ran; of a run that stopped, all planned.

        When to stop may depend on what was released, and the run that stopped follows from the one that did not. So
        the planned steps are counted: those that did not run at the least noise and the largest rate of the plan. A
        stop that looks at the records is not covered (``planned-steps``). Where steps differ it is a ledger of parts.
        """
        planned = replace(self._equal_steps(), steps=max(self.steps, self.planned_steps))
        stopped = self.steps < self.planned_steps
        if not self.stages and not (stopped and self.config.get("schedule")):
            return planned
        if self.sampler.in_passes:  # only the clip norm changed: passes over the data count whole
            return replace(planned, max_grad_norm=min(stage.max_grad_norm for stage in self.every_stage))
        parts: dict[tuple[float, float, float], int] = {}
        for stage in self.every_stage:
            key = stage.noise_multiplier, stage.sample_rate, stage.max_grad_norm
            parts[key] = parts.get(key, 0) + stage.steps
        if stopped:
            parts[self._most_revealing()] = parts.get(self._most_revealing(), 0) + self.planned_steps - self.steps
        found = tuple(self._part(*key, steps) for key, steps in parts.items())
        return together(found)

    def _most_revealing(self) -> tuple[float, float, float]:
        """Least noise, largest rate and smallest clip norm of what ran and of what was planned.

        A plan that nobody can read hides nothing.
        """
        try:
            stages = (*self.every_stage, *planned_stages(self))
        except ValueError:
            return 0.0, 1.0, self.max_grad_norm
        noises = [stage.noise_multiplier for stage in stages]
        rates = [stage.sample_rate for stage in stages]
        norms = [stage.max_grad_norm for stage in stages]
        return min(noises), max(rates), min(norms)

    def equal_steps(self) -> DPSGD:
        """What ran, where all steps are equal: fewer than planned where the run stopped.

        Raises:
            UnsupportedError: noise, rate or clip norm changed along the run.
        """
        if self.stages:
            raise UnsupportedError(
                "noise, sample rate or clip norm changed along this run: only equal steps are answered"
            )
        return self._equal_steps()

    def _part(self, noise: float, rate: float, norm: float, steps: int) -> DPSGD:
        records = self.data.dataset_size
        size = None if records is None else max(1, round(rate * records))
        part = replace(self._equal_steps(), noise_multiplier=noise, sample_rate=rate, steps=steps)
        return replace(part, max_grad_norm=norm, batch_size=size)

    def _equal_steps(self) -> DPSGD:
        expected = self.expected_batch_size
        return DPSGD(
            noise_multiplier=self.noise_multiplier,
            sample_rate=self.sample_rate,
            steps=self.steps,
            max_grad_norm=self.max_grad_norm,
            num_parameters=self.num_parameters,
            batch_size=None if expected is None else max(1, round(expected)),
            dataset_size=self.data.dataset_size,
            sampler=self.sampler.in_batches(batches_of_a_pass(self.sample_rate)),
            records_per_user=self.records_per_user,
        )


class RunLedger(PublicLedger):
    """The whole ledger of a run: what ``PublicLedger`` holds, and diagnostics of the training records."""

    data: DataRecord  # type: ignore[assignment]  # what the public one is made from
    expected_batch_size: Positive
    diagnostics: Diagnostics

    @model_validator(mode="after")
    def _consistent(self) -> RunLedger:
        if len(self.diagnostics.batch_sizes) != self.steps:
            raise ValueError("diagnostics.batch_sizes must have one entry per step")
        return self

    def public(self) -> dict[str, Any]:
        """The ledger as JSON data as anybody may see it; see ``reticent.records.publication``."""
        return published(self).model_dump(mode="json", by_alias=True)
