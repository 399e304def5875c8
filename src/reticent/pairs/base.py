"""Pairs of laws that dominate one release, as data: H0, the target is absent, against H1, it is present.

``reticent.accountants`` knows how to compute with each; whatever has a trade-off curve of its own is a
``CurvePair``. Lengths are in units of the largest contribution of one record.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.curves import TradeOff


class Pair(ABC):
    """Two laws of one release.

    Attributes:
        log_absent: log of the probability that the target takes no part in the release.
        largest_losses: the largest log likelihood ratio and the largest of its negative; infinite where there is
            none.
        unsampled_mu: mu of an attacker who is told whether the target took part; None unless the noise is Gaussian.
        mu: where the pair is N(0, 1) against N(mu, 1) and nothing else, this mu; else None.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def log_absent(self) -> float:
        """See the class: -inf where it always takes part, and never because a probability was rounded to 1."""

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Of "present" against "absent", and of "absent" against "present"; in nats."""
        return math.inf, math.inf

    @property
    def unsampled_mu(self) -> float | None:
        """The mean shift over the noise, in standard deviations; None where the noise is not Gaussian."""
        return None

    @property
    def mu(self) -> float | None:
        """See the class: such releases are merged into one, as their mu add in squares."""
        return None


class _Drawn(Pair):
    """One coin decides whether the target takes part.

    Attributes:
        sample_rate: probability that it does, in (0, 1].
    """

    __slots__ = ()

    sample_rate: float

    @property
    def log_absent(self) -> float:
        return math.log1p(-self.sample_rate) if self.sample_rate < 1.0 else -math.inf

    @property
    def mu(self) -> float | None:
        return self.unsampled_mu if self.sample_rate == 1.0 else None


@dataclass(frozen=True, slots=True)
class GaussianPair(_Drawn):
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
        return math.inf, -self.log_absent

    @property
    def unsampled_mu(self) -> float:
        """``shift / noise_multiplier``."""
        return self.shift / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class AntipodalGaussianPair(_Drawn):
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
class SymmetrisedGaussianPair(_Drawn):
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
    """

    noise_multiplier: float
    rate: float
    records: int
    antipodal: bool

    @property
    def log_absent(self) -> float:
        """That none of the records takes part: of 60 at rate 1/2 the probability of any would be rounded to 1."""
        return self.records * math.log1p(-self.rate)

    @property
    def largest_losses(self) -> tuple[float, float]:
        if self.antipodal:
            return math.inf, math.inf
        return math.inf, -self.log_absent

    @property
    def unsampled_mu(self) -> float:
        return (2.0 if self.antipodal else 1.0) * self.records / self.noise_multiplier


@dataclass(frozen=True, slots=True)
class LaplacePair(_Drawn):
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
        return forward, min(-math.log1p(rate * math.expm1(-reach)), -self.log_absent)


@dataclass(frozen=True)
class CurvePair(_Drawn):
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
class Disclosure(_Drawn):
    """No noise: the target shows itself whenever it takes part.

    Attributes:
        sample_rate: probability that the target takes part, in (0, 1].
        displaces: in its place another record would show itself, so either answer can be seen.
    """

    sample_rate: float
    displaces: bool = False
