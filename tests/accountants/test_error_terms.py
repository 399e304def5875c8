"""Each error term in a regime where it matters: without it the assertion fails (``make mutants`` shows that).

Theorems: RETICENT:composition-enclosure.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from reticent.accountants import cut_moments
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.transform import transform_of
from reticent.kernel.accountants import affinity, bounds, powers
from reticent.kernel.accountants import lattice_sums as lattice
from reticent.kernel.accountants.bounds import loudest_step
from reticent.kernel.accountants.compose import compose
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.powers import GridStep, Tilted
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.curves.sums import roundings, running_roundings
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.kernel.risk import epsilon_at_delta
from reticent.pairs import advantage_alone, sampled_gaussian
from reticent.pairs.sampled_gaussian import SampledGaussian
from tests.accountants.one_kind import latticed, steps
from tests.conftest import some
from tests.pairs.test_sampled_gaussian import missed

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def sampled_nodes(noise, rate, antipodal, reach=14.0, count=60_001):
    """Observations, P-masses by the trapezoid rule and losses, far finer than anything under test."""
    x = np.linspace(-1.0 - reach * noise, 1.0 + reach * noise, count)

    def density(mean):
        return np.exp(-0.5 * ((x - mean) / noise) ** 2) / (noise * math.sqrt(2 * math.pi))

    absent = (1 - rate) * density(0.0) + rate * density(-1.0) if antipodal else density(0.0)
    present = (1 - rate) * density(0.0) + rate * density(1.0)
    return x, absent * (x[1] - x[0]), np.log(present) - np.log(absent)


def test_power_bounds_its_rounding():
    """Against exact sums: integer weights and their convolutions are exact in double precision."""
    weights = np.array([3.0, 5.0, 1.0, 7.0])
    exact = np.ones(1)
    for _ in range(12):
        exact = np.convolve(exact, weights)
    part = GridStep((np.arange(4),), weights / 16.0, np.zeros(4), 12)
    found, rounding = powers.power([part], (64,), (0,))
    off = float(np.abs(found[: len(exact)] - exact / 16.0**12).sum() + found[len(exact) :].sum())
    assert 0.0 < off <= rounding < 1e-11


def test_powers_of_many_copies_keep_their_phases():
    """A million copies turn a phase 5e5 times; the law is binomial."""
    part = GridStep((np.arange(2),), np.array([0.7, 0.3]), np.zeros(2), 10**6)
    found, rounding = powers.power([part], (2**15,), (3 * 10**5 - 2**14,))
    off = float(np.abs(found - binom.pmf(3 * 10**5 + np.arange(-(2**14), 2**14), 10**6, 0.3)).sum())
    assert 0.0 < off <= rounding < 1e-7


def test_powers_along_two_axes_bound_their_rounding():
    """Each axis is cyclic by itself. Against exact sums of integer weights: rows of a polynomial in two variables."""
    weights = np.array([[3.0, 0.0, 2.0], [1.0, 5.0, 5.0]])
    exact, (rows, columns) = np.ones((1, 1)), (10, 24)
    for _ in range(8):
        grown = np.zeros(np.add(exact.shape, (1, 2)))
        for (i, j), weight in np.ndenumerate(weights):
            grown[i : i + exact.shape[0], j : j + exact.shape[1]] += weight * exact
        exact = grown
    index = np.indices(weights.shape).reshape(2, -1) - np.array([[0], [2]])
    part = GridStep((index[0], index[1]), weights.ravel() / 16.0, np.zeros(6), 8)
    found, rounding = powers.power([part], (rows, columns), (0, -16))
    wanted = np.zeros((rows, columns))
    wanted[: exact.shape[0], : exact.shape[1]] = exact / 16.0**8
    assert 0.0 < float(np.abs(found - wanted.ravel()).sum()) <= rounding < 1e-11


def test_a_long_sum_over_frequencies_counts_its_roundings():
    """Counted while the terms are added one after the other: half a unit in the last place of each partial sum."""
    few = Ledger((DPSGD(2.0, 0.05, 4), DPSGD(1.5, 0.05, 4), DPSGD(1.0, 0.1, 4)))
    contour = transform_of(steps_of(few, ADD)[0])._contour(0.5, 0.0, 0.3)
    contour = replace(contour, errors=np.zeros(len(contour.frequencies)))  # what the terms themselves are off
    assert len(contour.frequencies) > 1000
    total, stated = contour._sum(np.array([0.1]), np.ones(len(contour.frequencies)), 0.0)
    exponents = contour.c + 1j * contour.frequencies
    terms = contour.values * np.exp(-0.1j * contour.frequencies) / (exponents * (exponents - 1.0))
    terms = terms.real * contour.spacing / np.pi
    terms[0] *= 0.5
    partial = np.cumsum(terms)
    counted = 2.0**-53 * float(np.abs(partial).sum())
    assert abs(float(total[0]) - math.fsum(terms)) <= counted <= stated
    assert stated <= 1e-10 * abs(float(total[0]))


@pytest.mark.parametrize("antipodal", [False, True])
def test_sums_over_nodes_count_their_roundings(antipodal, monkeypatch):
    """As many as a sum in blocks can have, times the moduli of all terms; ``test_sums`` counts them by machine."""
    law = SampledGaussian(0.5, 0.01, antipodal, 1000, reach=60.0, largest=3.0)
    nodes, c = law.nodes, 3.0
    terms, whole = np.expm1(c * nodes.loss), c * np.expm1(nodes.loss)
    stated, turning = law.real(np.array([c])), law.turning(nodes.tilted(0.5))
    off = float(stated.excess[0]) - math.fsum((terms - whole) * nodes.weight)
    monkeypatch.setattr(sampled_gaussian, "roundings", lambda terms, parts=1: 0)
    none = replace(law)
    counted = 2.0**-53 * roundings(len(nodes.x)) * float((np.abs(terms) + np.abs(whole)) @ nodes.weight)
    assert len(nodes.x) > 100
    assert abs(off) <= counted
    assert float((stated.rest - none.real(np.array([c])).rest)[0]) == pytest.approx(counted, rel=1e-3, abs=0)
    moduli = 2.0 * float(np.abs(nodes.loss) @ nodes.tilted(0.5))  # of u, v and uv, at each unit of frequency
    counted = math.sqrt(2.0) * 2.0**-53 * roundings(len(nodes.x), parts=2) * moduli
    assert turning - none.turning(nodes.tilted(0.5)) == pytest.approx(counted, rel=1e-3, abs=0)


def test_sums_over_a_lattice_count_their_roundings():
    """The tail sums of 50,000 masses, against exact ones: a delta is no smaller, and not much larger."""
    rng = np.random.default_rng(7)
    losses, mass = 1e-5 * np.arange(50_000), rng.uniform(0.0, 1e-4, 50_000)
    found = lattice.positive_parts(losses, mass, mass * np.exp(-losses))
    for k in (0, 1, 20_000, 49_000):
        at = losses[k - 1] if k else 0.0
        exact = math.fsum(m * -math.expm1(at - x) for x, m in zip(losses[k:].tolist(), mass[k:].tolist(), strict=True))
        tail = math.fsum(mass[k:].tolist())
        assert exact + 2.0**-53 * running_roundings(50_000) * tail <= found[k] <= exact + 2e-13 * tail


def test_mass_outside_a_window_is_bounded():
    """40 fair coins: what exceeds 28 wraps around, and is counted."""
    part = Tilted(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 40)
    truth = sum(math.comb(40, k) for k in range(29, 41)) / 2**40
    assert truth <= powers.beyond([part], 28.0, 0.5, 1.0, 10.0) <= 20 * truth
    mirrored = Tilted(np.array([-1.0, 0.0]), np.array([0.5, 0.5]), 40)
    assert truth <= powers.beyond([mirrored], -28.0, -0.5, 1.0, 10.0) <= 20 * truth


def test_one_step_of_a_lattice_is_known_to_its_stated_error():
    """The delta of one step, from the four rates as the lattice takes it, against integer arithmetic of 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    thresholds = np.linspace(0.01, 3.0, 300)
    rates = GaussianTradeOff(1.0).errors(thresholds)
    with mpmath.workdps(40):
        truth = [mpmath.ncdf(0.5 - e) - mpmath.exp(e) * mpmath.ncdf(-0.5 - e) for e in thresholds.tolist()]
        own = (np.exp(rates.tpr) - np.exp(thresholds) * np.exp(rates.fpr)).tolist()
        worst = float(max(abs(a - b) for a, b in zip(own, truth, strict=True)))
    assert 0.0 < worst <= lattice.STEP_ERROR < 1e-12


def test_every_step_adds_its_error_to_a_lattice(monkeypatch):
    """Far beyond the largest loss nothing but stated errors is left: they count once for each step."""
    far = []
    for error in (lattice.STEP_ERROR, lattice.STEP_ERROR + 1e-7):
        monkeypatch.setattr(lattice, "STEP_ERROR", error)
        above, _ = latticed(Subsampled(GaussianTradeOff(0.5), 0.1), 40, points=2**13)
        far.append(float(above.delta(30.0)))
    assert far[1] - far[0] == pytest.approx(40e-7, rel=1e-3, abs=0)


@pytest.mark.parametrize("antipodal", [False, True])
def test_nodes_left_out_are_paid_for(antipodal):
    """Nodes that end after 3 to 4 standard deviations, much closer together than the rule needs."""
    law = SampledGaussian(0.8, 0.3, antipodal, 1, reach=150.0, largest=0.5, digits=4.0)
    off, error = missed(law, 0.5, np.array([0.0, 1.0, 2.0]))
    assert np.all(off <= error)
    outside = law.left_out([0.5, 0.0, 1.0]) @ [4.0, 1.5, 1.5]
    assert off[0] > error[0] - outside  # the rule and rounding do not cover it


def certified(antipodal: bool) -> tuple[float, float]:
    return advantage_alone.enclose_advantage(GaussianMixture(1.0, (0.3,), antipodal=antipodal), 30)


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize(
    ("settings", "least", "most"),
    [
        # few digits and many frequencies: images of the payoff are far above every other error
        ({"DIGITS": 3.0, "DEVIATIONS": 80.0, "MOST_FREQUENCIES": 10**5}, 1e-4, math.inf),
        # sines at the heavy nodes only: the sum is off by more than every other error
        ({"NEGLIGIBLE": 1e-4, "MANY_SINES": 0}, 1e-6, 0.1),
        # a rule that is off by 1e-7 widens thirty steps by about thirty times that
        ({"rule": 1e-7}, 5e-7, 1e-4),
    ],
    ids=["alias", "sines", "rule"],
)
def test_an_advantage_alone_pays_for_each_error(antipodal, settings, least, most, monkeypatch):
    exact, rule = certified(antipodal), SampledGaussian.rule
    for name, value in settings.items():
        if name == "rule":
            monkeypatch.setattr(SampledGaussian, name, lambda *given: rule(*given) + 1e-7)
        else:
            monkeypatch.setattr(advantage_alone, name, value)
    lower, upper = certified(antipodal)
    assert lower <= exact[0] <= exact[1] <= upper
    assert least < upper - lower < most
    if "NEGLIGIBLE" in settings:
        assert abs(0.5 * (lower + upper) - exact[0]) > 1e-6
    if "DIGITS" in settings:  # the sum's error is on both sides, and all but nothing
        assert upper - exact[1] < 1e-3 * (upper - lower)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(("exponent", "reach"), [(5.0, 9.5), (36.0, 1.5)])
def test_the_radius_of_an_affinity_is_needed(relation, exponent, reach, monkeypatch):
    """A coarse rule, or one that is cut early: its enclosure holds, and its middle is off by more than rounding."""
    fine = affinity.minus_log_affinity(np.array(0.7), np.array(0.2), relation)
    monkeypatch.setattr(affinity, "EXPONENT", exponent)
    monkeypatch.setattr(affinity, "REACH", reach)
    coarse = affinity.minus_log_affinity(np.array(0.7), np.array(0.2), relation)
    assert float(coarse.lower) <= float(fine.lower) <= float(fine.upper) <= float(coarse.upper)
    assert abs(0.5 * float(coarse.lower + coarse.upper) - float(fine.upper)) > 1e-9


@pytest.mark.parametrize("count", [1, 20])
def test_what_the_grid_of_cheap_bounds_leaves_out_is_paid_for(count):
    """A grid that leaves out a hundredth of the mass: delta and the tests' errors keep on their sides."""
    truth = GaussianTradeOff(math.sqrt(count))
    cheap = bounds.CheapBounds(steps(GaussianTradeOff(1.0), count), math.log(0.01))
    epsilons = np.linspace(0.0, 12.0, 60)
    for curve in cheap.above():
        assert np.all(curve.delta(epsilons) >= truth.delta(epsilons) * (1 - 1e-9))
    below = cheap.below()
    assert np.all(below.delta(epsilons) <= truth.delta(epsilons) * (1 + 1e-9))
    grid, _ = cheap._grids[0]
    assert grid.q_above > 1e-3 / count


def test_a_test_of_cheap_bounds_misses_what_its_grid_leaves_out():
    """It does not reject there: no point but "reject always" has fewer false negatives."""
    cheap = bounds.CheapBounds(steps(GaussianTradeOff(6.0), 1), math.log(0.01))
    fpr, _, fnr, _ = cheap.below().vertices
    grid, _ = cheap._grids[0]
    assert np.count_nonzero(fpr < -0.01) > 10
    assert np.exp(fnr[fpr < -0.01]).min() >= grid.q_above + grid.q_below > 1e-3


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize(
    ("noise", "rate", "exponent", "log_tail", "cells", "near"),
    [
        *((1.0, 1e-3, exponent, log_tail, 3201, 0.05) for exponent, log_tail in ((-40, -9), (2, -30), (9, -30))),
        *((1.0, 1e-3, exponent, -30, 800, 0.3) for exponent in (2, 9)),  # as few as many kinds of steps get
        (0.4, 0.3, -3, -3, 40_001, 0.05),
    ],
)
def test_moments_without_rare_large_losses(antipodal, noise, rate, exponent, log_tail, cells, near, monkeypatch):
    """Upper bounds, close, and what is left out is about as probable as was asked for."""
    monkeypatch.setattr(cut_moments, "CELLS", cells)
    step = SampledStep(noise, rate, antipodal, 50)
    logs, lost = cut_moments.cut_moments(step, np.array([float(exponent)]), log_tail)
    _, mass, loss = sampled_nodes(noise, rate, antipodal)
    present = mass * np.exp(loss)
    above = np.cumsum(present[::-1])[::-1]
    cut = int(np.argmax(50 * above <= lost / (2.0 if antipodal else 1.0)))
    kept = loss < loss[cut]  # the last node would count twice what it stands for
    if antipodal:
        kept &= loss > -loss[cut]
    truth = 50 * math.log(float(mass[kept] @ np.exp(exponent * loss[kept])))
    assert truth <= logs[0] <= truth + near * abs(truth) + 50 * abs(exponent) * lost
    about = math.exp(log_tail) / lost - (0.5 if antipodal else 1.0)  # what was asked for
    assert 0.0 <= about < 0.1 or cells == 800


def test_loudest_step_keeps_rates_below_the_smallest_double_gap():
    """With 1 - alpha rounded to 1 it claimed false positive rate 0 at rates that attain 1e-20."""
    step = Subsampled(GaussianTradeOff(3.0), 1e-3)
    curve = loudest_step(steps(step, 10))
    for epsilon in (5.0, 15.0, 25.0):
        assert float(curve.delta(epsilon)) <= 10 * float(step.delta(epsilon)) * (1 + 1e-9)
    assert float(curve.delta(25.0)) > 0.0


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize(
    ("noise", "rate", "count"), some([(1.1, 0.01, 1000), (6.0, 1e-5, 50), (1.0, 0.5, 4), (0.3, 0.001, 100)], 0, 1)
)
def test_cheap_bounds_are_within_a_factor_where_it_matters(noise, rate, count, relation):
    """That they enclose is a law of routes."""
    run = DPSGD(noise, rate, count)
    deep = epsilon_at_delta(bounds.CheapBounds(steps_of(run, relation)[0]).above()[0], 1e-12)
    assert deep < 2.0 * max(epsilon_at_delta(compose(run, relation).pessimistic, 1e-12), 1e-9)
