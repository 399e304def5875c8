"""One epoch of random allocation by its transform: each error term where it matters, against sums of its own.

Theorems: RETICENT:allocation-enclosure.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.pairs import allocated_transform, log_normal
from reticent.pairs.allocated_sum import COARSE, sum_of
from reticent.pairs.allocated_transform import Period, Stretch, Sums, period_of, sums_of
from reticent.pairs.log_normal import line_of, transform
from reticent.pairs.random_allocation import deltas_of, enclosed, random_allocation
from tests.pairs.allocation import by_contour

NOISE, BINS = 2.0, 64
AT = np.array([0.85, 0.95, 1.0, 1.05, 1.15])


TRUTH = by_contour(NOISE, BINS, AT)
LINE = line_of(1.0 / NOISE)


def found_at(period: Period, at: np.ndarray = AT) -> Sums:
    with np.errstate(all="ignore"):
        return sums_of(LINE, period, at)


def planned(
    low: float = 0.5, high: float = 1.8, excess: float = 1e-10, cell: float = 1e-13, at: np.ndarray = AT
) -> Period:
    period = period_of(LINE, BINS, Stretch(at, low, high, excess), cell)
    assert period is not None
    return period


def off(sums: Sums) -> list[tuple[float, float]]:
    """Of each kind: the error that is largest beside its bound, and this bound with what the contour is off by."""
    pairs = zip(
        (sums.put, sums.absent, sums.present),
        (sums.put_error, sums.absent_error, sums.present_error),
        [truth[: len(sums.at)] for truth in TRUTH],
        strict=True,
    )
    found = []
    for value, error, truth in pairs:
        apart = np.abs(value - truth)
        worst = int(np.argmax(apart / error))
        found.append((float(apart[worst]), float(error[worst]) + 2e-12))
    return found


def test_three_sums_against_a_contour() -> None:
    for apart, error in off(found_at(planned())):
        assert apart <= error
        assert error < 1e-10


@pytest.mark.parametrize("noise", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("origin", [0.0, 1.0])
def test_the_transform_of_a_log_normal(noise: float, origin: float) -> None:
    """Against a sum over the real line, with so many nodes that they follow each turn."""
    found = transform(line_of(1.0 / noise), 0.1, 0.4, 40, origin)
    z, step = np.linspace(-10.0, 12.0, round(2e5 / noise) + 1, retstep=True)
    weight, value = norm.pdf(z) * step, np.exp(z / noise - 0.5 / noise**2)
    for n in (0, 13, 39):
        falls = np.exp(-complex(0.1, 0.4 * n) * (value - origin)) * weight
        for power, known, error in (
            (0, found.less_one[n] + 1.0, found.error[n]),
            (1, found.weighted[n], found.weighted_error[n]),
        ):
            assert abs(known - complex(np.sum(falls * value**power))) <= error + 1e-15
            assert error < 1e-9


class TestErrorTerms:
    """Each is made large, and then covers what it leaves out: without it these fail."""

    def check(self, sums: Sums, least: float) -> None:
        apart = off(sums)
        assert all(one <= error for one, error in apart)
        assert max(one for one, _ in apart) > least

    @pytest.mark.parametrize("kept", ["DIGITS", "FURTHEST"])
    def test_the_rule_and_nodes_left_out(self, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log_normal, kept, 3.0)
        with np.errstate(all="ignore"):
            self.check(sums_of(line_of(1.0 / NOISE), planned(), AT), 1e-6)

    def test_frequencies_left_out(self) -> None:
        period, few = planned(), 25
        cut = log_normal.Decay(LINE, BINS).beyond(
            period.damping / BINS, (few - 1) * 2.0 * math.pi / period.window / BINS
        )
        self.check(found_at(period._replace(frequencies=few, cut=cut * (BINS - 1) + period.damping / BINS)), 1e-9)

    def test_copies_above(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The period ends soon, and hardly dampens; below the first two thresholds nothing is left."""
        monkeypatch.setattr(allocated_transform, "LOWEST", 1e-2)
        period = planned(low=0.84, high=1.15, excess=float(TRUTH[0][-1]) - 0.15, at=AT[:2])
        self.check(found_at(period, AT[:2]), 1e-7)

    def test_copies_below(self) -> None:
        """A first threshold of .999 is said, and the law begins at .7."""
        self.check(found_at(planned(low=0.999, high=1.16, excess=2e-3)), 1e-5)


def test_rates_within_a_cell_are_means() -> None:
    """A wide cell: both rates are means over it."""
    period = planned(cell=0.05)
    sums = found_at(period)
    fine = by_contour(NOISE, BINS, (AT[:, None] + 0.05 * (np.arange(50) + 0.5) / 50).ravel())
    for value, rates in ((sums.absent, fine[1]), (sums.present, fine[2])):
        assert value == pytest.approx(rates.reshape(-1, 50).mean(axis=1), rel=1e-4, abs=0)


@pytest.mark.parametrize(("noise", "bins"), [(1.0, 64), (0.5, 1000), (20.0, 300), (1.0, 8)])
def test_closer_than_grids_and_within_them(noise: float, bins: int) -> None:
    with np.errstate(under="ignore"):
        law = deltas_of(sum_of(1.0 / noise, bins, [], COARSE, above=True), bins)
    close, coarse = allocated_transform.resolved(1.0 / noise, bins, law), enclosed(noise, bins, COARSE, [])
    assert close is not None
    low, high = advantage(close[1]), advantage(close[0])
    assert 0.0 < high - low < 2e-7 * high
    for epsilon in (0.0, 0.02, 0.3):
        for way in (lambda curve: curve, lambda curve: curve.reversed):
            ends = [float(way(curve).delta(epsilon)) for curve in (coarse[1], close[1], close[0], coarse[0])]
            assert ends[1] <= ends[2] * (1.0 + 1e-12)
            assert ends[0] <= ends[2] * (1.0 + 1e-12)
            assert ends[1] <= ends[3] * (1.0 + 1e-12)


def test_epsilon_of_a_million_steps() -> None:
    """Grids knew it within a few per cent."""
    above, below = random_allocation(1.0, 10**6)
    ends = [epsilon_at_delta(curve, 1e-6) for curve in (below, above)]
    assert ends[0] * (1.0 - 1e-12) <= ends[1] <= ends[0] * (1.0 + 2e-6)
    nearly = math.erf(math.sqrt(math.expm1(1.0) / 10**6 / 8.0))
    assert advantage(above) == pytest.approx(nearly, rel=1e-3, abs=0)


def test_a_test_of_rates_known_within_bounds() -> None:
    """Rates that are known badly, deltas well: the test has a part of its power."""
    (put, absent, present), none = TRUTH, np.zeros(len(AT))
    sums = Sums(AT, put, none, absent, none + 0.005, present, none + 0.005)
    below, exact = (
        allocated_transform.tests_below(one, 1e-13) for one in (sums, Sums(AT, put, none, absent, none, present, none))
    )
    for epsilon in np.log(AT[2:]):
        assert 0.5 * exact.delta(epsilon) < below.delta(epsilon) < exact.delta(epsilon)
    assert below.delta(0.0) == pytest.approx(
        put[2] * (1.0 - absent[2] - 0.005) / (1.0 - absent[2] + 0.005), rel=1e-6, abs=0
    )
