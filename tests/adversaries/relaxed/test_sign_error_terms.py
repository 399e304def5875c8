"""Error terms of the Fourier route of the common sign, each in a regime where it matters: set to zero it is missed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import copies, kernel, noise, transform
from reticent.adversaries.relaxed.sign.step import FoldedNodes, TiltedLaw


@pytest.fixture(scope="module")
def plan():
    return transform.plan_of([(noise.GaussianSign(0.2, 1.0 / 6.0), 100)], 0.05)


@pytest.fixture(scope="module")
def thresholds(plan):
    return np.linspace(-plan.low, plan.high, 41)


@pytest.fixture(scope="module")
def summed(plan):
    return transform.frequencies_of(plan, 0.0)


@pytest.fixture(scope="module")
def truth(summed, thresholds):
    return sums(summed, thresholds)[0]


def sums(summed, thresholds):
    """P(log LR > l) without any bound on errors, and the transform that it is made of."""
    mellin = transform.transform_of(summed)
    return 1.0 + transform.inverted(mellin, thresholds, 0), mellin


class TestTransform:
    """One plan with fewer frequencies, a shorter box or a far line, against the plan that is used."""

    @pytest.mark.parametrize(("kind", "wider_tau", "wider_w"), [(0, 1, 3), (1, 6, 1), (2, 20, 1)])
    def test_copies_are_paid_for(self, plan, summed, thresholds, truth, kind, wider_tau, wider_w):
        dtau, dw = kernel.commensurate(wider_tau * plan.dtau, wider_w * plan.dw)
        taus, omegas = (math.ceil(end / step) + 1 for end, step in zip(summed.box, (dtau, dw), strict=True))
        coarse = replace(plan, dtau=dtau, dw=dw)
        found, mellin = sums(transform.Frequencies(coarse, 0.0, np.full(taus, omegas), summed.rest), thresholds)
        error, bounds = mellin.error(thresholds), coarse.copies()
        assert np.all(found + copies.most_of(bounds, thresholds) + error >= truth - 1e-13)
        without = [*bounds[:kind], *bounds[kind + 1 :]]
        assert np.any(found + copies.most_of(without, thresholds) + error < truth - 1e-9)

    def test_copies_are_in_the_false_positive_rates(self, monkeypatch):
        found = transform.bounds([(noise.GaussianSign(0.2, 1.0 / 6.0), 100)], 0.05)
        before, _ = found.tests()
        monkeypatch.setattr(copies, "most_of", lambda kinds, at, most=copies.most_of: most(kinds, at) + 1e-3)
        after, _ = found.tests()
        assert np.all(after >= np.minimum(before + 0.99e-3, 1.0))

    @pytest.mark.parametrize(("fewer_tau", "fewer_w"), [(4, 1), (1, 2)])
    def test_frequencies_left_out_are_paid_for(self, plan, summed, thresholds, truth, fewer_tau, fewer_w):
        counts = -(-summed.counts[: len(summed.counts) // fewer_tau] // fewer_w)
        short = summed._replace(counts=counts, rest=summed.rest + left_out(plan, summed.counts, counts))
        found, mellin = sums(short, thresholds)
        off = np.abs(found - truth)
        assert np.all(off <= mellin.error(thresholds))
        assert np.any(off > replace(mellin, summed=short._replace(rest=0.0)).error(thresholds))

    def test_rounding_is_paid_for(self, plan, summed, thresholds, truth):
        """Twelve times as far from the axis the terms are much larger than their sum."""
        found, mellin = sums(summed._replace(plan=replace(plan, line=12.0 * plan.line)), thresholds)
        off = np.abs(found - truth)
        assert np.all(off <= mellin.error(thresholds))
        assert np.any(off > replace(mellin, rounding=0.0).error(thresholds))

    @pytest.mark.parametrize("kind", [(noise.GaussianSign(1e-3, 2.0), 10_000), (noise.GaussianSign(0.01, 0.9), 1000)])
    def test_nodes_follow_the_phases_of_all_frequencies(self, kind):
        """A fifth of the distance between nodes changes nothing; twice the distance is seen."""
        plan, (step, _), box = transform.plan_of([kind], 0.004), kind, (31.0, 31.0)
        spacing, places = transform.node_spacing(plan, step, box, 40.0), [np.linspace(0.0, x, 7) for x in box]
        at = [TiltedLaw.of(FoldedNodes.of(step, h * spacing), plan.line, 0.0).moduli(*places) for h in (0.2, 1.0, 2.0)]
        assert np.max(np.abs(at[1] - at[0])) < 1e-14
        assert np.max(np.abs(at[2] - at[0])) > 1e-9


def left_out(plan, counts, fewer):
    """The proven bounds at the frequencies that only the longer rows have, summed point by point."""
    bound, total = transform.outside_bound(plan, 0.0), 0.0
    for j, count in enumerate(counts):
        w = np.arange(fewer[j] if j < len(fewer) else 0, count) * plan.dw
        row = bound.logs[np.searchsorted(bound.t, j * plan.dtau)]
        total += np.exp(row[np.searchsorted(bound.w, w)]).sum()
    return total * plan.dtau * plan.dw


class TestOutsideBound:
    """What is proven of frequencies, against direct quadrature at random ones."""

    @pytest.mark.parametrize(
        "kinds", [[(6.0, 0.2, 100)], [(0.5, 1e-3, 10_000)], [(1.0, 0.3, 40)], [(6.0, 0.2, 60), (2.0, 0.05, 80)]]
    )
    @pytest.mark.parametrize("lift", [0.0, 1.0])
    def test_no_frequency_exceeds_its_cell(self, kinds, lift):
        """Of steps that differ the bound holds for the product of all transforms."""
        steps = [(noise.GaussianSign(rate, 1.0 / multiplier), count) for multiplier, rate, count in kinds]
        plan = transform.plan_of(steps, 0.01)
        bound, laws = transform.outside_bound(plan, lift), []
        for step, count in steps:
            y = np.linspace(-12.0, 12.0 + 2.0 * step.slope, 20_001)
            a, b = noise.odd_and_even(step, y)
            law = np.exp(-0.5 * y * y + plan.line * b + lift * (a + b))
            laws.append((count, law / law.sum(), a, b))
        rng, shares = np.random.default_rng(5), []
        for _ in range(100):
            ends = zip(plan.ends, (bound.t[-1], bound.w[-1]), strict=True)
            t, w = (min(each) * 10.0 ** rng.uniform(-5.0, 0.0) for each in ends)
            log, sign = bound.logs[np.searchsorted(bound.t, t), np.searchsorted(bound.w, w)], rng.choice([-1, 1])
            size = sum(
                count * math.log(abs(law @ np.exp(1j * (t * b + sign * w * a))) + 1e-12) for count, law, a, b in laws
            )
            assert size <= log + 1e-6
            if -40.0 < log < -3.0:
                shares.append(log / size)
        assert len(shares) > 5
        assert np.median(shares) > 0.6  # where it matters it says most of what there is

    def test_what_is_left_out_adds_up_to_no_more_than_is_said(self):
        plan = transform.plan_of([(noise.GaussianSign(0.01, 1.0), 1000)], 0.05)
        bound, found = transform.outside_bound(plan, 0.0), transform.frequencies_of(plan, 0.0)
        t, w = (np.arange(0.0, end, step) for end, step in zip(plan.ends, (plan.dtau, plan.dw), strict=True))
        logs = bound.logs[np.searchsorted(bound.t, t)][:, np.searchsorted(bound.w, w)]
        counts = np.append(found.counts, np.zeros(max(len(t) - len(found.counts), 0), dtype=int))[: len(t)]
        skipped = np.arange(len(w)) >= counts[:, None]
        assert np.exp(logs[skipped]).sum() * plan.dtau * plan.dw <= found.rest - plan.beyond


def test_a_bound_that_cannot_be_computed_bounds_nothing() -> None:
    """A Chernoff factor e^x was cut at e^600. Times what is less than any float it was 0; the truth may be anything."""
    nothing = [copies.Bound(1.0, 0.0, 0.0)]
    found = copies.most_of([nothing, nothing, nothing], np.array([1.0, 599.0, 1e4]))
    np.testing.assert_array_equal(found, [0.0, 0.0, np.inf])


@pytest.mark.parametrize(("theta", "width"), [(0.3, 0.5), (2.0, 3.0), (40.0, 0.2), (40.0, 1.5), (2000.0, 1e-3)])
def test_copies_at_any_place_add_no_more_than_is_counted(theta, width):
    places = np.linspace(0.0, width, 201)[:, None] + width * np.arange(-3000, 3001)
    most = float(np.exp(-theta * (np.logaddexp(places, -places) - math.log(2.0))).sum(axis=1).max())
    assert most <= copies.copies_at_most(theta, width) <= 2.5 * most + 1e-9


@pytest.mark.parametrize(("noise_multiplier", "rate", "steps"), [(8.33, 6e-3, 308), (18.4, 4.4e-4, 11439)])
def test_little_is_enclosed_from_below_as_well(noise_multiplier, rate, steps):
    """Copies far down in B were counted 2^theta times: the lower end was 0."""
    sides = transform.bounds(((noise.GaussianSign(rate, 1.0 / noise_multiplier), steps),), 0.004).sides()
    assert sides.below.delta(0.0) == pytest.approx(sides.above.delta(0.0), rel=1e-4, abs=0)
