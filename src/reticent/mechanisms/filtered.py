"""Gaussian releases whose noise is chosen while they are made, within a budget: a privacy filter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from reticent.kernel import checks, pairs
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms.base import OF_NOISE, Mechanism
from reticent.kernel.mechanisms.gaussian import Gaussian
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import Search, described

_BITS = 160  # of the whole numbers in which a budget is spent: no sum of floats can round it upward


@dataclass(frozen=True, slots=True, repr=False)
class FilteredGaussian(Mechanism):
    """Gaussian releases chosen one by one, within a budget.

    Which release comes next, with how much noise, and whether one comes at all may depend on all that was released.
    Nothing is sampled. ``GaussianFilter`` keeps the budget.

    Attributes:
        budget: the most that the sum of 1 / noise_multiplier^2 over all releases may be, > 0: mu is its root.

    Raises:
        ParameterError: it is outside its domain.

    Example:
        >>> import reticent as rt
        >>> round(rt.mu(rt.FilteredGaussian(0.25)), 6)
        0.5
    """

    budget: float = field(
        metadata=described(
            "Most sum of 1 / noise multiplier^2 over all releases.", search=Search(1e-8, 1e4, risk_grows=True)
        )
    )

    name: ClassVar[str] = "filtered-gaussian"
    title: ClassVar[str] = "Gaussian, within a budget"
    sentence: ClassVar[Message | str] = Message("mechanism.filtered-gaussian")

    def __post_init__(self) -> None:
        if not 1e-30 <= checks.positive(budget=self.budget) <= 1e30:
            raise ParameterError("budget", self.budget, "from 1e-30 to 1e30")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """One Gaussian release that uses the whole budget, which some analyst makes.

        By SMITH2022:Theorem 1 (fully adaptive composition of Gaussian differential privacy).

        Args:
            attained: any; what dominates is attained as well.
        """
        shift = neighbouring.sensitivity * math.sqrt(self.budget)
        return (Part(pairs.GaussianPair(1.0, 1.0, shift), 1, ("SMITH2022:Theorem 1",)),)

    def _stated(self) -> tuple[str, ...]:
        return ("clipped", "filtered")

    def _unseen(self) -> tuple[str, ...]:
        return OF_NOISE


class GaussianFilter:
    """Admits Gaussian releases while their budget lasts: ask before each one.

    Attributes:
        budget: the most that the sum of 1 / noise_multiplier^2 may be, > 0.
        spent: what the admitted releases sum to.

    Raises:
        ParameterError: ``budget`` is outside its domain.

    Example:
        >>> import reticent as rt
        >>> keeper = rt.GaussianFilter(0.5)
        >>> keeper.admit(rt.Gaussian(2.0)), keeper.admit(rt.Gaussian(1.0)), keeper.admit(rt.Gaussian(2.0))
        (True, False, True)
    """

    def __init__(self, budget: float) -> None:
        self.budget = FilteredGaussian(budget).budget
        self._unit = Fraction(2) ** (math.frexp(self.budget)[1] - _BITS)
        self._left = int(Fraction(self.budget) / self._unit)  # exact: a budget has 53 bits

    @property
    def spent(self) -> float:
        """See the class."""
        return float(Fraction(self.budget) - self._left * self._unit)

    @property
    def left(self) -> float:
        """What the budget leaves."""
        return float(self._left * self._unit)

    @property
    def least_noise(self) -> float:
        """The smallest noise multiplier that one more release may have; infinite where nothing is left."""
        if not self._left:
            return math.inf
        noise = 1.0 / math.sqrt(self.left)
        while self._cost(Gaussian(noise)) > self._left:
            noise = math.nextafter(noise, math.inf)
        return noise

    @property
    def mechanism(self) -> FilteredGaussian:
        """What everything that is ever admitted amounts to."""
        return FilteredGaussian(self.budget)

    def admit(self, release: Mechanism) -> bool:
        """Whether ``release`` may be made; if so, it is counted as made.

        Args:
            release: ``Gaussian`` releases.

        Raises:
            UnsupportedError: it is another mechanism. The natural filter, which composes trade-off curves and stops
                before they cross a limit, does not hold (TRAN2026:F1).
        """
        cost = 0
        for part in release.parts:
            if not isinstance(part, Gaussian) or part.noise_multiplier == 0.0:
                raise UnsupportedError(
                    f"{part.name}: a filter is proven for Gaussian noise without sampling only. To compose trade-off "
                    "curves until they cross a limit (the natural f-DP filter) does not hold: TRAN2026:F1. Fix the "
                    "plan beforehand and compose it"
                )
            cost += self._cost(part)
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def _cost(self, release: Gaussian) -> int:
        """1 / noise_multiplier^2 for each release, in units of the budget, rounded up."""
        return math.ceil(release.releases / Fraction(release.noise_multiplier) ** 2 / self._unit)
