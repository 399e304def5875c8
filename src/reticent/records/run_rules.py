"""What the facts of a run of ``reticent train`` must say about each other; see ``reticent.records.rules``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from reticent.errors import ParameterError
from reticent.io.models import first_problem
from reticent.mechanisms.gradients import Gradients
from reticent.records.hidden_steps import hidden_as_asked
from reticent.records.publication import HANDLED, OWN, SETTINGS, size_is_secret
from reticent.records.rules import Found, Rule, digest_is_that_of_the_facts, section
from reticent.records.run_parts import MOST_STAGES, OF_A_STAGE, StageConfig, StageRecord, stages_asked
from reticent.records.run_warnings import Randomness, RunWarning
from reticent.records.selected_run import selected_as_drawn
from reticent.samplers import Sampler
from reticent.samplers.epochs import batches_of_a_pass

if TYPE_CHECKING:
    from reticent.records.run_ledger import PublicLedger

_EXACT = 1e-9
"""Relative difference of two ways to compute one number."""

_SAME = (*OF_A_STAGE, "sampler", "randomness", "optimiser", "records_per_user")
_ASKED_AND_DONE = dict(zip(_SAME, _SAME, strict=True)) | {"steps": "planned_steps"}
_ONE_LAYER, _CUSTOM = "logistic", "custom"
_OTHER_MODELS = ("mlp", "convnet", "resnet9")
_ALWAYS_ASKED = ("max_grad_norm", "sampler", "randomness", "optimiser")
_ONE_OF = (("noise_multiplier", "target"), ("sample_rate", "batch_size"), ("steps", "epochs"))
PARTS_OF_DATA = {
    *("name", "table", "path", "features", "normalise_features"),
    *("train_fraction", "train_size", "split_seed"),
}
"""What a configuration can say about the records."""


def demanded_warnings(ledger: PublicLedger) -> tuple[RunWarning, ...]:
    """The warnings that follow from the facts of the ledger, whether it lists them or not."""
    cases = (
        (not ledger.noisy, RunWarning.NO_NOISE),
        (ledger.randomness is Randomness.REPRODUCIBLE, RunWarning.REPRODUCIBLE_NOISE),
        *((warning == ledger.sampler.warning, warning) for warning in RunWarning),
        (not size_is_secret(ledger.config), RunWarning.SIZE_TREATED_AS_PUBLIC),
        (ledger.steps < ledger.planned_steps, RunWarning.STOPPED_EARLY),
        (_schema_from_records(ledger), RunWarning.SCHEMA_FROM_RECORDS),
    )
    return tuple(warning for applies, warning in cases if applies)


def _schema_from_records(ledger: PublicLedger) -> bool:
    return bool(section(section(ledger.config, "data"), "table").get("derived"))


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_EXACT)


def _number(value: Any) -> float | None:
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if ok else None


def _settings_are_known(ledger: PublicLedger) -> Found:
    for name in sorted(set(ledger.config) - SETTINGS - HANDLED):
        yield "config", f"has {name[:40]!r}, which no configuration has"
    if not set(section(ledger.config, "data")) <= PARTS_OF_DATA:
        yield "config.data", "has something that no configuration has"


def _settings_are_stated(ledger: PublicLedger) -> Found:
    asked = ledger.config
    for pair in _ONE_OF:
        if sum(asked.get(name) is not None for name in pair) != 1:
            yield f"config.{pair[0]}", f"must be stated, or {pair[1]}: one of them, as every configuration has it"
    for name in _ALWAYS_ASKED:
        if asked.get(name) is None:
            yield f"config.{name}", "must be stated, as every configuration has it"


def _asked_is_done(ledger: PublicLedger) -> Found:
    for asked, done in _ASKED_AND_DONE.items():
        wanted, was = ledger.config.get(asked), getattr(ledger, done)
        was = was.name if isinstance(was, Sampler) else was
        if wanted is not None and wanted != was:
            yield f"config.{asked}", f"is not what ran: {done} is {was}"
    if ledger.records_per_user is not None and ledger.config.get("records_per_user") is None:
        yield "records_per_user", "is not what the configuration states, which says nothing about it"


def _expected_batch(ledger: PublicLedger) -> Found:
    records, expected = ledger.data.dataset_size, ledger.expected_batch_size
    if records is not None and expected is not None and not _near(expected, ledger.sample_rate * records):
        yield "expected_batch_size", f"is not sample_rate times dataset_size, which is {ledger.sample_rate * records:g}"


def _size_is_there(ledger: PublicLedger) -> Found:
    if not size_is_secret(ledger.config) and None in (ledger.data.dataset_size, ledger.expected_batch_size):
        yield "data.dataset_size", "is missing: the training used the number of records"


def _batch_over_records(ledger: PublicLedger) -> Found:
    batch, records = ledger.config.get("batch_size"), ledger.data.dataset_size
    if batch is None or records is None:
        return
    size = _number(batch)
    if size is None or not _near(ledger.sample_rate, size / records):
        yield "sample_rate", f"is not batch_size over dataset_size, {batch} of {records}"


def _divisor(ledger: PublicLedger) -> Found:
    expected = ledger.expected_batch_size
    if ledger.config.get("divisor") is None and expected is not None and not _near(ledger.divisor, expected):
        yield "divisor", f"is not the expected batch size, {expected:g}, and no other was asked for"


def _steps_of_epochs(ledger: PublicLedger) -> Found:
    epochs = ledger.config.get("epochs")
    if epochs is None:
        return
    passes, rate = _number(epochs), ledger.sample_rate
    if passes is None or passes <= 0.0:
        yield "config.epochs", "is not a number of epochs"
        return
    try:
        planned = ledger.sampler.in_batches(batches_of_a_pass(rate)).steps_in(passes, rate)  # the last batch is kept
    except ParameterError as error:
        yield "config.epochs", f"must be {error.allowed}"
        return
    if ledger.planned_steps != planned:
        yield "planned_steps", f"is {ledger.planned_steps}, and {epochs} epochs have {planned}"


def _no_more_than_planned(ledger: PublicLedger) -> Found:
    if ledger.steps > ledger.planned_steps:
        yield "steps", f"exceeds the {ledger.planned_steps} planned"


def _train_size(ledger: PublicLedger) -> Found:
    kept, records = section(ledger.config, "data").get("train_size"), ledger.data.dataset_size
    if kept is not None and records is not None and kept != records:
        yield "data.dataset_size", f"is not the {kept} records that were kept"


def _parameters(ledger: PublicLedger) -> Found:
    listed = sum(math.prod(parameter.shape) for parameter in ledger.parameters)
    if ledger.num_parameters > listed:
        yield "num_parameters", f"exceeds the {listed} coordinates listed under parameters"


def _model(ledger: PublicLedger) -> Found:
    """Whether the model is one that a configuration can name, and one linear layer where it says so."""
    model = ledger.config.get("model")
    kind = model.get("kind", "custom") if isinstance(model, dict) else model
    if kind is not None and kind not in (_ONE_LAYER, *_OTHER_MODELS, _CUSTOM):
        yield "config.model", "is not a model of a configuration"
    if kind != _ONE_LAYER or not isinstance(model, dict):
        return
    inputs, outputs = math.prod(ledger.data.feature_shape), ledger.data.classes
    shapes = [(outputs, inputs), *([(outputs,)] if model.get("bias", True) else [])]
    if [parameter.shape for parameter in ledger.parameters] != shapes:
        yield "parameters", f"are not those of one linear layer from {inputs} features to {outputs} labels"


def _gradients(ledger: PublicLedger) -> Found:
    """Whether the model and the data can have gradients of the form that the ledger states."""
    form = ledger.gradients
    if form is None:
        return
    if form.features == "same" and _schema_from_records(ledger):
        yield "gradients.features", "were not the same: the schema was read off the records"
    if form.kind is Gradients.ANY:
        return
    model, data = ledger.config.get("model"), section(ledger.config, "data")
    kind = model.get("kind", "custom") if isinstance(model, dict) else None
    if kind not in (_ONE_LAYER, _CUSTOM):
        yield "gradients.kind", f"is {form.kind.value}, and the model is not known to be one linear layer"
    if ledger.config.get("augmentation") is not None:
        yield "gradients.kind", f"is {form.kind.value}, and records had several views"
    if kind == _ONE_LAYER and isinstance(model, dict) and bool(model.get("bias", True)) != (form.known_share > 0.0):
        yield "gradients.known_share", "is that of a bias, and goes with one"
    if form.features == "same" and data.get("name") == OWN and not isinstance(data.get("table"), dict):
        yield "gradients.features", "are the same, and the records were handed over as numbers"
    if form.known_share > 0.0 and data.get("normalise_features") is None and data.get("features") is not None:
        yield "gradients.known_share", "is known, and the features have no known length"
    if form.known_share > 0.0 and not _is_a_share(ledger, form.known_share):
        yield "gradients.known_share", "is not what the lengths of the features leave to a bias"


def _is_a_share(ledger: PublicLedger, share: float) -> bool:
    """A bias has at most 1 of 1 + n: n is the squared length of all features, or a 1 for each category."""
    least, length = 1.0 / share - 1.0, section(ledger.config, "data").get("normalise_features")
    if length is not None:
        known = _number(length)
        return known is not None and least <= known**2 * (1.0 + 1e-4)
    columns = math.inf if ledger.gradients is None else ledger.gradients.dimension or math.inf
    return 1 <= round(least) <= columns and math.isclose(least, round(least), rel_tol=1e-4)


def _warnings(ledger: PublicLedger) -> Found:
    for warning in demanded_warnings(ledger):
        if warning not in ledger.warnings:
            yield "warnings", f"lacks {warning.value}, which the facts of the run demand"
    if len(set(ledger.warnings)) < len(ledger.warnings):
        yield "warnings", "repeats a warning"


_SCHEDULE = TypeAdapter(Annotated[tuple[StageConfig, ...], Field(max_length=MOST_STAGES)])


def _asked(ledger: PublicLedger) -> tuple[StageConfig, ...]:
    """The schedule of the configuration; a text in it is not a number, as it is none to the mechanism."""
    return _SCHEDULE.validate_json(json.dumps(ledger.config.get("schedule") or ()), strict=True)


def _schedule(ledger: PublicLedger) -> Found:
    """Whether the stages that ran are those that the configuration asks for."""
    try:
        asked = _asked(ledger)
    except ValidationError as error:
        yield "config.schedule", f"is no schedule: {first_problem(error)}"
        return
    if any(later.at <= first.at for first, later in pairwise(asked)):
        yield "config.schedule", "is no schedule: at must grow from stage to stage"
        return
    if any(stage.at >= ledger.planned_steps for stage in asked):
        yield "config.schedule", f"is no schedule: at must be below the {ledger.planned_steps} planned steps"
        return
    ran, planned = _joined(ledger.every_stage), _joined(_planned(ledger, asked))
    if len(ran) != len(planned):
        yield "config.schedule", f"is not what ran: different parts: {len(planned)} asked for, {len(ran)} ran"
        return
    for index, (done, wanted) in enumerate(zip(ran, planned, strict=True)):
        for name in ("steps", *OF_A_STAGE):
            was, asks = getattr(done, name), getattr(wanted, name)
            if not _near(was, asks):
                yield "config.schedule", f"is not what ran: {name} of part {index + 1} is {was:g}, it asks for {asks:g}"
                return


def planned_stages(ledger: PublicLedger) -> tuple[StageRecord, ...]:
    """The stages of all planned steps, whether they ran or not.

    Raises:
        ValueError: the configuration has no schedule that can be read.
    """
    whole = ledger.model_copy(update={"steps": ledger.planned_steps})
    return tuple(_joined(_planned(whole, _asked(ledger))))


def _planned(ledger: PublicLedger, asked: tuple[StageConfig, ...]) -> Iterator[StageRecord]:
    """The stages of a schedule, as far as the run came."""
    now, start = ledger.every_stage[0], 0
    ran = [stage for stage in asked if stage.at < ledger.steps]
    for stage, then in stages_asked(now, ran, ledger.data.dataset_size, ledger.config.get("divisor")):
        yield now.model_copy(update={"steps": stage.at - start})
        now, start = then, stage.at
    yield now.model_copy(update={"steps": ledger.steps - start})


def _joined(stages: Iterable[StageRecord]) -> list[StageRecord]:
    """Neighbours that are equal but for their steps as one."""
    found: list[StageRecord] = []
    for stage in stages:
        if found and all(_near(getattr(found[-1], n), getattr(stage, n)) for n in OF_A_STAGE):
            stage = stage.model_copy(update={"steps": found.pop().steps + stage.steps})
        found.append(stage)
    return found


def _seeds(ledger: PublicLedger) -> Found:
    seeds, kept, complete = ledger.seeds, ledger.randomness is Randomness.REPRODUCIBLE, hasattr(ledger, "diagnostics")
    for name in ("sampling", "noise"):
        if (getattr(seeds, name) is not None) != (kept and complete):
            yield f"seeds.{name}", "is missing" if kept and complete else "has no place here"
    if (seeds.initialisation is None) != (kept and not complete):
        yield "seeds.initialisation", "is missing" if seeds.initialisation is None else "has no place here"
    asked = ledger.config.get("seed")
    for name in ("initialisation", "sampling", "noise"):
        used = getattr(seeds, name)
        if None not in (asked, used) and str(used) != str(asked):
            yield f"seeds.{name}", "is not the seed of the configuration"


def _batches_were_drawn_so(ledger: PublicLedger) -> Found:
    """Whether the batches that were counted can have been drawn as the ledger says."""
    if not hasattr(ledger, "diagnostics"):
        return
    sizes, records = ledger.diagnostics.batch_sizes, ledger.data.dataset_size or 0
    if max(sizes) > records:
        yield "diagnostics.batch_sizes", f"has more than the {records} records"
    whole = [(len(sizes), ledger.sample_rate)]  # an epoch may end in another stage
    start = 0
    for steps, rate in (
        whole if ledger.sampler.in_passes else [(one.steps, one.sample_rate) for one in ledger.every_stage]
    ):
        problem = ledger.sampler.impossible(sizes[start : start + steps], records, rate)
        start += steps
        if problem is not None:
            yield "diagnostics.batch_sizes", problem


RUN_RULES: tuple[Rule, ...] = (
    Rule(("digest",), "All facts are as they were when the run ended.", digest_is_that_of_the_facts),
    Rule(("config",), "Every setting is one that a configuration has.", _settings_are_known),
    Rule(("config",), "It is stated: noise or target, rate or batch, steps or epochs.", _settings_are_stated),
    Rule(("config", *_ASKED_AND_DONE.values()), "What was asked for is what ran.", _asked_is_done),
    Rule(("data.dataset_size", "config"), "The number of records is there where the training used it.", _size_is_there),
    Rule(
        ("expected_batch_size", "sample_rate", "data.dataset_size"),
        "The expected batch is the sample rate times the number of records.",
        _expected_batch,
    ),
    Rule(
        ("sample_rate", "config.batch_size", "data.dataset_size"),
        "The sample rate is the batch over the number of records.",
        _batch_over_records,
    ),
    Rule(
        ("divisor", "config.divisor", "expected_batch_size"),
        "The sum is divided by the constant that was asked for, or by the expected batch.",
        _divisor,
    ),
    Rule(
        ("planned_steps", "config.epochs", "sample_rate"),
        "The planned steps are those of the epochs.",
        _steps_of_epochs,
    ),
    Rule(("steps", "planned_steps"), "No more steps ran than were planned.", _no_more_than_planned),
    Rule(("data.dataset_size", "config.data.train_size"), "As many records were kept as asked.", _train_size),
    Rule(("num_parameters", "parameters"), "No more coordinates were trained than there are.", _parameters),
    Rule(
        ("config.model", "parameters", "data.feature_shape", "data.classes"),
        "The model is one that a configuration has, and one linear layer has its tensors.",
        _model,
    ),
    Rule(
        ("gradients", "config.model", "config.augmentation", "config.data"),
        "The gradients have a form that this model can have.",
        _gradients,
    ),
    Rule(
        ("config.final_model", "data.classes", "config.learning_rate", "config.weight_decay", "diagnostics.clipped"),
        "Where the steps are to be hidden, the updates contract and nothing of the steps is kept.",
        hidden_as_asked,
    ),
    Rule(
        ("selection", "randomness", "steps", "noise_multiplier", "sample_rate"),
        "Where this run is the best of several, it had a setting of their list, and fresh noise.",
        selected_as_drawn,
    ),
    Rule(("stages", "config.schedule"), "The stages that ran are those of the schedule.", _schedule),
    Rule(("warnings",), "Every warning that the facts demand is there.", _warnings),
    Rule(("seeds", "randomness", "config.seed"), "Seeds are those of the configuration, or secret.", _seeds),
    Rule(
        ("diagnostics.batch_sizes", "sample_rate", "data.dataset_size", "sampler"),
        "The batches can have been drawn as the ledger says.",
        _batches_were_drawn_so,
    ),
)
"""Every constraint between facts of a run."""
