"""Randomised response: a yes-or-no answer that is flipped now and then."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from reticent.kernel import checks, pairs
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import SMALLEST, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.registry import Search, described

_EXACT = 1000  # releases whose number of yes answers is one binomial law; beyond, steps are composed

_NEAREST = 0.5 - 1e-9  # flips nearer to 1/2 count as this one, which gives away more
_ROUNDED = 4e-15  # of a flip: more than the rates are rounded by


@dataclass(frozen=True, slots=True, repr=False)
class RandomisedResponse(Mechanism):
    """A yes-or-no answer, flipped with some probability.

    One record can change the true answer, by being there, by being absent or by its value: then the answer is
    Bernoulli(flip_probability) for one data set and Bernoulli(1 - flip_probability) for the other, whatever the
    neighbouring relation. A survey in which each person answers for themselves (WARNER1965) is the case of
    replacement. One release is log((1 - flip_probability) / flip_probability)-DP.

    Attributes:
        flip_probability: probability that one release shows the wrong answer, in [0, 1/2]; 0 is the plain truth.
        releases: number of releases, each with a flip of its own.

    Raises:
        ParameterError: a number is outside its domain, or NaN.

    Example:
        >>> import reticent as rt
        >>> round(rt.WorstCase().assess(rt.RandomisedResponse(0.25)).measure(rt.advantage).value, 4)
        0.5
    """

    flip_probability: float = field(
        metadata=described(
            "Probability that a release shows the wrong answer.", search=Search(1e-9, 0.5, risk_grows=False)
        )
    )
    releases: int = field(default=1, metadata=described("Number of releases of the same answer."))

    name: ClassVar[str] = "randomised-response"
    sentence: ClassVar[Message | str] = Message("mechanism.randomised-response")

    def __post_init__(self) -> None:
        flip = checks.fraction(flip_probability=self.flip_probability)
        if flip > 0.5 or 0.0 < flip < SMALLEST:
            raise ParameterError("flip_probability", self.flip_probability, f"0, or from {SMALLEST:g} to 0.5")
        checks.count(releases=self.releases)

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        flip, keys = self.flip_probability, ("RETICENT:flipped-answer",)
        if flip == 0.0:
            return (Part(pairs.Disclosure(1.0), self.releases, keys),)
        if flip == 0.5:
            return ()
        at_once = self.releases if self.releases <= _EXACT else 1
        # Next to 1/2 the advantage is a difference of rounded rates: it is taken a little further from there.
        flip = min(flip, _NEAREST) - (_ROUNDED if flip > 0.49 else 0.0)
        return (Part(_pair(flip, at_once), self.releases // at_once, keys),)

    def _stated(self) -> tuple[str, ...]:
        return ()

    def _unseen(self) -> tuple[str, ...]:
        return ("unpredictable-noise",)


@lru_cache(maxsize=64)  # equal releases are counted together
def _pair(flip: float, releases: int) -> pairs.CurvePair:
    """The number of yes answers is sufficient: Binomial(releases, flip) against Binomial(releases, 1 - flip)."""
    from reticent.kernel.curves import LogErrors, PolygonTradeOff  # lists of mechanisms are read without them
    from reticent.kernel.curves.binomial import log_masses

    yes = np.arange(releases, -1, -1)  # the answers that an attacker accuses, the strongest evidence first
    absent = log_masses(releases, flip)[yes]
    fpr = np.append(-np.inf, np.logaddexp.accumulate(absent))
    tnr = np.append(np.logaddexp.accumulate(absent[::-1])[::-1], -np.inf)
    fpr[-1] = tnr[0] = 0.0
    losses = (2 * yes - releases) * math.log1p((1.0 - 2.0 * flip) / flip)
    rates = LogErrors(fpr=fpr, tnr=tnr, fnr=fpr[::-1], tpr=tnr[::-1])  # exchanging yes and no exchanges the laws
    return pairs.CurvePair(PolygonTradeOff(rates, losses), (float(losses[0]), float(losses[0])))
