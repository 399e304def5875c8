"""How many runs there are of which the best is released: laws by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.errors import ParameterError
from reticent.kernel.keywords import hinted
from reticent.kernel.registry import described
from reticent.kernel.text import one_of

_MOST = 1e9  # runs on average
_HALVINGS = 200
_ROOTS = 9.0  # of the mean of a Poisson law, and their square: more are as rare as 1e-19
_LEAST = -100.0  # log of gamma


class Runs(ABC):
    """How many runs there are: a law with the generating function F(z) = sum P(K = k) z^k.

    All that selection needs of it are F' and F'' on [0, 1], which grow. They are given by the probability that is
    *outside*, 1 - z, as its small values matter.

    Attributes:
        name: as the command line and documents spell it.
        mean: E K = F'(1).
    """

    __slots__ = ()

    name: ClassVar[str]
    mean: float

    @abstractmethod
    def first(self, outside: np.ndarray) -> np.ndarray:
        """F'(1 - ``outside``); convex and growing for arguments above 1 as well, where F has no meaning."""

    @abstractmethod
    def second(self, outside: np.ndarray) -> np.ndarray:
        """F''(1 - ``outside``)."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> int:
        """One number of runs."""

    @property
    def most(self) -> tuple[int, float] | None:
        """(a number of runs, probability of more) where more are next to impossible; None where they are not."""
        return None

    @abstractmethod
    def most_loss(self, ahead: float, back: float) -> float:
        """By how much the privacy loss of the best can exceed that of a run whose losses are bounded.

        Args:
            ahead: log of how much more probable than under "absent" any outcome is under "present"; or infinite.
            back: the other way round.
        """

    def most_log_ratio(self, absent: np.ndarray, present: np.ndarray) -> float:
        """The largest log of F'(1 - present) / F'(1 - absent); infinite where it is not bounded.

        Args:
            absent, present: probabilities of the same outcomes under both laws.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.first(present)) - np.log(self.first(absent))
        return float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0.0))


def check_mean(mean: float, least: float) -> None:
    """Refuse a mean of runs with which one cannot compute.

    Raises:
        ParameterError: it is none.
    """
    if not least <= checks.positive(mean=mean) <= _MOST:
        raise ParameterError("mean", mean, f"from {least:g} to {_MOST:g}")


@hinted
@dataclass(frozen=True)
class NegativeBinomial(Runs):
    """A truncated negative binomial number of runs, at least one.

    Attributes:
        mean: of the number of runs, >= 1.
        shape: eta of PAPERNOT2022, > -1: 1 is geometric, 0 logarithmic; a smaller one costs less and varies more.

    Raises:
        ParameterError: a number is outside its domain.
    """

    mean: float = field(metadata=described("Average number of runs.", option="mean-runs"))
    shape: float = field(default=0.0, metadata=described("Shape of the law: 1 geometric, 0 logarithmic."))

    name: ClassVar[str] = "negative-binomial"

    def __post_init__(self) -> None:
        check_mean(self.mean, 1.0)
        if not -1.0 < checks.finite(shape=self.shape) <= 100.0:
            raise ParameterError("shape", self.shape, "above -1, at most 100")
        if self.mean > (most := _mean(self.shape, _LEAST)):
            raise ParameterError("mean", self.mean, f"at most {most:g} with shape {self.shape:g}")

    @property
    def gamma(self) -> float:
        """The parameter that gives this mean, in (0, 1]."""
        return _gamma(self.shape, self.mean)

    def _left(self, outside: np.ndarray) -> np.ndarray:
        return self.gamma + (1.0 - self.gamma) * outside

    def first(self, outside: np.ndarray) -> np.ndarray:
        power: np.ndarray = self.mean * (self.gamma / self._left(outside)) ** (self.shape + 1.0)
        return power

    def second(self, outside: np.ndarray) -> np.ndarray:
        return self.first(outside) * (self.shape + 1.0) * (1.0 - self.gamma) / self._left(outside)

    def most_loss(self, ahead: float, back: float) -> float:
        """PAPERNOT2022:Corollary 3: what ranks above is at most e^back times as probable."""
        return (self.shape + 1.0) * back

    def draw(self, rng: np.random.Generator) -> int:
        """Invert the law: P(K = k + 1) / P(K = k) = (1 - gamma) (k + shape) / (k + 1)."""
        left, count, rest = 1.0 - rng.random(), 1, 1.0 - self.gamma
        mass = self.mean * self.gamma ** (self.shape + 1.0)  # F'(0)
        while left > mass and mass > 0.0:
            left -= mass
            mass *= rest * (count + self.shape) / (count + 1.0)
            count += 1
        return count


@hinted
@dataclass(frozen=True)
class Geometric(NegativeBinomial):
    """A geometric number of runs: after each run, stop with probability 1 / mean.

    Attributes:
        mean: of the number of runs, >= 1.

    Raises:
        ParameterError: it is outside its domain.
    """

    shape: float = field(default=1.0, init=False, repr=False)

    name: ClassVar[str] = "geometric"


@hinted
@dataclass(frozen=True)
class Poisson(Runs):
    """A Poisson number of runs; with none, nothing is released.

    Attributes:
        mean: of the number of runs, > 0.

    Raises:
        ParameterError: it is outside its domain.
    """

    mean: float = field(metadata=described("Average number of runs.", option="mean-runs"))

    name: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        check_mean(self.mean, 1e-9)

    def first(self, outside: np.ndarray) -> np.ndarray:
        return np.asarray(self.mean * np.exp(-self.mean * outside))

    def second(self, outside: np.ndarray) -> np.ndarray:
        return self.mean * self.first(outside)

    @property
    def most(self) -> tuple[int, float]:
        from scipy.special import pdtrc  # lists of mechanisms are read without it

        count = math.ceil(self.mean + _ROOTS * math.sqrt(self.mean) + _ROOTS**2)
        return count, float(pdtrc(count, self.mean))

    def most_loss(self, ahead: float, back: float) -> float:
        """A total variation is at most 1 - e^-back, and 1 - e^-ahead."""
        return -self.mean * math.expm1(-min(ahead, back))

    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.poisson(self.mean))


@hinted
@dataclass(frozen=True)
class Fixed(Runs):
    """A number of runs that everybody knows.

    Attributes:
        mean: the number, a whole one, >= 1.

    Raises:
        ParameterError: it is none.
    """

    mean: float = field(metadata=described("Number of runs.", option="mean-runs"))

    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        check_mean(self.mean, 1.0)
        if self.mean != int(self.mean):
            raise ParameterError("mean", self.mean, "a whole number of runs")

    def first(self, outside: np.ndarray) -> np.ndarray:
        return self.mean * np.maximum(1.0 - outside, 0.0) ** (self.mean - 1.0)

    def second(self, outside: np.ndarray) -> np.ndarray:
        if self.mean == 1.0:
            return np.zeros(np.shape(outside))
        return self.mean * (self.mean - 1.0) * np.maximum(1.0 - outside, 0.0) ** (self.mean - 2.0)

    @property
    def most(self) -> tuple[int, float]:
        return int(self.mean), 0.0

    def most_loss(self, ahead: float, back: float) -> float:
        """The others all rank below, and what ranks below is at most e^ahead times as probable."""
        return (self.mean - 1.0) * ahead if self.mean > 1.0 else 0.0

    def draw(self, rng: np.random.Generator) -> int:
        return int(self.mean)


RUNS: dict[str, type[Runs]] = {kind.name: kind for kind in (Geometric, NegativeBinomial, Poisson, Fixed)}
"""Laws of the number of runs by name."""


def runs_called(name: str) -> type[Runs]:
    """The law of a number of runs with this name.

    Raises:
        ParameterError: there is none.
    """
    if name not in RUNS:
        raise ParameterError("selection", name, one_of(name, RUNS))
    return RUNS[name]


@lru_cache(maxsize=256)
def _gamma(shape: float, mean: float) -> float:
    """gamma with mean = shape (1 - gamma) / (gamma (1 - gamma^shape)), which falls from infinity to 1."""
    if shape == 1.0 or mean == 1.0:
        return 1.0 / mean
    return math.exp(halved(lambda log_gamma: _mean(shape, float(log_gamma)) > mean, _LEAST, 0.0, _HALVINGS)[1])


def _mean(shape: float, log_gamma: float) -> float:
    if log_gamma == 0.0:
        return 1.0
    power = shape * log_gamma
    bent = power / math.expm1(power) if power != 0.0 else 1.0
    return math.expm1(-log_gamma) / -log_gamma * bent
