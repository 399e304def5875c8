"""Gaussian noise on a vector sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from reticent.kernel import checks
from reticent.kernel.mechanisms.base import Mechanism, check_noise
from reticent.kernel.mechanisms.dpsgd import DPSGD
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import by_coins


@dataclass(frozen=True, slots=True, repr=False)
class Gaussian(Mechanism):
    """A sum released with Gaussian noise.

    Attributes:
        noise_multiplier: noise standard deviation over the largest norm of one record's
            contribution, >= 0; 0 means no noise.
        releases: number of independent noisy releases of the same data.
        dimension: number of released coordinates; only the relaxed adversary looks at it.

    Raises:
        ParameterError: a number is outside its domain, or NaN.

    Example:
        >>> import reticent as rt
        >>> rt.Gaussian(noise_multiplier=2.0, releases=4).releases
        4
    """

    noise_multiplier: float = field(metadata=described("Noise over the largest contribution of one record."))
    releases: int = field(default=1, metadata=described("Number of releases of the same data."))
    dimension: int = field(default=1, metadata=described("Released coordinates."))

    name: ClassVar[str] = "gaussian"
    sentence: ClassVar[Message | str] = Message("mechanism.gaussian")

    def __post_init__(self) -> None:
        check_noise(self.noise_multiplier)
        checks.count(releases=self.releases)
        checks.count(dimension=self.dimension)

    @property
    def sums(self) -> DPSGD:
        return DPSGD(self.noise_multiplier, 1.0, self.releases, num_parameters=self.dimension)

    @property
    def coordinates(self) -> int:
        return self.dimension

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        return by_coins(self.noise_multiplier, 1.0, self.releases, neighbouring)
