"""One epoch of random allocation, as two curves that enclose the true one; docs/theory/sampling.md has the proof.

Absent: N(0, s^2 I) in t steps. Present: the same, moved by 1 in one step that is drawn uniformly. The likelihood
ratio is the mean of t independent log-normals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr

from reticent.curves.moves import chained
from reticent.kernel.curves import GaussianTradeOff, LogErrors, TradeOff
from reticent.kernel.curves._logs import EPS, TINY, log1mexp, log_of
from reticent.kernel.curves.polygon import Polygon, gaussian_above, hull, polygon_above, polygon_through, strictest
from reticent.kernel.pairs.base import Pair
from reticent.kernel.pairs.curve import CurvePair
from reticent.pairs.allocated_sum import COARSE, FINE, MEDIUM, TAILS, Effort, Law, Window, sum_of
from reticent.pairs.allocated_transform import Deltas, resolved
from reticent.pairs.told_steps import told_steps

_FEW = 1024  # bins whose sums take few doublings, so that each may err by more
_LEAST_NOISE, _MOST = 0.065, 2**24  # below the first and above the second nothing is computed on grids
_FEW_PER_NAT = 60.0  # thresholds of a rough curve
_LONGEST, _MOST_TOLD = 32, 128  # records of one person that are followed one by one; whose meetings are counted
_DEVIATIONS = np.linspace(-20.0, 20.0, 1601)  # thresholds of a sum
_PLACES = np.linspace(0.0, 40.0, 321)  # thresholds, in deviations from the mean loss
_LEAST = 1e-60  # added to what is an error rate of a test, or a delta: products of masses may underflow


@dataclass(frozen=True)
class AllocatedGaussianPair(Pair):
    """N(0, noise^2 I) in all steps of an epoch against the same, moved by 1 in one step that is drawn uniformly.

    Attributes:
        noise_multiplier: standard deviation of the noise over the clip norm, > 0.
        bins: steps of the epoch, at least 2.
    """

    noise_multiplier: float
    bins: int

    @property
    def curve(self) -> TradeOff:
        """On the safe side."""
        return random_allocation(self.noise_multiplier, self.bins)[0]

    @property
    def curve_below(self) -> TradeOff:
        return random_allocation(self.noise_multiplier, self.bins)[1]

    @property
    def rough(self) -> Pair:
        return CurvePair(_rough(self.noise_multiplier, self.bins))

    @property
    def unsampled_mu(self) -> float:
        """Of an attacker who sees the step."""
        return 1.0 / self.noise_multiplier

    @property
    def log_ways(self) -> float:
        """Of its steps."""
        return math.log(self.bins)


@dataclass(frozen=True)
class AllocatedPersonPair(Pair):
    """The same for several records of one person, each in a step of its own, or for records that are replaced.

    Data sets that differ by several records are a chain of neighbours. An attacker who sees the steps bounds the
    curve as well; both bounds are kept.

    Attributes:
        noise_multiplier: standard deviation of the noise over the clip norm, > 0.
        bins: steps of the epoch, at least 2.
        records: of the person.
        replaced: the other data set has as many other records; else none of them.
        redrawn: the epoch stands for several, each with draws of its own: who sees them may see all records meet.
    """

    noise_multiplier: float
    bins: int
    records: int
    replaced: bool
    redrawn: bool = False

    @cached_property
    def curve(self) -> TradeOff:
        """On the safe side."""
        return _chained(random_allocation(self.noise_multiplier, self.bins)[0], self)

    @cached_property
    def curve_below(self) -> TradeOff:
        """Of whoever looks at one record alone, or adds up all steps: the sum of an epoch holds each record once."""
        mu = self.unsampled_mu / math.sqrt(self.bins)
        summed = GaussianTradeOff(mu).errors(mu * _DEVIATIONS * (1.0 + 0.5 * mu))
        return hull([random_allocation(self.noise_multiplier, self.bins)[1], polygon_through(summed)])

    @property
    def rough(self) -> Pair:
        return CurvePair(_chained(_rough(self.noise_multiplier, self.bins), self))

    @property
    def unsampled_mu(self) -> float:
        """Of an attacker who sees the steps, all records in one of them."""
        return (2.0 if self.replaced else 1.0) * self.records / self.noise_multiplier

    @property
    def tail_mu(self) -> float:
        """That of one record."""
        return 1.0 / self.noise_multiplier


def _chained(one: TradeOff, pair: AllocatedPersonPair) -> TradeOff:
    """By RETICENT:allocation-chain, from the curve of one record."""
    records, bins, mu = pair.records, pair.bins, pair.unsampled_mu
    counted = 1 < records <= min(bins, _MOST_TOLD) and not pair.redrawn
    told = told_steps(mu / records, records, bins) if counted else GaussianTradeOff(mu)
    if records > _LONGEST or not isinstance(one, Polygon):
        return told
    found = one
    for digit in f"{records:b}"[1:]:
        found = chained(found, found)
        found = chained(found, one) if digit == "1" else found
    return strictest([chained(found.reversed, found) if pair.replaced else found, told])


@lru_cache(maxsize=32)  # many numbers are read off one release
def random_allocation(noise_multiplier: float, bins: int) -> tuple[TradeOff, Polygon]:
    """The curves of one epoch, H0 = absent: of a stronger attacker, and of a weaker one.

    With next to no noise these are an attacker who sees the step, and one who looks at the largest observation. More
    than 16 million bins are no worse than these: the mean of more variables is smaller in convex order.

    By RETICENT:allocation-enclosure.

    Args:
        noise_multiplier: s > 0, in clip norms.
        bins: t >= 2, steps of one epoch.
    """
    if noise_multiplier < _LEAST_NOISE:
        return GaussianTradeOff(1.0 / noise_multiplier), _loudest(noise_multiplier, bins)
    if bins > _MOST:
        return random_allocation(noise_multiplier, _MOST)[0], _loudest(noise_multiplier, bins)
    windows: list[Window] = []
    known = resolved(1.0 / noise_multiplier, bins, deltas_of(_coarse(noise_multiplier, bins, windows), bins))
    long = TAILS if known else FINE
    above, below = enclosed(noise_multiplier, bins, MEDIUM if bins <= _FEW else long, windows)
    # Far out grids and transforms leave something out: there whoever sees the step bounds the curve.
    far = gaussian_above(1.0 / noise_multiplier, _PLACES)
    most = strictest([*([known[0]] if known else []), above, far])
    return most, hull([*([known[1]] if known else []), below, _loudest(noise_multiplier, bins)])


def _rough(noise_multiplier: float, bins: int) -> TradeOff:
    """Near the first of ``random_allocation``: with fewer thresholds, or on coarse grids."""
    if noise_multiplier < _LEAST_NOISE or bins > _MOST:
        return random_allocation(noise_multiplier, bins)[0]
    law = _coarse(noise_multiplier, bins, [])
    known = resolved(1.0 / noise_multiplier, bins, deltas_of(law, bins), _FEW_PER_NAT)
    return known[0] if known else _curve_above(law, bins)


def _coarse(noise_multiplier: float, bins: int, windows: list[Window]) -> Law:
    """From above; ``windows`` gets where the sums are."""
    with np.errstate(under="ignore"):
        return sum_of(1.0 / noise_multiplier, bins, windows, COARSE, above=True)


def enclosed(noise_multiplier: float, bins: int, effort: Effort, windows: list[Window]) -> tuple[Polygon, Polygon]:
    """Both curves on grids.

    Args:
        effort: how fine the grids are.
        windows: where the sums are; where there are none, they are found.
    """
    with np.errstate(under="ignore"):
        above = sum_of(1.0 / noise_multiplier, bins, windows, effort, above=True)
        below = sum_of(1.0 / noise_multiplier, bins, windows, effort, above=False)
    return _curve_above(above, bins), _curve_below(below, bins)


def _loudest(noise: float, bins: int) -> Polygon:
    """ "Reject if any of the observations exceeds a threshold"; the false positives by a union bound."""
    places = np.linspace(-5.0, 40.0, 400) + np.linspace(0.0, min(1.0 / noise, 1e8), 400)
    places = places[np.log(bins) + log_ndtr(-places) < -EPS]
    fpr, beyond = np.log(bins) + log_ndtr(-places), places - 1.0 / noise
    return polygon_through(LogErrors(fpr, log1mexp(fpr), log_ndtr(beyond), log_ndtr(-beyond)))


def _curve_above(law: Law, bins: int) -> Polygon:
    """All deltas are sums of positive terms; errors of positions move the threshold."""
    ratio, call, put = deltas_of(law, bins)
    one = int(np.searchsorted(ratio, 1.0, side="right"))
    share = (ratio[one] - 1.0) / (ratio[one] - ratio[one - 1])
    at_one = share * call[one - 1] + (1.0 - share) * call[one] + law.eta
    losses = log_of(ratio)
    up, down = losses > 4.0 * law.eta, (losses < -4.0 * law.eta) & (ratio > 0.0)
    room = law.eta + 8.0 * EPS * (1.0 + np.abs(losses))
    thresholds = np.concatenate([losses[down] - room[down], [0.0], losses[up] + room[up]])
    delta = np.concatenate([put[down] / ratio[down], [at_one], call[up]])
    return polygon_above(thresholds, np.minimum(np.log(delta + _LEAST), 0.0))


def deltas_of(law: Law, bins: int) -> Deltas:
    """Of the mean, for a law from above."""
    ratio, mass = law.at / bins, law.mass
    gap, slack = np.diff(ratio), 1.0 + law.kappa + (len(mass) + 16) * EPS
    beyond, before = np.cumsum(mass[:0:-1])[::-1], np.cumsum(mass[:-1])  # mass of the atoms after each, and up to it
    call = np.append(np.cumsum((gap * beyond)[::-1])[::-1], 0.0) + law.lost / bins
    put = np.append(0.0, np.cumsum(gap * before))
    return Deltas(ratio, call * slack, put * slack)


def _curve_below(law: Law, bins: int) -> Polygon:
    """ "Reject from this atom on": a test of the collapsed law, so no better than some test of the true one."""
    few, weighted = law.mass, law.mass * law.at / bins
    error = law.kappa + law.eta + (len(few) + 16) * EPS
    rates = [np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (few, weighted)]
    rest = [np.append(0.0, np.cumsum(part)) for part in (few, weighted)]
    more, less = 1.0 + error, max(1.0 - error, TINY)
    fpr, fnr = rates[0] * more + _LEAST, rest[1] * more + _LEAST
    logs = LogErrors(log_of(fpr), log_of(rest[0] * less), log_of(fnr), log_of(rates[1] * less))
    return polygon_through(LogErrors(*(np.minimum(rate, 0.0) for rate in logs)))
