"""How a record's gradient may react to the weights: what is known of it decides which theorems hold for training."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reticent.io.models import Closed
from reticent.kernel.messages import Message


class Gradients(StrEnum):
    """How the gradient of one record may change along a run, the narrowest first.

    The first needs a condition, the others hold by form.
    """

    FIXED = "fixed"
    """One direction, and a length that does not depend on it: a fixed query, or a condition that nobody checked."""
    ONE_DIRECTION = "one-direction"
    """One direction, any length along it that reacts to anything, and never against it: a linear model with one output,
    or two under softmax, and a loss whose slope keeps its sign. A squared error or soft labels turn it: a head."""
    HARD_LABEL_HEAD = "hard-label-head"
    """The record's features times a vector, each entry of which keeps its sign: a last linear layer on frozen features,
    with cross-entropy and one label for each record."""
    LINEAR_HEAD = "linear-head"
    """The record's features times any vector: a last linear layer on frozen features, several outputs."""
    ANY = "any"
    """Anything: what is proven is the worst case."""


class Obstacle(StrEnum):
    """Why no theorem but the worst case fits a model that was looked at."""

    NETWORK = "network"
    """More than one linear layer is trained, or none."""
    SHARED_FORM = "shared-form"
    """The layer is used more than once for one record, or is given more than one vector."""
    BIAS = "bias"
    """A bias is trained, and nothing bounds the share of the gradient that lies in it."""
    VIEWS = "views"
    """A record has several views, whose features differ."""
    RANDOM_FEATURES = "random-features"
    """Dropout, or statistics of a batch, change the features from step to step."""
    CLIPPING = "clipping"
    """Gradients are not clipped as a whole, or not taken layer by layer."""

    @property
    def text(self) -> Message:
        """One sentence for people."""
        return Message(f"obstacle.{self.value}")


class GradientsRecord(Closed):
    """What is known of the gradients of a model, and what was seen.

    Attributes:
        kind: the narrowest kind that the form of the model ensures; ``any`` where it was looked at and none fits.
        known_share: most of a gradient's squared length that can lie in coordinates that everybody knows (a bias).
        dimension: columns of the features: no hidden direction has more dimensions. None with ``any``.
        normalised: each gradient that is not zero was divided by its length, in closed form.
        features: ``same`` where each record's features were seen to be one and the same vector in every step, and
            nothing was seen that computes them from other records; ``not-seen`` else.
        obstacle: why the kind is ``any``; None with the others.
    """

    kind: Gradients
    known_share: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    dimension: Annotated[int, Field(ge=1)] | None = None
    normalised: bool = False
    features: Literal["same", "not-seen"] = "not-seen"
    obstacle: Obstacle | None = None

    @model_validator(mode="after")
    def _consistent(self) -> GradientsRecord:
        none_fits = self.kind is Gradients.ANY
        if none_fits != (self.obstacle is not None):
            raise ValueError("obstacle is for kind any")
        if none_fits != (self.dimension is None) or (none_fits and self.known_share):
            raise ValueError("dimension and known_share are for kinds other than any")
        if self.kind is Gradients.FIXED and (not self.normalised or self.known_share):
            raise ValueError("kind fixed needs gradients that were normalised, and no bias")
        return self

    @property
    def ensured(self) -> tuple[Gradients, ...]:
        """All kinds that hold for this model: each allows what those before it do."""
        kinds = tuple(Gradients)
        return kinds[kinds.index(self.kind) :]

    @property
    def settled(self) -> bool:
        """Whether an attacker may be answered by this kind unasked: some theorem fits, and features stay the same."""
        return self.kind is not Gradients.ANY and self.features == "same"
