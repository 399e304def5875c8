"""What a ledger with a configuration must say: what ran is what the configuration makes, and its facts fit each other.

See ``reticent.records.rules``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from reticent.errors import ParameterError
from reticent.mechanisms.gradients import Gradients
from reticent.records.hidden_steps import hidden_as_asked
from reticent.records.parts import Randomness, Segment
from reticent.records.plan import OF_A_STAGE, planned_segments, sampler_of, told
from reticent.records.publication import HANDLED, OWN, SETTINGS, size_is_secret
from reticent.records.rules import Found, Rule, digest_is_that_of_the_facts, section
from reticent.records.run_warnings import RunWarning
from reticent.records.selected_run import selected_as_drawn
from reticent.samplers.base import seen_as

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_EXACT = 1e-9
"""Relative difference of two ways to compute one number."""

_ONE_LAYER, _CUSTOM = "logistic", "custom"
_OTHER_MODELS = ("mlp", "convnet", "resnet9")
_ALWAYS_ASKED = ("max_grad_norm", "sampler", "randomness", "optimiser")
_ONE_OF = (("noise_multiplier", "target"), ("sample_rate", "batch_size"), ("steps", "epochs"))
PARTS_OF_DATA = {
    *("name", "table", "path", "features", "normalise_features"),
    *("train_fraction", "train_size", "split_seed"),
}
"""What a configuration can say about the records."""


def demanded_warnings(ledger: RunLedger) -> tuple[RunWarning, ...]:
    """The warnings that follow from the facts of a ledger with a configuration."""
    kind = seen_as(ledger.sampler.drawn)
    cases = (
        (any(part.noise_multiplier == 0.0 for part in ledger.segments), RunWarning.NO_NOISE),
        (ledger.environment.randomness is Randomness.REPRODUCIBLE, RunWarning.REPRODUCIBLE_NOISE),
        *((kind is not None and warning == kind.warning, warning) for warning in RunWarning),
        (not size_is_secret(ledger.asked), RunWarning.SIZE_TREATED_AS_PUBLIC),
        (ledger.steps < (ledger.planned_steps or 0), RunWarning.STOPPED_EARLY),
        (_schema_from_records(ledger.asked), RunWarning.SCHEMA_FROM_RECORDS),
    )
    return tuple(warning for applies, warning in cases if applies)


def _schema_from_records(config: dict[str, Any]) -> bool:
    return bool(section(section(config, "data"), "table").get("derived"))


def _number(value: Any) -> float | None:
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if ok else None


def _settings_are_known(ledger: RunLedger) -> Found:
    for name in sorted(set(ledger.asked) - SETTINGS - HANDLED):
        yield "config", f"has {name[:40]!r}, which no configuration has"
    if not set(section(ledger.asked, "data")) <= PARTS_OF_DATA:
        yield "config.data", "has something that no configuration has"


def _settings_are_stated(ledger: RunLedger) -> Found:
    asked = ledger.asked
    for pair in _ONE_OF:
        if sum(asked.get(name) is not None for name in pair) != 1:
            yield f"config.{pair[0]}", f"must be stated, or {pair[1]}: one of them, as every configuration has it"
    for name in _ALWAYS_ASKED:
        if asked.get(name) is None:
            yield f"config.{name}", "must be stated, as every configuration has it"


def _asked_is_done(ledger: RunLedger) -> Found:
    """Whether the settings that this configuration makes are those that ran, as far as the run came."""
    config, ran = ledger.asked, ledger.every_segment
    done = {
        "randomness": ledger.environment.randomness,
        "optimiser": " around ".join(ledger.environment.optimiser),
        "records_per_user": ledger.records_per_user,
    }
    for name, was in done.items():
        if config.get(name) != was:
            yield f"config.{name}", f"is not what ran: {name} is {was}"
    try:
        planned = planned_segments(config, ledger.dataset_size, ran[0].noise_multiplier)
        sampler = sampler_of(config, planned[0].sample_rate or 1.0)
    except ParameterError as error:
        yield f"config.{error.name}", f"must be {error.allowed}"
        return
    if ledger.planned_steps != sum(part.steps for part in planned):
        yield "planned.steps", f"is {ledger.planned_steps}, and the configuration plans {_steps(planned)}"
    elif ledger.steps > _steps(planned):
        yield "segments", f"hold {ledger.steps} steps, more than the {_steps(planned)} planned"
    else:
        wanted = told(_joined(_begun(planned, ledger.steps)), sampler, config.get("clipping", "flat"))
        for name, value in wanted.items():
            if not _alike(getattr(ledger, name), value):
                yield name, "is not what the configuration makes"


def _steps(parts: Iterable[Segment]) -> int:
    return sum(part.steps for part in parts)


def _begun(planned: Iterable[Segment], steps: int) -> list[Segment]:
    """The first so many steps."""
    found: list[Segment] = []
    for part in planned:
        left = steps - _steps(found)
        if left > 0:
            found.append(part.model_copy(update={"steps": min(part.steps, left)}))
    return found


def _joined(parts: Iterable[Segment]) -> list[Segment]:
    """Neighbours that are equal but for their steps as one."""
    found: list[Segment] = []
    for part in parts:
        if found and all(_alike(getattr(found[-1], name), getattr(part, name)) for name in OF_A_STAGE):
            part = part.model_copy(update={"steps": found.pop().steps + part.steps})
        found.append(part)
    return found


def _alike(a: Any, b: Any) -> bool:
    """Whether two facts are the same, but for the rounding of numbers."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_EXACT)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, BaseModel) and type(a) is type(b):
        return all(_alike(getattr(a, name), getattr(b, name)) for name in type(a).model_fields)
    return bool(a == b)


def _passes_are_equal(ledger: RunLedger) -> Found:
    kind = seen_as(ledger.sampler.drawn)
    stages = {(part.noise_multiplier, part.sample_rate) for part in ledger.segments}
    if len(stages) > 1 and kind is not None and kind.in_passes:
        yield "segments", "have other noise or another rate, and each record is in one step of a pass"


def _train_size(ledger: RunLedger) -> Found:
    kept, records = section(ledger.asked, "data").get("train_size"), ledger.dataset_size
    if kept is not None and records is not None and kept != records:
        yield "data.dataset_size", f"is not the {kept} records that were kept"


def _parameters(ledger: RunLedger) -> Found:
    listed = sum(math.prod(parameter.shape) for parameter in ledger.parameters)
    if (ledger.num_parameters or 0) > listed:
        yield "num_parameters", f"exceeds the {listed} coordinates listed under parameters"


def _model(ledger: RunLedger) -> Found:
    """Whether the model is one that a configuration can name, and one linear layer where it says so."""
    model = ledger.asked.get("model")
    kind = model.get("kind", "custom") if isinstance(model, dict) else model
    if kind is not None and kind not in (_ONE_LAYER, *_OTHER_MODELS, _CUSTOM):
        yield "config.model", "is not a model of a configuration"
    if kind != _ONE_LAYER or not isinstance(model, dict) or ledger.data is None:
        return
    inputs, outputs = math.prod(ledger.data.feature_shape), ledger.data.classes
    shapes = [(outputs, inputs), *([(outputs,)] if model.get("bias", True) else [])]
    if [parameter.shape for parameter in ledger.parameters] != shapes:
        yield "parameters", f"are not those of one linear layer from {inputs} features to {outputs} labels"


def _gradients(ledger: RunLedger) -> Found:
    """Whether the model and the data can have gradients of the form that the ledger states."""
    form = ledger.gradients
    if form is None or ledger.data is None:
        return
    if not form.fits([parameter.shape for parameter in ledger.parameters], ledger.num_parameters or 0):
        yield "gradients", "must fit the parameters: one linear layer is trained, with that many columns"
    if form.kind in (Gradients.FIXED, Gradients.ONE_DIRECTION) and ledger.data.classes != 2:
        yield "gradients", "must fit the data: one direction needs two labels"
    if form.normalised != (ledger.asked.get("clipping") == "normalise"):
        yield "gradients", "must fit config.clipping: they are normalised, or not"
    if form.features == "same" and _schema_from_records(ledger.asked):
        yield "gradients.features", "were not the same: the schema was read off the records"
    if form.kind is Gradients.ANY:
        return
    model, data = ledger.asked.get("model"), section(ledger.asked, "data")
    kind = model.get("kind", "custom") if isinstance(model, dict) else None
    if kind not in (_ONE_LAYER, _CUSTOM):
        yield "gradients.kind", f"is {form.kind.value}, and the model is not known to be one linear layer"
    if ledger.asked.get("augmentation") is not None:
        yield "gradients.kind", f"is {form.kind.value}, and records had several views"
    if kind == _ONE_LAYER and isinstance(model, dict) and bool(model.get("bias", True)) != (form.known_share > 0.0):
        yield "gradients.known_share", "is that of a bias, and goes with one"
    if form.features == "same" and data.get("name") == OWN and not isinstance(data.get("table"), dict):
        yield "gradients.features", "are the same, and the records were handed over as numbers"
    if form.known_share > 0.0 and data.get("normalise_features") is None and data.get("features") is not None:
        yield "gradients.known_share", "is known, and the features have no known length"
    if form.known_share > 0.0 and not _is_a_share(ledger, form.known_share):
        yield "gradients.known_share", "is not what the lengths of the features leave to a bias"


def _is_a_share(ledger: RunLedger, share: float) -> bool:
    """A bias has at most 1 of 1 + n: n is the squared length of all features, or a 1 for each category."""
    least, length = 1.0 / share - 1.0, section(ledger.asked, "data").get("normalise_features")
    if length is not None:
        known = _number(length)
        return known is not None and least <= known**2 * (1.0 + 1e-4)
    columns = math.inf if ledger.gradients is None else ledger.gradients.dimension or math.inf
    return 1 <= round(least) <= columns and math.isclose(least, round(least), rel_tol=1e-4)


def _seeds(ledger: RunLedger) -> Found:
    seeds, complete = ledger.environment.seeds, ledger.diagnostics is not None
    kept = ledger.environment.randomness is Randomness.REPRODUCIBLE
    for name in ("sampling", "noise"):
        if (getattr(seeds, name) is not None) != (kept and complete):
            yield f"environment.seeds.{name}", "is missing" if kept and complete else "has no place here"
    missing = seeds is None or seeds.initialisation is None
    if missing != (kept and not complete):
        yield "environment.seeds.initialisation", "is missing" if missing else "has no place here"
    asked = ledger.asked.get("seed")
    for name in ("initialisation", "sampling", "noise"):
        used = getattr(seeds, name)
        if None not in (asked, used) and str(used) != str(asked):
            yield f"environment.seeds.{name}", "is not the seed of the configuration"


def _batches_were_drawn_so(ledger: RunLedger) -> Found:
    """Whether the batches that were counted can have been drawn as the ledger says."""
    kind = seen_as(ledger.sampler.drawn)
    if ledger.diagnostics is None or kind is None:
        return
    sizes, records = [size or 0 for size in ledger.diagnostics.batch_sizes], ledger.dataset_size or 0
    if max(sizes) > records:
        yield "diagnostics.batch_sizes", f"has more than the {records} records"
    parts = [(part.steps, part.sample_rate or 1.0) for part in ledger.every_segment]
    parts = [(len(sizes), parts[0][1])] if kind.in_passes else parts  # an epoch may end in another stage
    start = 0
    for steps, rate in parts:
        problem = kind().impossible(sizes[start : start + steps], records, rate)
        start += steps
        if problem is not None:
            yield "diagnostics.batch_sizes", problem


OWN_RULES: tuple[Rule, ...] = (
    Rule(("digest",), "All facts are as they were when the run ended.", digest_is_that_of_the_facts),
    Rule(("config",), "Every setting is one that a configuration has.", _settings_are_known),
    Rule(("config",), "It is stated: noise or target, rate or batch, steps or epochs.", _settings_are_stated),
    Rule(
        ("config", "segments", "sampler", "clipping", "divisor", "planned", "environment", "records_per_user", "data"),
        "The settings that the configuration makes are those that ran.",
        _asked_is_done,
    ),
    Rule(
        ("segments", "sampler"),
        "Where records are drawn in passes, noise and rate stay as they are.",
        _passes_are_equal,
    ),
    Rule(("data.dataset_size", "config.data.train_size"), "As many records were kept as asked.", _train_size),
    Rule(("num_parameters", "parameters"), "No more coordinates were trained than there are.", _parameters),
    Rule(
        ("config.model", "parameters", "data.feature_shape", "data.classes"),
        "The model is one that a configuration has, and one linear layer has its tensors.",
        _model,
    ),
    Rule(
        ("gradients", "config.model", "config.augmentation", "config.data", "config.clipping", "parameters"),
        "The gradients have a form that this model can have.",
        _gradients,
    ),
    Rule(
        ("config.final_model", "data.classes", "config.learning_rate", "config.weight_decay", "diagnostics.clipped"),
        "Where the steps are to be hidden, the updates contract and nothing of the steps is kept.",
        hidden_as_asked,
    ),
    Rule(
        ("selection", "environment.randomness", "segments"),
        "Where this run is the best of several, it had a setting of their list, and fresh noise.",
        selected_as_drawn,
    ),
    Rule(
        ("environment.seeds", "environment.randomness", "config.seed"),
        "Seeds are those of the configuration, or secret.",
        _seeds,
    ),
    Rule(
        ("diagnostics.batch_sizes", "segments", "data.dataset_size", "sampler"),
        "The batches can have been drawn as the ledger says.",
        _batches_were_drawn_so,
    ),
)
"""Every constraint between facts of a run with a configuration."""
