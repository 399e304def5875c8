"""Whether a run of ``reticent train`` shows its last weights only, and by which factor its updates contract.

One linear layer with two outputs under softmax: a record's gradient is a slope, which grows with the score, times fixed
features. Clipping cuts the slope, so what is summed is still the gradient of a convex and smooth loss; weight decay
outside of the clip makes it strongly convex. docs/theory/final-model.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reticent.facts.checkpoints import POST_PROCESSED, PUT_BACK, kept
from reticent.facts.steps import Drawn
from reticent.kernel.samplers import SAMPLERS
from reticent.kernel.text import listed

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_PLAIN = {"optimiser": "sgd", "momentum": 0.0, "clipping": "flat"}
_LEFT_OUT = ("learning_rate_schedule", "average_last", "trace", "sensitive", "schedule", "augmentation", "divisor")
_UNEQUAL = ("learning_rate_schedule", "average_last", "schedule")
_NETWORKS = (
    "must be logistic with final_model: some losses of networks gain nothing from hidden steps (Annamalai 2024; Cebere "
    "and others 2024)"
)
TOO_LONG = "at most 2 / smoothness with final_model: lower it"
"""What a learning rate must be."""
_STEEPEST = 0.25  # the slope of the logistic function
_ROUNDING = 3e-6  # of squared lengths in single precision


def why_not(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first setting that keeps a run from being one whose steps are hidden, and why; None where none does."""
    model, data = config.get("model"), config.get("data")
    if not isinstance(model, dict) or model.get("kind") != "logistic":
        return "model", _NETWORKS
    for name, value in _PLAIN.items():
        if config.get(name, value) != value:
            return name, f"must be {value} with final_model: the map from weights to weights has to contract"
    for name in _LEFT_OUT:
        if config.get(name):
            return name, "must be left out with final_model"
    if not isinstance(data, dict) or data.get("normalise_features") is None:
        return "data.normalise_features", "must be given with final_model: it bounds the curvature of the loss"
    in_order = [name for name, kind in SAMPLERS.items() if kind.in_order]
    if config.get("sampler") not in in_order and config.get("sample_rate") != 1.0:
        known = listed(in_order, "or")
        return "sampler", f"must be {known} with final_model, or sample_rate 1: nothing is known for drawn batches"
    return None


def unequal_settings(config: Mapping[str, Any]) -> str | None:
    """The setting that makes the updates of a run differ, or more than steps of the weights; None where none does."""
    other = [name for name in ("optimiser", "momentum") if config.get(name, _PLAIN[name]) != _PLAIN[name]]
    return next(iter([*other, *(name for name in _UNEQUAL if config.get(name))]), None)


def unequal_steps(run: RunLedger) -> str | None:
    """What was seen of a watched loop, or of those that it continues, that makes its updates differ; None else."""
    loops = run.loops
    if kept(run):
        return "weights of earlier steps were kept, and the ledger names them"
    if any({PUT_BACK.key, POST_PROCESSED.key} & one.facts.keys() for one in loops):
        return "weights were put back, or changed after steps"
    if any(one.environment.optimiser[-1:] not in ((), ("SGD",)) for one in loops):
        return "the optimizer is not SGD"
    if len({norm for one in loops for norm in (one.clipping.smallest, one.clipping.largest)}) > 1:
        return "the clip norm changed"
    mixed = any(part.mixed_passes > 1 for one in loops for part in one.segments)
    if mixed or any((one.sampler.times_per_epoch or 1) > 1 for one in loops):
        return "a record may be in one step more than once"
    return "a pass was broken off" if any(map(_broken_off, loops)) else None


def _broken_off(run: RunLedger) -> bool:
    """Whether batches came in a fixed order, and not all passes over them were whole."""
    length = run.sampler.batches_per_epoch or 1
    several = [part for part in run.segments if part.batches == 1 and (part.passes or 1) > 1]
    return run.sampler.drawn is Drawn.IN_ORDER and any(part.steps < (part.passes or 1) * length for part in several)


def contraction_of(ledger: RunLedger) -> float | None:
    """The factor by which each update without its noise brings any two weight vectors closer together, at most 1.

    None where the facts do not establish one: the run did not ask for it, or steps are too long.
    """
    config, data = ledger.asked, ledger.data
    if config.get("final_model") is not True or why_not(config) is not None or data is None or data.classes != 2:
        return None
    if ledger.changes or data.dataset_size is None or ledger.records_per_user not in (None, 1):
        return None
    decay, rate = float(config.get("weight_decay") or 0.0), float(config["learning_rate"])
    return contraction(config, rate, decay, (ledger.first.sample_rate or 1.0) * data.dataset_size)


def contraction(config: Mapping[str, Any], step_size: float, decay: float, batch: float) -> float | None:
    """The factor of a run that ``why_not`` has nothing against; None where its steps are longer than 2 / smoothness.

    Args:
        config: of the run, for the features and the bias.
        step_size: learning rate on the mean gradient.
        decay: weight decay outside of the clip.
        batch: by what the sum is divided; one record more than that may be in it.
    """
    squared = float(config["data"]["normalise_features"]) ** 2 * (1.0 + _ROUNDING)
    squared += 1.0 if config["model"].get("bias", True) else 0.0
    smoothness = 2.0 * _STEEPEST * squared * (1.0 + 1.0 / batch)  # two outputs: both rows of weights move
    factor = max(abs(1.0 - step_size * decay), abs(1.0 - step_size * (decay + smoothness)))
    return max(factor, math.ulp(0.0)) if factor <= 1.0 else None
