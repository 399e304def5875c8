"""A release of which nothing is known but several epsilons, each with its delta."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import ge, lt
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.messages import Message
from reticent.kernel.registry import described
from reticent.mechanisms.stated import REACH, Listed, Stated, check_lists, numbers


@dataclass(frozen=True, slots=True, repr=False)
class PrivacyProfile(Stated):
    """A release with several stated epsilons and deltas.

    Attributes:
        stated_epsilons: from 0 to 600 and increasing; numbers, or a text with commas.
        stated_deltas: of one release at each epsilon, in [0, 1), none larger than the one before.
        releases: number of releases, each with this profile, whatever was released before.

    Raises:
        ParameterError: a list is no list of such numbers, is out of order, or is not as long as the other.

    Example:
        >>> import reticent as rt
        >>> round(rt.epsilon_at_delta(rt.PrivacyProfile([0.5, 1.0], [1e-3, 1e-6]), 1e-5), 4)
        0.9964
    """

    stated_epsilons: str | Iterable[float] = field(
        metadata=described("The epsilons that somebody proved for one release, such as 0.1,0.4.", start="0.1,0.4")
    )
    stated_deltas: str | Iterable[float] = field(
        metadata=described("The delta that somebody proved for one release at each epsilon.", start="0.01,0.001")
    )
    releases: int = field(default=1, metadata=described("Number of releases with this profile."))

    name: ClassVar[str] = "privacy-profile"
    title: ClassVar[str] = "A stated curve"
    sentence: ClassVar[Message | str] = Message("mechanism.privacy-profile")
    _theorems: ClassVar[tuple[str, ...]] = ("DONG2022:Proposition 2.5",)

    def __post_init__(self) -> None:
        grow = "that do not grow, as no delta grows with its epsilon"
        check_lists(
            self,
            stated_epsilons=Listed(lambda one: 0.0 <= one <= REACH, lt, f"numbers from 0 to {REACH:g} that increase"),
            stated_deltas=Listed(lambda one: 0.0 <= one < 1.0, ge, f"numbers in [0, 1) {grow}"),
        )
        checks.count(releases=self.releases)

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore"):
            return np.array(numbers(self.stated_epsilons)), np.log(numbers(self.stated_deltas))
