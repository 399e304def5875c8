"""Both routes against references, against each other, and with bugs planted in each."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from reticent.accountants import Composed, transform
from reticent.accountants import lattice_sums as lattice
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.transform import SpectralComposition
from reticent.curves import GaussianTradeOff, LaplaceTradeOff, Subsampled
from reticent.curves.enclosure import Enclosure
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.pairs import AntipodalGaussianPair, LossMasses
from reticent.risk import epsilon_at_delta
from tests.accountants.one_kind import latticed

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "composition.json").read_text())
REFERENCE = GOLDEN["reference"]
ALPHAS = np.array([1e-9, 1e-4, 1e-3, 1e-2, 0.1, 0.5])
IDS = [row["name"] for row in REFERENCE]


def run(row: dict) -> DPSGD:
    return DPSGD(row["noise_multiplier"], row["sample_rate"], row["steps"])


def sampled(row: dict, antipodal: bool = False) -> SpectralComposition:
    return SpectralComposition((SampledStep(row["noise_multiplier"], row["sample_rate"], antipodal, row["steps"]),))


def curve(row: dict) -> Subsampled:
    return Subsampled(GaussianTradeOff(1.0 / row["noise_multiplier"]), row["sample_rate"])


@pytest.mark.parametrize("row", REFERENCE, ids=IDS)
def test_advantage_of_the_five_references(row):
    lower, upper = Composed(run(row), Neighbouring.ADD_REMOVE).advantage()
    assert lower - 1e-9 <= row["advantage"] <= upper + 1e-9  # references carry ten digits
    assert upper - lower <= 1e-9


@pytest.mark.parametrize(
    "row", GOLDEN["exact"], ids=lambda r: f"{r['relation']}-{r['sample_rate']:.4g}-{r['noise_multiplier']}-{r['steps']}"
)
def test_bayes_security_of_the_exact_vectors(row):
    composed = Composed(run(row), Neighbouring(row["relation"]))
    lower, upper = composed.advantage()
    truth = 1.0 - row["bayes_security"]
    assert lower - 2e-9 <= truth <= upper + 2e-9
    if row["steps"] > 10:
        assert upper - lower <= 1e-8


@pytest.mark.parametrize("row", REFERENCE[:2], ids=IDS[:2])
def test_curve_is_within_a_millionth(row):
    bracket = Composed(run(row), Neighbouring.ADD_REMOVE).bracket
    low, high = bracket.pessimistic.beta(ALPHAS), bracket.optimistic.beta(ALPHAS)
    assert np.all(high >= low)
    assert np.max(high - low) <= 1e-6
    middle = 0.5 * (low + high)[1:5]
    remove = 0.5 * sum(p.reversed.beta(ALPHAS) for p in sampled(row).polygons())[1:5]
    # The symmetrised curve is the lower of both directions; the reference is the add direction.
    assert np.all(middle <= np.minimum(row["betas"], remove) + 1e-6)


@pytest.mark.parametrize("row", REFERENCE, ids=IDS)
def test_betas_of_the_add_direction(row):
    low, high = (polygon.beta(np.array(GOLDEN["alphas"])) for polygon in sampled(row).polygons())
    assert np.all(low - 1e-7 <= row["betas"])
    assert np.all(row["betas"] <= high + 1e-7)
    assert np.max(high - low) <= 1e-6


@pytest.mark.parametrize("row", REFERENCE, ids=IDS)
def test_epsilon_of_the_five_references(row):
    bracket = Composed(run(row), Neighbouring.ADD_REMOVE).bracket
    low, high = (epsilon_at_delta(curve, 1e-5) for curve in (bracket.optimistic, bracket.pessimistic))
    assert low - 2e-6 <= row["epsilon_at_1e-5"] <= high + 2e-6


@pytest.mark.parametrize("neighbouring", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
@pytest.mark.parametrize(
    "row", [*(pytest.param(row, marks=pytest.mark.slow) for row in REFERENCE[:4]), REFERENCE[4]], ids=IDS
)
def test_delta_keeps_relative_accuracy_down_to_1e_minus_12(row, neighbouring):
    composed = Composed(run(row), neighbouring)
    for delta in (1e-5, 1e-8, 1e-10, 1e-12):
        epsilon = epsilon_at_delta(composed.bracket.pessimistic, delta)
        lower, upper = composed.delta(epsilon)
        assert lower > 0.0
        assert upper / lower - 1.0 <= 1e-6
        assert lower <= delta * (1.0 + 1e-9)
        # The polygon that the epsilon was read off is wider: what matters is that the epsilon holds.
        assert upper <= delta * (1.0 + 1e-6)


@pytest.mark.parametrize(
    "row", [*(pytest.param(row, marks=pytest.mark.slow) for row in REFERENCE[:2]), REFERENCE[3]], ids=["c1", "c2", "c4"]
)
@pytest.mark.parametrize("antipodal", [False, True])
def test_routes_agree(row, antipodal):
    pair = AntipodalGaussianPair(row["noise_multiplier"], row["sample_rate"]) if antipodal else curve(row)
    low, high = latticed(pair, row["steps"], width=1e-5, points=2**17)
    fine_low, fine_high = sampled(row, antipodal).polygons()
    for direction in (lambda c: c, lambda c: c.reversed):
        betas = [direction(c).beta(ALPHAS) for c in (low, fine_low, fine_high, high)]
        assert np.all(betas[0] <= betas[2] + 1e-13)
        assert np.all(betas[1] <= betas[3] + 1e-13)
    epsilons = np.array([0.0, 0.1, 0.5])
    assert np.all(low.delta(epsilons) >= fine_high.delta(epsilons) - 1e-13)
    assert np.all(high.delta(epsilons) <= fine_low.delta(epsilons) + 1e-13)


def test_tail_rates_down_to_1e_minus_9():
    """TPR at FPR 1e-9 of a plain Gaussian, which both routes must reproduce."""
    exact = GaussianTradeOff(0.9)
    low, high = SpectralComposition((), plain=0.9).polygons()
    alphas = np.array([1e-9, 1e-7, 1e-5])
    assert np.all(high.power(alphas) <= exact.power(alphas) * (1 + 1e-12))
    assert np.all(exact.power(alphas) <= low.power(alphas) * (1 + 1e-12))
    np.testing.assert_allclose(high.power(alphas), exact.power(alphas), rtol=2e-5)


def test_laplace_by_brute_force():
    """Four Laplace releases against the exact law of a four-fold discretised experiment: atoms counted."""
    mu, count = 0.4, 4
    low, high = latticed(LaplaceTradeOff(mu), count, mu)
    # The largest loss is count * mu with Q-probability 2^-count: delta just below it is that mass times the gap.
    edge = count * mu
    epsilon = edge - 1e-6
    exact = 0.5**count * -np.expm1(-1e-6)
    assert high.delta(epsilon) <= exact * (1 + 1e-3) + 1e-12
    assert low.delta(epsilon) >= exact * (1 - 1e-3)
    assert low.delta(edge + 1e-3) <= 1e-8


def test_binomial_disclosure_is_exact():
    """Randomised response as a curve: n-fold composition is binomial, an oracle in closed form."""
    flip, count = 0.3, 20

    class Response(GaussianTradeOff):
        def errors(self, log_ratio):
            ratio = np.asarray(log_ratio, dtype=float)
            jump = np.log((1 - flip) / flip)
            fpr = np.where(ratio < -jump, 1.0, np.where(ratio < jump, flip, 0.0))
            tpr = np.where(ratio < -jump, 1.0, np.where(ratio < jump, 1 - flip, 0.0))
            with np.errstate(divide="ignore"):
                return lattice.LogErrors(np.log(fpr), np.log1p(-fpr), np.log1p(-tpr), np.log(tpr))

    low, high = latticed(Response(1.0), count, float(np.log(0.7 / 0.3)))
    k = np.arange(count + 1)
    p, q = binom.pmf(k, count, flip), binom.pmf(k, count, 1 - flip)
    for epsilon in (0.0, 1.0, 3.0):
        exact = np.maximum(q - np.exp(epsilon) * p, 0.0).sum()
        assert high.delta(epsilon) - 1e-12 <= exact <= low.delta(epsilon) + 1e-12
        assert low.delta(epsilon) - high.delta(epsilon) <= 1e-6


# Planted bugs: each must break an assertion that holds without it.


def encloses(pair, truth: float) -> bool:
    low, high = pair
    return bool(high.delta(0.0) <= truth <= low.delta(0.0))


C2 = REFERENCE[1]


def test_forgotten_count_is_caught():
    assert encloses(latticed(curve(C2), C2["steps"], points=2**16), C2["advantage"])
    assert not encloses(latticed(curve(C2), 1, points=2**16), C2["advantage"])
    once = SpectralComposition((replace(sampled(C2).steps[0], count=500),))
    assert not once.delta(0.0)[0] <= C2["advantage"] <= once.delta(0.0)[1]


def test_swapped_direction_is_caught():
    right, swapped = sampled(C2).polygons(), [p.reversed for p in sampled(C2).polygons()]
    alpha, beta = GOLDEN["alphas"][3], C2["betas"][3]
    assert right[0].beta(alpha) - 1e-7 <= beta <= right[1].beta(alpha) + 1e-7
    assert not swapped[0].beta(alpha) - 1e-7 <= beta <= swapped[1].beta(alpha) + 1e-7


def test_dropped_tail_is_caught(monkeypatch):
    """Losses above 1 are thrown away instead of counted: the other route's lower curve no longer fits below."""
    honest = lattice.cells_of

    def careless(*described):
        cells, spacing = honest(*described), described[2]
        kept = int(np.sum(cells.ends[:-1] * spacing < 1.0))
        return replace(cells, ends=cells.ends[: kept + 1], losses=cells.losses.between(0, kept))

    monkeypatch.setattr(lattice, "cells_of", careless)
    monkeypatch.setattr(LossMasses, "above", (0.0, 0.0))
    wrong, _ = latticed(curve(C2), C2["steps"], points=2**16)
    _, below = sampled(C2).polygons()
    assert "contradicted" in Enclosure.checked(wrong, below).notes[0]
    monkeypatch.undo()
    right, _ = latticed(curve(C2), C2["steps"], points=2**16)
    assert Enclosure.checked(right, below).notes == ()


def coarse_contour(factor: float, cut: float = 1.0):
    """The contour at c = 1/2 with a spacing ``factor`` times too coarse and only ``cut`` of its frequencies."""
    composition = sampled(C2)
    contour = composition._contour(0.5, 0.0, 0.0)
    spacing = contour.spacing * factor
    frequencies = spacing * np.arange(int(cut * contour.frequencies[-1] / spacing))
    ((law, count),) = composition.plan.laws(1.5, 60.0)
    values = (1.0 + law.transform(0.5, frequencies).excess) ** count
    decay = law.decay(0.5).log_bound(frequencies[-1:] + 0.5 * spacing)
    return replace(
        contour,
        spacing=spacing,
        frequencies=frequencies,
        values=values / values[0],
        errors=np.full(len(frequencies), 1e-12),
        beyond=float(np.exp(count * decay[0])),
    )


def test_aliases_are_covered_and_matter(monkeypatch):
    contour = coarse_contour(4.0)
    value = contour.delta(np.zeros(1))
    assert value.lower[0] - 1e-10 <= C2["advantage"] <= value.upper[0] + 1e-10
    assert value.upper[0] - C2["advantage"] > 1e-9
    monkeypatch.setattr(transform.Contour, "right", lambda *_: 0.0)
    monkeypatch.setattr(transform.Contour, "left", lambda *_: 0.0)
    bare = contour.delta(np.zeros(1))
    assert not bare.lower[0] - 1e-10 <= C2["advantage"] <= bare.upper[0] + 1e-10


def test_truncation_is_covered_and_matters():
    contour = coarse_contour(1.0, cut=0.08)
    value = contour.delta(np.zeros(1))
    assert value.lower[0] <= C2["advantage"] <= value.upper[0]
    bare = replace(contour, beyond=0.0).delta(np.zeros(1))
    assert not bare.lower[0] - 1e-10 <= C2["advantage"] <= bare.upper[0] + 1e-10
