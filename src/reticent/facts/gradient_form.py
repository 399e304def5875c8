"""What the form of the model says about gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reticent.facts.base import Fact, Found, Severity, section
from reticent.facts.configuration import OWN
from reticent.facts.steps import Source
from reticent.facts.weights import schema_from_records
from reticent.kernel.proofs import Status
from reticent.mechanisms.gradients import Gradients

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_ONE_LAYER, _CUSTOM = "logistic", "custom"
_OTHER_MODELS = ("mlp", "convnet", "resnet9")
_FORMS = {
    Gradients.FIXED: ("one-direction", "linear-head", "known-share"),
    Gradients.ONE_DIRECTION: ("one-direction", "linear-head", "known-share"),
    Gradients.LINEAR_HEAD: ("linear-head", "known-share"),
    Gradients.ANY: (),
}
_WITH_THE_SAME_FEATURES = {
    Gradients.FIXED: ("same-features", "fixed-length", "independent-directions"),
    Gradients.ONE_DIRECTION: ("same-features",),
    Gradients.LINEAR_HEAD: ("same-features",),
    Gradients.ANY: (),
}


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """What it ensures, where it is that of the whole chain; ``known-share`` is about the share in the record, or more.

    Statistics of other records that went into the features before a loop cannot be seen: so features that were seen to
    stay the same still rest on the word of its program.
    """
    form = run.gradients
    if form is None or any(one.gradients != form for one in run.earlier):
        return {}
    found = dict.fromkeys(_FORMS[form.kind], Status.CHECKED)
    if form.features == "same":
        found |= dict.fromkeys(_WITH_THE_SAME_FEATURES[form.kind], Status.CHECKED)
    if run.config is None and "same-features" in found:
        found["same-features"] = Status.DECLARED
    return found


def _number(value: Any) -> float | None:
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if ok else None


def _seen_form(run: RunLedger) -> Found:
    """A watch sees one linear layer without a bias where Opacus clips as a whole, and never what the loss is."""
    form = run.gradients
    if form is None:
        return
    if form.kind not in (Gradients.ANY, Gradients.LINEAR_HEAD) or form.normalised or form.known_share:
        yield "gradients.kind", "is one that no watch sees: it is linear-head without a bias, or any"
    if form.kind is Gradients.ANY:
        return
    if run.clipping.kind != "flat" or run.clipping.source is not Source.SEEN:
        yield "gradients.kind", f"is {form.kind.value}, and nobody saw gradients clipped as a whole"
    if run.num_parameters is not None and run.num_parameters % (form.dimension or 1):
        yield "gradients.dimension", f"is {form.dimension}, and {run.num_parameters} numbers are no rows of it"


def _parameters(run: RunLedger) -> Found:
    """No more coordinates were trained than there are."""
    listed = sum(math.prod(parameter.shape) for parameter in run.parameters)
    if (run.num_parameters or 0) > listed:
        yield "num_parameters", f"exceeds the {listed} coordinates listed under parameters"


def _model(run: RunLedger) -> Found:
    """The model is one that a configuration has, and one linear layer has its tensors."""
    model = run.asked.get("model")
    kind = model.get("kind", "custom") if isinstance(model, dict) else model
    if kind is not None and kind not in (_ONE_LAYER, *_OTHER_MODELS, _CUSTOM):
        yield "config.model", "is not a model of a configuration"
    if kind != _ONE_LAYER or not isinstance(model, dict) or run.data is None:
        return
    inputs, outputs = math.prod(run.data.feature_shape), run.data.classes
    shapes = [(outputs, inputs), *([(outputs,)] if model.get("bias", True) else [])]
    if [parameter.shape for parameter in run.parameters] != shapes:
        yield "parameters", f"are not those of one linear layer from {inputs} features to {outputs} labels"


def _own_form(run: RunLedger) -> Found:
    """Whether the model and the data can have gradients of the form that the run states."""
    form = run.gradients
    if form is None or run.data is None:
        return
    if not form.fits([parameter.shape for parameter in run.parameters], run.num_parameters or 0):
        yield "gradients", "must fit the parameters: one linear layer is trained, with that many columns"
    if form.kind in (Gradients.FIXED, Gradients.ONE_DIRECTION) and run.data.classes != 2:
        yield "gradients", "must fit the data: one direction needs two labels"
    if form.normalised != (run.asked.get("clipping") == "normalise"):
        yield "gradients", "must fit config.clipping: they are normalised, or not"
    if form.features == "same" and schema_from_records(run):
        yield "gradients.features", "were not the same: the schema was read off the records"
    if form.kind is Gradients.ANY:
        return
    model, data = run.asked.get("model"), section(run.asked, "data")
    kind = model.get("kind", "custom") if isinstance(model, dict) else None
    if kind not in (_ONE_LAYER, _CUSTOM):
        yield "gradients.kind", f"is {form.kind.value}, and the model is not known to be one linear layer"
    if run.asked.get("augmentation") is not None:
        yield "gradients.kind", f"is {form.kind.value}, and records had several views"
    if kind == _ONE_LAYER and isinstance(model, dict) and bool(model.get("bias", True)) != (form.known_share > 0.0):
        yield "gradients.known_share", "is that of a bias, and goes with one"
    if form.features == "same" and data.get("name") == OWN and not isinstance(data.get("table"), dict):
        yield "gradients.features", "are the same, and the records were handed over as numbers"
    if form.known_share > 0.0 and data.get("normalise_features") is None and data.get("features") is not None:
        yield "gradients.known_share", "is known, and the features have no known length"
    if form.known_share > 0.0 and not _is_a_share(run, form.known_share):
        yield "gradients.known_share", "is not what the lengths of the features leave to a bias"


def _is_a_share(run: RunLedger, share: float) -> bool:
    """A bias has at most 1 of 1 + n: n is the squared length of all features, or a 1 for each category."""
    least, length = 1.0 / share - 1.0, section(run.asked, "data").get("normalise_features")
    if length is not None:
        known = _number(length)
        return known is not None and least <= known**2 * (1.0 + 1e-4)
    columns = math.inf if run.gradients is None else run.gradients.dimension or math.inf
    return 1 <= round(least) <= columns and math.isclose(least, round(least), rel_tol=1e-4)


FORM = Fact(
    "form-of-gradients",
    Severity.NOTE,
    vouches=_vouches,
    watched=(_seen_form,),
    trained=(_parameters, _model, _own_form),
)
