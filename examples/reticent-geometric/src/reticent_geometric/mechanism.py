"""Whole numbers with two-sided geometric noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from reticent.kernel.curves import LogErrors, PolygonTradeOff
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import CurvePair, Neighbouring, Part
from reticent.kernel.proofs import Condition, condition
from reticent.kernel.registry import Search, described
from reticent_geometric.theorems import GEOMETRIC


@dataclass(frozen=True, slots=True, repr=False)
class Geometric(Mechanism):
    """A count with geometric noise: it stays a whole number.

    The noise is k with a probability proportional to exp(-epsilon_per_unit |k|).

    Attributes:
        epsilon_per_unit: how fast the noise falls, > 0 and at most 50.
        sensitivity: how far one record can move the count, a whole number >= 1.
        releases: number of counts, each with noise of its own.

    Raises:
        ParameterError: a number is outside its domain.
    """

    epsilon_per_unit: float = field(
        metadata=described("Fall of the noise for each unit of the count.", search=Search(1e-6, 50.0, risk_grows=True))
    )
    sensitivity: int = field(default=1, metadata=described("How far one record can move the count."))
    releases: int = field(default=1, metadata=described("Number of counts."))

    name: ClassVar[str] = "geometric"

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon_per_unit <= 50.0:
            raise ParameterError("epsilon_per_unit", self.epsilon_per_unit, "a number above 0 and at most 50")
        for name, most in (("sensitivity", 1000), ("releases", 10**9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ParameterError(name, value, f"a whole number from 1 to {most:g}")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """The same pair for each relation: ``sensitivity`` says how far one record moves the count."""
        return (Part(_pair(self.epsilon_per_unit, self.sensitivity), self.releases, (GEOMETRIC,)),)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The noise is drawn as a whole number: nothing is assumed about rounding."""
        return tuple(condition(key) for key in ("used-once", "public-preparation", "unpredictable-noise"))


@lru_cache(maxsize=64)  # equal releases are counted together
def _pair(fall: float, shift: int) -> CurvePair:
    """Noise around 0 against noise around ``shift``: the loss is fall (2k - shift) at k, and constant outside."""
    counts = np.arange(shift, -1, -1)  # the strongest evidence of the record first; the ends stand for all beyond
    log_mass = np.log(np.tanh(fall / 2.0)) - fall * counts
    log_mass[[0, -1]] -= np.log(-np.expm1(-fall)) * np.ones(2)
    fpr = np.append(-np.inf, np.logaddexp.accumulate(log_mass))
    tnr = np.append(np.logaddexp.accumulate(log_mass[::-1])[::-1], -np.inf)
    fpr[-1] = tnr[0] = 0.0
    losses = fall * (2.0 * counts - shift)
    rates = LogErrors(fpr=fpr, tnr=tnr, fnr=fpr[::-1], tpr=tnr[::-1])  # k to shift - k exchanges the two laws
    return CurvePair(PolygonTradeOff(rates, losses), (fall * shift, fall * shift))
