"""A release of which nothing is known but an epsilon at a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Message
from reticent.kernel.registry import described
from reticent.mechanisms.stated import REACH, Stated


@dataclass(frozen=True, slots=True, repr=False)
class Guarantee(Stated):
    """A release with a stated epsilon and delta.

    Attributes:
        stated_epsilon: of one release, from 0 to 600.
        stated_delta: of one release, in [0, 1); 0 is pure differential privacy.
        releases: number of releases, each with this guarantee, whatever was released before.

    Raises:
        ParameterError: a number is outside its domain, or NaN.

    Example:
        >>> import reticent as rt
        >>> round(rt.WorstCase().assess(rt.Guarantee(1.0)).measure(rt.advantage).value, 4)
        0.4621
    """

    stated_epsilon: float = field(metadata=described("The epsilon that somebody proved for one release."))
    stated_delta: float = field(default=0.0, metadata=described("The delta that goes with it; 0 where it is pure."))
    releases: int = field(default=1, metadata=described("Number of releases with this guarantee."))

    name: ClassVar[str] = "guarantee"
    title: ClassVar[str] = "A stated epsilon"
    sentence: ClassVar[Message | str] = Message("mechanism.guarantee")
    _theorems: ClassVar[tuple[str, ...]] = ("DONG2022:Proposition 2.5",)

    def __post_init__(self) -> None:
        if checks.non_negative(stated_epsilon=self.stated_epsilon) > REACH:
            raise ParameterError("stated_epsilon", self.stated_epsilon, f"at most {REACH:g}")
        if checks.fraction(stated_delta=self.stated_delta) == 1.0:
            raise ParameterError("stated_delta", self.stated_delta, "below 1")
        checks.count(releases=self.releases)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        delta = self.stated_delta
        return np.array([self.stated_epsilon]), np.array([math.log(delta) if delta > 0.0 else -math.inf])
