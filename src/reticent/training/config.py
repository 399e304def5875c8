"""What to train, as a strict configuration: unknown keys and wrong values end in one line."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from reticent.calibration.targets import STATED
from reticent.facts.hidden_steps import why_not
from reticent.facts.plan import MOST_STAGES, StageConfig
from reticent.facts.steps import MOST_STEPS, Randomness
from reticent.io import yaml
from reticent.io.models import Closed, Count, Inside, NonNegative, Positive, Rate, Seed, validated
from reticent.kernel.adversaries.base import ADVERSARIES, standard_adversaries
from reticent.kernel.errors import ArtifactError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import INDEPENDENT
from reticent.kernel.samplers.base import runnable
from reticent.kernel.text import one_of
from reticent.mechanisms.sensitivity import Scope
from reticent.samplers.named import Named
from reticent.training.config_data import DataConfig
from reticent.training.config_models import ModelConfig


class Optimiser(StrEnum):
    """How noisy gradients move the weights; post-processing, so it does not touch the guarantee."""

    SGD = "sgd"
    ADAM = "adam"


class Clipping(StrEnum):
    """How the gradient of a record is brought to ``max_grad_norm``."""

    FLAT = "flat"
    """Shorter ones stay as they are."""
    NORMALISE = "normalise"
    """Each one that is not zero gets this length, in closed form; for one linear layer."""


class Decay(StrEnum):
    """How the learning rate falls after its warm-up."""

    CONSTANT = "constant"
    LINEAR = "linear"
    COSINE = "cosine"


class TraceConfig(Closed):
    """What to record for attacks on the run.

    Attributes:
        every: record every N-th step, from step 0.
        masks: record which records each step used: needed by some audits, never to be published.
    """

    every: Count = 1
    masks: bool = False


class AugmentationConfig(Closed):
    """Random views of images whose mean gradient is clipped as one; the guarantee is the same.

    Attributes:
        times: views of each record in each step.
        flips: mirror each view with probability 1/2.
        crop: move each view by up to this many pixels, up or down and sideways; the border is reflected.
    """

    times: Annotated[int, Field(ge=1, le=1024)]
    flips: bool = False
    crop: Annotated[int, Field(ge=0, le=64)] = 0


class SensitiveConfig(Closed):
    """One attribute whose effect on the clipped gradients is recorded along the run; the record is private.

    Attributes:
        group: the attribute, as ``Dataset.group`` finds it.
        scope: whose gradients are compared: the sampled records (a diagnostic), an audit set, or all.
        records: for ``audit-set``: this many training records, the first ones.
        budget: stop before the recorded mask term exceeds this; fixed before training, it makes the
            result a guarantee.
        every: measure one step in this many; the others count with the most that clipping allows.
    """

    group: str
    scope: Scope = Scope.SAMPLED_BATCH
    records: Count | None = None
    budget: Positive | None = None
    every: Count = 1

    @model_validator(mode="after")
    def _audit_set_has_a_size(self) -> SensitiveConfig:
        if (self.scope is Scope.AUDIT_SET) != (self.records is not None):
            raise ValueError("records is for scope audit-set")
        if self.budget is not None and self.scope is Scope.SAMPLED_BATCH:
            raise ValueError("budget is for scope audit-set or whole-data")
        return self


class SpreadConfig(Closed):
    """Limits on the gradients of public records: the run ends before a step that would break them.

    They are what the attacker ``population`` needs, who does not know which record it is
    (docs/theory/relaxed/networks.md).

    Attributes:
        mean_gradient: most of the length of the mean gradient, in clip norms: root mean square over the planned steps.
        second_moment: most of the mean of <g, e>^2 along any direction, at every step.
        pool: this many test records, the first ones; they count as public.
        each_label: the limits are about the candidates of each label by themselves: the attacker may know the label.
    """

    mean_gradient: Rate
    second_moment: Rate
    pool: Annotated[int, Field(ge=2, le=4096)] = 256
    each_label: bool = False


class LearningRateConfig(Closed):
    """How the learning rate changes along the run; post-processing, so it does not touch the guarantee.

    Attributes:
        decay: how it falls after the warm-up.
        warmup: share of the steps over which it rises linearly to its full value.
        final: share of the full value that is left at the last step.
    """

    decay: Decay = Decay.COSINE
    warmup: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    final: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


def _attacker(name: str) -> str:
    """An attacker who needs no measurement and is no formula that is kept for reproduction; or the final model's."""
    known = [who.name for who in standard_adversaries(contraction=1.0)]
    if name not in known:
        raise ValueError(f"must be {one_of(name, known)}")
    return name


class TargetConfig(Closed):
    """What an attacker, by default the worst case, may gain; the least noise that keeps to it is computed first.

    Exactly one of ``advantage``, ``bayes_security``, ``mu``, ``success`` with ``prior``, ``tpr`` with ``fpr``,
    ``ppv`` with ``prior`` and ``fpr``, ``epsilon`` with ``delta``, ``recovered`` with ``baseline``, ``secret``
    with ``secret_bits`` and ``guesses``.

    Attributes:
        neighbouring: between which data sets.
        adversary: who attacks; only the worst case bounds every attacker. ``final-model`` goes with ``final_model``,
            which says by which factor updates contract.
    """

    advantage: Inside | None = None
    bayes_security: Inside | None = None
    mu: Positive | None = None
    success: Inside | None = None
    prior: Inside | None = None
    tpr: Inside | None = None
    fpr: Inside | None = None
    ppv: Inside | None = None
    epsilon: Positive | None = None
    delta: Inside | None = None
    recovered: Inside | None = None
    baseline: Inside | None = None
    secret: Inside | None = None
    secret_bits: Positive | None = None
    guesses: Count | None = None
    neighbouring: Neighbouring = Neighbouring.ADD_REMOVE
    adversary: Annotated[str, AfterValidator(_attacker)] = "worst-case"

    @model_validator(mode="after")
    def _one_target(self) -> TargetConfig:
        given = {name for name in self.model_fields_set if getattr(self, name) is not None}
        given -= {"neighbouring", "adversary"}
        targets = given & set(STATED)
        if len(targets) != 1:
            raise ValueError(f"exactly one of {', '.join(STATED)} must be given")
        (name,) = targets
        _, partners = STATED[name]
        if given != {name, *partners}:
            raise ValueError(
                f"{name} is stated with {' and '.join(partners)}" if partners else f"{name} takes no other field"
            )
        return self


class TrainConfig(Closed):
    """One DP-SGD run.

    Attributes:
        noise_multiplier, target: exactly one; noise standard deviation over ``max_grad_norm``, on the sum,
            or the risk that it must keep to.
        max_grad_norm: clip norm (L2) of each record's gradient.
        clipping: ``flat``, or ``normalise``: every gradient that is not zero gets the clip norm, whatever its length.
        sample_rate, batch_size: exactly one; ``batch_size`` is the *expected* size under Poisson.
        epochs, steps: exactly one; an epoch is ``1 / sample_rate`` steps, rounded up for the whole run.
        divisor: what the noisy sum is divided by; default the expected batch size, which treats the
            number of records as public.
        records_per_user: the most records of one person in the data, as you state it; all of them are then protected
            together. They are counted where the schema of a table of your own names a ``person``, and nowhere else.
        seed: of the initial weights and, with ``randomness: reproducible``, of masks and noise.
        randomness: ``fresh`` (operating system, kept nowhere) or ``reproducible`` (from the seed, and
            then no guarantee against who knows the seed).
        learning_rate_schedule: how the learning rate changes; by default it does not.
        average_last: release the mean of the weights over this share of the last steps, instead of the last
            weights; post-processing too.
        physical_batch_size: most records in one pass; memory only, the result does not depend on it
            beyond rounding.
        spread: limits on the gradients of public records; see ``SpreadConfig``.
        schedule: what changes along the run, fixed before it; see ``StageConfig``.
        augmentation: views of each image; see ``AugmentationConfig``.
        weight_decay: is added to the noisy mean gradient, times the weights: outside of the clip.
        final_model: only the last weights will be seen. The run then keeps nothing of its steps and checks that its
            updates contract (docs/theory/final-model.md); its certificate has the attacker who sees nothing else.
    """

    data: DataConfig
    model: ModelConfig
    noise_multiplier: NonNegative | None = None
    target: TargetConfig | None = None
    max_grad_norm: Positive = 1.0
    clipping: Clipping = Clipping.FLAT
    sample_rate: Rate | None = None
    batch_size: Count | None = None
    epochs: Positive | None = None
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    learning_rate: Annotated[float, Field(gt=0.0, le=1e30)]
    learning_rate_schedule: LearningRateConfig | None = None
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    weight_decay: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    average_last: Rate | None = None
    optimiser: Optimiser = Optimiser.SGD
    sampler: Named = INDEPENDENT
    divisor: Positive | None = None
    records_per_user: Count | None = None
    seed: Seed = 0
    randomness: Randomness = Randomness.FRESH
    device: Annotated[str, Field(pattern=r"^(cpu|cuda(:\d+)?)$")] = "cpu"
    physical_batch_size: Count = 1024
    trace: TraceConfig | None = None
    sensitive: SensitiveConfig | None = None
    spread: SpreadConfig | None = None
    schedule: Annotated[tuple[StageConfig, ...], Field(max_length=MOST_STAGES - 1)] = ()
    augmentation: AugmentationConfig | None = None
    final_model: bool = False

    @field_validator("model", mode="before")
    @classmethod
    def _named_model(cls, model: object) -> object:
        return {"kind": "custom", "name": model} if isinstance(model, str) else model

    @model_validator(mode="after")
    def _one_of_each(self) -> TrainConfig:
        pairs = (("noise_multiplier", "target"), ("sample_rate", "batch_size"), ("epochs", "steps"))
        for first, second in pairs:
            if (getattr(self, first) is None) == (getattr(self, second) is None):
                raise ValueError(f"exactly one of {first} and {second} must be given")
        if self.sampler.name not in runnable():
            raise ValueError(f"sampler must be {one_of(self.sampler.name, runnable())}")
        if not self.sampler.independent and self.batch_size is None:
            raise ValueError(f"sampler {self.sampler.name} needs batch_size")
        if self.optimiser is Optimiser.ADAM and self.momentum:
            raise ValueError("momentum is for optimiser sgd")
        return self

    @model_validator(mode="after")
    def _steps_can_be_hidden(self) -> TrainConfig:
        problem = why_not(self.model_dump(mode="json")) if self.final_model else None
        if problem is not None:
            raise ValueError(f"{problem[0]} {problem[1]}")
        who = None if self.target is None else ADVERSARIES[self.target.adversary]
        if who is not None and who.needs and not self.final_model:
            raise ValueError(f"target.adversary {who.name} goes with final_model, which checks what it needs")
        if self.final_model and self.records_per_user not in (None, 1):
            raise ValueError("records_per_user must be 1 or left out with final_model")
        return self

    @model_validator(mode="after")
    def _normalised_gradients_are_linear(self) -> TrainConfig:
        if self.clipping is Clipping.NORMALISE:
            if self.model.kind not in ("logistic", "custom"):
                raise ValueError("clipping: normalise is for one linear layer: model logistic")
            if self.augmentation is not None or self.sensitive is not None:
                raise ValueError("clipping: normalise cannot be combined with augmentation or sensitive")
        return self

    @model_validator(mode="after")
    def _spread_is_of_equal_steps(self) -> TrainConfig:
        views, normalised = self.augmentation is not None, self.clipping is Clipping.NORMALISE
        if self.spread is not None and (views or normalised or self.schedule or self.final_model):
            raise ValueError("spread goes with no augmentation, clipping: normalise, schedule or final_model")
        if self.spread is not None and not (self.sampler.independent and (self.records_per_user or 1) == 1):
            raise ValueError(
                "spread goes with batches by independent coins (sampler: poisson) and one record of a person"
            )
        return self

    @model_validator(mode="after")
    def _schedule_fits(self) -> TrainConfig:
        """A schedule that is proven: fixed before training, and no stage inside a pass over shuffled data."""
        stages = self.schedule
        if any(later.at <= first.at for first, later in pairwise(stages)):
            raise ValueError("schedule: at must grow from stage to stage")
        other = "batch_size" if self.sample_rate is not None else "sample_rate"
        if any(getattr(stage, other) is not None for stage in stages):
            raise ValueError(
                f"schedule: {other} cannot be mixed with the other way of saying how many records are drawn"
            )
        if any(stage.changes_batches for stage in stages) and self.steps is None:
            raise ValueError("schedule: steps must be given, not epochs, where the batches change")
        if self.target is not None and any(stage.noise_multiplier is not None for stage in stages):
            raise ValueError("schedule: with a target give noise_factor, not noise_multiplier")
        if self.sampler.in_passes and any(stage.changes_batches or stage.changes_noise for stage in stages):
            raise ValueError(f"schedule: with sampler {self.sampler.name} only max_grad_norm may change")
        if self.sensitive is not None and stages:
            raise ValueError("schedule: sensitive is recorded for equal steps only")
        if self.sensitive is not None and self.augmentation is not None:
            raise ValueError("augmentation: sensitive is recorded without it only")
        return self


def parse_config(document: Any, where: str = "configuration") -> TrainConfig:
    """Validate a configuration.

    Raises:
        ArtifactError: one line that names the key, the value and what is allowed.
    """
    if not isinstance(document, dict):
        raise ArtifactError(f"{where}: must be a mapping of keys to values")
    return validated(TrainConfig, document, where)


def load_config(path: Path) -> TrainConfig:
    """Read a YAML configuration.

    Raises:
        ArtifactError: the file is missing, too large, not YAML, or not a valid configuration.
    """
    return parse_config(yaml.load_file(path), str(path))
