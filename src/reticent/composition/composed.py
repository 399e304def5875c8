"""Point values of a composition, each as (lower, upper) around the truth."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from reticent import _check
from reticent.composition.bracket import Bracket
from reticent.composition.compose import compose
from reticent.composition.routes.advantage import enclose_advantage
from reticent.composition.routes.transform import SpectralComposition, transform_of
from reticent.composition.steps import steps_of
from reticent.errors import NumericalError
from reticent.mechanism import DPSGD, Mechanism, Neighbouring, Sampler
from reticent.tradeoff import TradeOff

Interval = tuple[float, float]
_WIDE = 1e-6  # of delta at one threshold: beyond it the curve is asked
_WIDE_ADVANTAGE = 1e-7
_ROOMS = (1.0, 2.0)  # of the certified advantage: what its nodes are planned for


class Composed:
    """The worst case of ``mechanism``, asked for single numbers; the worse direction throughout.

    ``advantage`` and ``delta`` use the characteristic function at the one threshold asked for, so they are
    tighter than the polygons of ``compose`` (on the five reference runs relative 1e-6 down to delta 1e-12);
    where that route does not apply they fall back to the polygons. Nothing is computed before it is asked for.

    Attributes:
        mechanism: what was run.
        neighbouring: between which data sets.
        refused: why single thresholds were read off the curve instead.
    """

    def __init__(self, mechanism: Mechanism, neighbouring: Neighbouring) -> None:
        self.mechanism, self.neighbouring = mechanism, neighbouring
        self.refused: list[str] = []

    @cached_property
    def bracket(self) -> Bracket:
        """The enclosed curve."""
        return compose(self.mechanism, self.neighbouring)

    @cached_property
    def _spectral(self) -> SpectralComposition | None:
        noisy, seen = whole = steps_of(self.mechanism, self.neighbouring)
        attained = whole == steps_of(self.mechanism, self.neighbouring, attained=True)
        return transform_of(noisy) if noisy and seen == 0.0 and attained else None

    def advantage(self) -> Interval:
        """max over alpha of 1 - alpha - beta, which is delta(0)."""
        run = self.mechanism
        if isinstance(run, DPSGD) and run.sampler is Sampler.POISSON and run.records == 1:
            return certified_advantage(run.noise_multiplier, run.sample_rate, run.steps, self.neighbouring)
        return self.delta(0.0)

    def delta(self, epsilon: float) -> Interval:
        """The smallest delta at ``epsilon`` >= 0 that holds in both directions."""
        epsilon = _check.non_negative(epsilon=epsilon)
        spectral = self._spectral
        if spectral is not None and spectral.steps:
            try:
                with np.errstate(all="ignore"):
                    ways = [spectral.delta(epsilon)]
                    if epsilon > 0.0 and not spectral.symmetric:
                        ways.append(spectral.reversed_delta(epsilon))
            except NumericalError as error:
                self.refused.append(f"delta at {epsilon:g}: {error}")
            else:
                lower, upper = max(way[0] for way in ways), max(way[1] for way in ways)
                if min(upper - lower, upper) < _WIDE:
                    return lower, upper
                self.refused.append(f"delta at {epsilon:g}: known within {upper - lower:.1g} only")
        return self._read(lambda curve: float(curve.delta(epsilon)))

    def beta(self, alpha: float) -> Interval:
        """Smallest false negative rate at false positive rate ``alpha``."""
        alpha = _check.fraction(alpha=alpha)
        return self._read(lambda curve: float(curve.beta(alpha)))[::-1]

    def epsilon(self, delta: float) -> Interval:
        """The smallest epsilon >= 0 at ``delta``; infinite where no epsilon has so small a delta."""
        delta = _check.open_fraction(delta=delta)
        return self._read(lambda curve: _epsilon(curve, math.log(delta)))

    def _read(self, value: Callable[[TradeOff], float]) -> Interval:
        """What the optimistic and the pessimistic curve say."""
        return value(self.bracket.optimistic), value(self.bracket.pessimistic)


def certified_advantage(
    noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring
) -> Interval:
    """(lower, upper) around the worst-case advantage of a Poisson-sampled DP-SGD run, proven.

    The width is mostly below 1e-8, never above that of ``compose``.
    """
    noise, rate = _check.non_negative(noise_multiplier=noise_multiplier), _check.rate(sample_rate=sample_rate)
    _check.count(steps=steps)
    if noise > 0.0 and rate < 1.0:
        for room in _ROOMS:
            with contextlib.suppress(NumericalError):
                lower, upper = enclose_advantage(noise, rate, steps, neighbouring is Neighbouring.REPLACE, room)
                if upper - lower < _WIDE_ADVANTAGE:
                    return lower, upper
    bracket = compose(DPSGD(noise, rate, steps), neighbouring)
    upper = float(bracket.pessimistic.delta(0.0))
    return min(float(bracket.optimistic.delta(0.0)), upper), upper  # rounding may exchange equal ends


def _epsilon(curve: TradeOff, log_delta: float) -> float:
    """Bisection on epsilon, the upper end returned: delta does not exceed the target there."""
    if float(curve.log_delta(0.0)) <= log_delta:
        return 0.0
    low, high = 0.0, 1.0
    while float(curve.log_delta(high)) > log_delta:
        low, high = high, 2.0 * high
        if high > 1e6:
            return math.inf
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(curve.log_delta(middle)) > log_delta else (low, middle)
    return high
