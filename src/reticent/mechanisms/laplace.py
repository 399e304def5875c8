"""Laplace noise on a scalar sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from reticent import pairs
from reticent.kernel import checks
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms.base import Mechanism, check_noise, check_rate
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Disclosure, Neighbouring, Part
from reticent.kernel.registry import described


@dataclass(frozen=True, slots=True, repr=False)
class Laplace(Mechanism):
    """A scalar sum released with Laplace noise.

    Attributes:
        noise_multiplier: Laplace scale over the largest absolute contribution of one record, >= 0.
        releases: number of independent noisy releases of the same data.
        sample_rate: probability that one record takes part in one release (Poisson sampling), in (0, 1].

    Raises:
        ParameterError: a number is outside its domain, or NaN.

    Example:
        >>> import reticent as rt
        >>> round(rt.WorstCase().assess(rt.Laplace(2.0)).measure(rt.advantage).value, 4)
        0.2212
    """

    noise_multiplier: float = field(metadata=described("Noise over the largest contribution of one record."))
    releases: int = field(default=1, metadata=described("Number of releases of the same data."))
    sample_rate: float = field(default=1.0, metadata=described("Poisson inclusion probability."))

    name: ClassVar[str] = "laplace"
    sentence: ClassVar[Message | str] = Message("mechanism.laplace")

    def __post_init__(self) -> None:
        check_noise(self.noise_multiplier)
        checks.count(releases=self.releases)
        check_rate(self.sample_rate)

    @property
    def coordinates(self) -> int:
        return 1

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """One part for all releases.

        Args:
            attained: any; what dominates is attained as well.

        Raises:
            UnsupportedError: sampled releases under replacement, for which no dominating pair is proven.
        """
        sampled = self.sample_rate < 1.0
        if sampled and neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError(Message("refused.sampled-laplace"))
        keys = ("DONG2022:Lemma A.6", *(("ZHU2022:Theorem 11",) if sampled else ()))
        if self.noise_multiplier == 0.0:
            return (Part(Disclosure(self.sample_rate), self.releases, keys),)
        pair = pairs.LaplacePair(self.noise_multiplier, self.sample_rate, neighbouring.sensitivity)
        return (Part(pair, self.releases, keys),)
