"""Error terms of the two routes of the common sign, each in a regime where it matters: set to zero it is missed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import copies, kernel, lattice, noise, transform


@pytest.fixture(scope="module")
def plan():
    return transform._plan([(noise.GaussianSign(0.2, 1.0 / 6.0), 100)], 0.05)


@pytest.fixture(scope="module")
def thresholds(plan):
    return np.linspace(-plan.low, plan.high, 41)


@pytest.fixture(scope="module")
def truth(plan, thresholds):
    return sums(plan, thresholds)[0]


def sums(plan, thresholds):
    """P(log LR > l) without any bound on errors, and the bound on the size of the terms."""
    absent, _, size = transform._transforms(plan)
    s = plan.points()
    kernel = np.exp(-np.outer(thresholds, s)) * (plan.dtau / math.pi)
    kernel[:, 0] *= 0.5
    return 1.0 + (kernel @ (absent / s)).real, size


class TestTransform:
    """One plan with fewer frequencies, a shorter box or a far line, against the plan that is used."""

    @pytest.mark.parametrize(("part", "wider_tau", "wider_w"), [("beside", 1, 3), ("above", 6, 1), ("below", 20, 1)])
    def test_copies_are_paid_for(self, plan, thresholds, truth, part, wider_tau, wider_w):
        dtau, dw = kernel.commensurate(wider_tau * plan.dtau, wider_w * plan.dw)
        taus, omegas = (math.ceil(end / step) + 1 for end, step in zip(plan.box, (dtau, dw), strict=True))
        coarse = replace(plan, dtau=dtau, dw=dw, taus=taus, omegas=omegas)
        found, size = sums(coarse, thresholds)
        error, bounds = transform._error(coarse, size, thresholds), coarse.copies()
        assert np.all(found + bounds.most(thresholds) + error >= truth - 1e-13)
        without = bounds._replace(**{part: [copies._Bound(0.0, 0.0, 0.0)]})
        assert np.any(found + without.most(thresholds) + error < truth - 1e-9)

    def test_copies_are_in_the_false_positive_rates(self, plan, thresholds):
        transforms, bounds = transform._transforms(plan), plan.copies()
        before = transform._invert(plan, transforms, bounds, thresholds)[1]
        more = bounds._replace(above=[copies._Bound(0.0, 0.0, 1e-3)])
        after = transform._invert(plan, transforms, more, thresholds)[1]
        assert np.all(after >= np.minimum(before + 0.99e-3, 1.0))

    @pytest.mark.parametrize(("fewer_tau", "fewer_w"), [(4, 1), (1, 2)])
    def test_frequencies_left_out_are_paid_for(self, plan, thresholds, truth, fewer_tau, fewer_w):
        short = replace(plan, taus=plan.taus // fewer_tau, omegas=plan.omegas // fewer_w)
        short = replace(short, outside=max(bound.largest(short.box) for bound in transform._outside(short)))
        found, size = sums(short, thresholds)
        off = np.abs(found - truth)
        assert np.all(off <= transform._error(short, size, thresholds))
        assert np.any(off > transform._error(replace(short, outside=0.0), size, thresholds))

    def test_rounding_is_paid_for(self, plan, thresholds, truth):
        """Five times as far from the axis the terms are much larger than their sum."""
        far = replace(plan, line=5.0 * plan.line)
        found, size = sums(far, thresholds)
        off = np.abs(found - truth)
        assert np.all(off <= transform._error(far, size, thresholds))
        assert np.any(off > transform._error(far, 0.0, thresholds))


def common_sign_delta(noise, rate, steps, epsilons):
    """delta by brute force over a coarse product rule: every combination of nodes, all steps."""
    y, weight = np.polynomial.hermite_e.hermegauss(41)
    weight = weight / math.sqrt(2 * math.pi)
    up, down = (np.log1p(rate * np.expm1(s * y / noise - 0.5 / noise**2)) for s in (1.0, -1.0))
    total = np.zeros(len(epsilons))
    for nodes in itertools.product(range(41), repeat=steps):
        chosen = list(nodes)
        ratio = 0.5 * (math.exp(up[chosen].sum()) + math.exp(down[chosen].sum()))
        total += weight[chosen].prod() * np.maximum(ratio - np.exp(epsilons), 0.0)
    return total


class TestLattice:
    def test_a_short_reach_is_paid_for(self, monkeypatch):
        """Observations past 2.5 standard deviations left out: the safe side covers them, and the tests' errors do."""
        monkeypatch.setattr(noise, "_REACH", 2.5)
        values = lattice.enclose([(noise.GaussianSign(0.5, 1.0), 2)], 200, 2**15)
        truth = common_sign_delta(1.0, 0.5, 2, values.thresholds[values.thresholds >= 0.0])
        add = values.delta[values.thresholds >= 0.0]
        assert np.all(add >= truth - 1e-4)
        attained = 1.0 - values.fpr - values.fnr  # of legal tests: at most the largest advantage
        assert attained.max() <= truth[0] + 1e-4
        lost = 2 * noise.GaussianSign(0.5, 1.0).lost
        assert add[-1] >= lost > 0.01

    def test_rounding_grows_with_steps(self, monkeypatch):
        """Far out nothing but stated errors is left."""
        far = []
        for error in (lattice._ROUNDING, lattice._ROUNDING + 1e-7):
            monkeypatch.setattr(lattice, "_ROUNDING", error)
            far.append(lattice.enclose([(noise.GaussianSign(0.1, 1.0), 5)], 100, 2**14))
        assert np.all(far[1].fpr >= np.minimum(far[0].fpr + 4e-7, 1.0))
        near = np.searchsorted(far[0].thresholds, 0.0)
        assert far[1].delta[near] - far[0].delta[near] >= 4e-7

    def test_errors_of_the_powers_reach_every_bound(self, monkeypatch):
        """Rounding and wrap-around as ``_power`` states them: on delta in both directions and on both errors."""
        power, found = lattice.power, []
        for more in (0.0, 1e-6):
            monkeypatch.setattr(lattice, "power", lambda *a, m=more: (lambda mass, off: (mass, off + m))(*power(*a)))
            found.append(lattice.enclose([(noise.GaussianSign(0.1, 1.0), 5)], 100, 2**14))
        before, after = found
        for name in ("delta", "fpr", "fnr"):
            assert np.all(getattr(after, name) >= np.minimum(getattr(before, name) + 0.99e-6, 1.0)), name


def test_a_bound_that_cannot_be_computed_bounds_nothing() -> None:
    """A Chernoff factor e^x was cut at e^600. Times what is less than any float it was 0; the truth may be anything."""
    bound = copies._Bound(1.0, 0.0, 0.0)
    np.testing.assert_array_equal(copies._least([bound], np.array([1.0, 599.0, 1e4])), [0.0, 0.0, np.inf])
    assert copies._copies(2000.0, 1e-3) == np.inf
