"""A release of which nothing is known but an epsilon at a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from reticent.kernel import checks, pairs
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import described

_LARGEST = 600.0  # beyond, e^-epsilon underflows, and no answer means anything


@dataclass(frozen=True, slots=True, repr=False)
class Guarantee(Mechanism):
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

    def __post_init__(self) -> None:
        if checks.non_negative(stated_epsilon=self.stated_epsilon) > _LARGEST:
            raise ParameterError("stated_epsilon", self.stated_epsilon, f"at most {_LARGEST:g}")
        if checks.fraction(stated_delta=self.stated_delta) == 1.0:
            raise ParameterError("stated_delta", self.stated_delta, "below 1")
        checks.count(releases=self.releases)

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """One part for all releases; none that is attained, as nobody says what was released.

        Args:
            neighbouring: between which data sets: those that the guarantee was stated for.
        """
        if attained or self.stated_epsilon == self.stated_delta == 0.0:
            return ()
        keys = ("DONG2022:Proposition 2.5",)
        return (Part(_pair(self.stated_epsilon, self.stated_delta), self.releases, keys),)

    def _stated(self) -> tuple[str, ...]:
        return ("stated-guarantee",)


@lru_cache(maxsize=64)  # equal releases are counted together
def _pair(epsilon: float, delta: float) -> pairs.CurvePair:
    """The curve max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)), which no release is worse than.

    In logarithms, as 1 - delta would round a small delta away.
    """
    from reticent.kernel.curves import LogErrors, SymmetricPolygon

    shown, hidden = math.log(delta) if delta > 0.0 else -math.inf, math.log1p(-delta)
    corner = hidden - float(np.logaddexp(0.0, epsilon))
    fpr, tnr = np.array([-math.inf, corner, hidden]), np.array([0.0, math.log1p(-math.exp(corner)), shown])
    rates = LogErrors(fpr=fpr, tnr=tnr, fnr=fpr[::-1], tpr=tnr[::-1])  # exchanging both answers exchanges the laws
    if delta > 0.0:
        always = LogErrors(*(np.array([rate]) for rate in (0.0, -math.inf, -math.inf, 0.0)))
        rates = LogErrors.joined(rates, always)
    slopes = np.array([epsilon, -epsilon, -math.inf])[: len(rates.fpr) - 1]
    largest = epsilon if delta == 0.0 else math.inf
    return pairs.CurvePair(SymmetricPolygon(rates, slopes), (largest, largest))
