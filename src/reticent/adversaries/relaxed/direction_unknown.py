"""Attackers who may not know the direction of a record's gradient: what all of them have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from reticent.adversaries.relaxed.reacting_gradients import FORMS
from reticent.kernel.adversaries.base import Adversary, Hidden
from reticent.kernel.errors import ParameterError
from reticent.kernel.registry import described
from reticent.kernel.text import listed
from reticent.mechanisms.gradients import Gradients, GradientsRecord

DIMENSION = described("Dimensions in which the direction of the record is unknown to the attacker.")
GRADIENTS = described(f"How a record's gradient reacts to the weights: {listed(tuple(Gradients), 'or')}.")
KNOWN_SHARE = described("Largest share of a gradient's squared length that everybody knows, such as a bias.")
"""What people read about the fields."""
_SHORT: dict[str, str] = {
    Gradients.ONE_DIRECTION: "line",
    Gradients.HARD_LABEL_HEAD: "hard head",
    Gradients.LINEAR_HEAD: "head",
    "dimension": "d",
    "known_share": "share",
    "relaxed_probability": "p",
}
_ROUNDED = 1e-5
"""By how much a stated share may lie below that of the run, which was rounded up; then that of the run counts."""


class DirectionUnknown(Adversary):
    """Base of a frozen dataclass with the fields ``dimension``, ``gradients`` and ``known_share`` of ``Relaxed``.

    Attributes:
        directions: a law of directions instead; None where there is none.
        relaxed_probability: that the direction is unknown.
    """

    __slots__ = ()

    dimension: int | None
    gradients: Gradients | None
    known_share: float
    directions: Any = None
    relaxed_probability: float = 1.0
    keeps_mu: ClassVar[bool] = True

    @property
    def hidden(self) -> Hidden | None:
        fixed = self.gradients in (None, Gradients.FIXED) and self.directions is None
        return Hidden(self.dimension, self.relaxed_probability) if fixed else None

    @staticmethod
    def _brief(parameter: str, value: Any) -> str:
        said = _SHORT.get(value, value) if isinstance(value, str) else value
        return Adversary._brief(_SHORT.get(parameter, parameter), said)

    def fitted(self, form: GradientsRecord) -> Self:
        if form.dimension is not None and self.dimension is not None and self.dimension > form.dimension:
            wanted = f"at most {form.dimension}, the features of the model that was run"
            raise ParameterError("dimension", self.dimension, wanted)
        if self.gradients is None:
            share = 0.0 if form.kind is Gradients.FIXED else form.known_share
            return replace(self, gradients=form.kind, known_share=share) if form.settled else self  # type: ignore[type-var]
        if self.gradients in FORMS and self.gradients not in form.ensured:
            why = "" if form.obstacle is None else f": {form.obstacle.text}"
            raise ParameterError("gradients", self.gradients.value, f"one that the model of the run has{why}")
        if self.gradients not in FORMS or self.known_share >= form.known_share:
            return self
        if self.known_share < form.known_share - _ROUNDED:
            raise ParameterError("known_share", self.known_share, f"at least {form.known_share:.6g}, as the run has it")
        return replace(self, known_share=form.known_share)  # type: ignore[type-var]
