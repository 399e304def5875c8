"""Pairs of laws that dominate one release, as data: H0, the target is absent, against H1, it is present.

``reticent.composition`` knows how to compute with each; whatever has a trade-off curve of its own is a
``CurvePair``. Lengths are in units of the largest contribution of one record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.tradeoff import TradeOff


class Pair:
    """Two laws of one release.

    Attributes:
        sample_rate: probability that the target takes part in the release, in (0, 1].
        largest_losses: the largest log likelihood ratio and the largest of its negative; infinite where there is
            none.
        unsampled_mu: mu of an attacker who is told whether the target took part; None unless the noise is Gaussian.
    """

    __slots__ = ()

    sample_rate: float

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Of "present" against "absent", and of "absent" against "present"; in nats."""
        return math.inf, math.inf

    @property
    def unsampled_mu(self) -> float | None:
        """The mean shift over the noise, in standard deviations; None where the noise is not Gaussian."""
        return None


@dataclass(frozen=True, slots=True)
class GaussianPair(Pair):
    """N(0, noise^2) against the same, moved by ``shift`` with probability ``sample_rate``.

    Attributes:
        noise_multiplier: standard deviation of the noise, > 0.
        sample_rate: probability that the target takes part, in (0, 1].
        shift: distance of the two means when it takes part, >= 0.
    """

    noise_multiplier: float
    sample_rate: float
    shift: float

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Unbounded upwards; downwards a release cannot show more than that it was not sampled."""
        return math.inf, _absent(self.sample_rate)

    @property
    def unsampled_mu(self) -> float:
        """``shift / noise_multiplier``."""
        return self.shift / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class AntipodalGaussianPair(Pair):
    """Mixtures of N(0, noise^2) with N(-1, noise^2) and with N(+1, noise^2): replacement under Poisson sampling.

    Attributes:
        noise_multiplier: standard deviation of the noise, > 0.
        sample_rate: probability that the target takes part, in (0, 1].
    """

    noise_multiplier: float
    sample_rate: float

    @property
    def unsampled_mu(self) -> float:
        """``2 / noise_multiplier``: from -1 to +1."""
        return 2.0 / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class SymmetrisedGaussianPair(Pair):
    """A sampled Gaussian pair, worst of both directions: sampling without replacement, sizes agree.

    Attributes:
        noise_multiplier: standard deviation of the noise, > 0.
        sample_rate: probability that the target takes part, in (0, 1].
        shift: distance of the two means when it takes part, >= 0.
    """

    noise_multiplier: float
    sample_rate: float
    shift: float

    @property
    def unsampled_mu(self) -> float:
        """``shift / noise_multiplier``."""
        return self.shift / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class WholeUserGaussianPair(Pair):
    """N(0, noise^2) against N(k, noise^2) with k ~ Binomial(records, rate): all records of one person.

    Attributes:
        noise_multiplier: standard deviation of the noise over the clip norm, > 0.
        rate: probability of one record, in (0, 1).
        records: of one person, at least 2.
        antipodal: mixtures with means -k and +k, for replacement of all records.
        sample_rate: probability that any of the records takes part.
    """

    noise_multiplier: float
    rate: float
    records: int
    antipodal: bool
    sample_rate: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample_rate", any_of(self.records, self.rate))

    @property
    def largest_losses(self) -> tuple[float, float]:
        if self.antipodal:
            return math.inf, math.inf
        return math.inf, -self.records * math.log1p(-self.rate)

    @property
    def unsampled_mu(self) -> float:
        return (2.0 if self.antipodal else 1.0) * self.records / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class LaplacePair(Pair):
    """Laplace noise of scale ``noise_multiplier``, moved by ``shift`` with probability ``sample_rate``.

    Attributes:
        noise_multiplier: scale of the noise, > 0 (its standard deviation is sqrt(2) times that).
        sample_rate: probability that the target takes part, in (0, 1].
        shift: distance of the two means when it takes part, >= 0.
    """

    noise_multiplier: float
    sample_rate: float
    shift: float

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Both finite: Laplace noise moves no density by more than exp(shift / noise)."""
        reach, rate = self.shift / self.noise_multiplier, self.sample_rate
        if rate == 1.0:
            return reach, reach
        forward = math.log1p(rate * math.expm1(reach)) if reach < 700.0 else reach + math.log(rate)
        return forward, min(-math.log1p(rate * math.expm1(-reach)), _absent(rate))


@dataclass(frozen=True)
class CurvePair(Pair):
    """Any two laws with a known trade-off curve and bounded likelihood ratio.

    Attributes:
        curve: H0 = absent; give the same object for equal releases, so that they are counted together.
        losses: the largest log likelihood ratio, and the largest of its negative.
        sample_rate: probability that the target takes part, in (0, 1]; the curve has it already.
    """

    curve: TradeOff
    losses: tuple[float, float]
    sample_rate: float = 1.0

    @property
    def largest_losses(self) -> tuple[float, float]:
        """As stated in ``losses``."""
        return self.losses


@dataclass(frozen=True, slots=True)
class Disclosure(Pair):
    """No noise: the target shows itself whenever it takes part.

    Attributes:
        sample_rate: probability that the target takes part, in (0, 1].
        displaces: in its place another record would show itself, so either answer can be seen.
    """

    sample_rate: float
    displaces: bool = False


def any_of(records: int, rate: float) -> float:
    """Probability that at least one of the records takes part.

    Args:
        records: >= 1.
        rate: of one record, in (0, 1].
    """
    return rate if records == 1 or rate == 1.0 else -math.expm1(records * math.log1p(-rate))


def _absent(rate: float) -> float:
    """Loss of a release that cannot contain the target: log of 1 / (1 - rate)."""
    return -math.log1p(-rate) if rate < 1.0 else math.inf
