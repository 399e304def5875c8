"""Both routes against references, against each other, and with bugs planted in each."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent.accountants import transform
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.transform import SpectralComposition
from reticent.kernel.accountants import Composed
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "composition.json").read_text())
REFERENCE = GOLDEN["reference"]
ALPHAS = np.array([1e-9, 1e-4, 1e-3, 1e-2, 0.1, 0.5])
IDS = [row["name"] for row in REFERENCE]


def run(row: dict) -> DPSGD:
    return DPSGD(row["noise_multiplier"], row["sample_rate"], row["steps"])


def sampled(row: dict, antipodal: bool = False) -> SpectralComposition:
    return SpectralComposition((SampledStep(row["noise_multiplier"], row["sample_rate"], antipodal, row["steps"]),))


@pytest.mark.parametrize("row", REFERENCE, ids=IDS)
def test_the_five_references(row):
    """They carry ten digits, in the add direction; the symmetrised curve is the lower of both."""
    composed = Composed(run(row), Neighbouring.ADD_REMOVE)
    bracket = composed.bracket
    lower, upper = composed.advantage()
    assert lower - 1e-10 <= row["advantage"] <= upper + 1e-10
    assert upper - lower <= 1e-9
    low, high = (polygon.beta(np.array(GOLDEN["alphas"])) for polygon in sampled(row).polygons())
    assert np.all(low - 1e-7 <= row["betas"])
    assert np.all(row["betas"] <= high + 1e-7)
    assert np.max(high - low) <= 1e-6
    both = [curve.beta(ALPHAS) for curve in (bracket.pessimistic, bracket.optimistic)]
    removed = [polygon.reversed.beta(ALPHAS) for polygon in sampled(row).polygons()]
    assert np.all(both[0] <= both[1])
    assert np.max(both[1] - both[0]) <= 1e-6
    assert np.all(np.mean(both, axis=0)[1:5] <= np.minimum(row["betas"], np.mean(removed, axis=0)[1:5]) + 1e-6)
    least, most = (epsilon_at_delta(curve, 1e-5) for curve in (bracket.optimistic, bracket.pessimistic))
    assert least - 2e-6 <= row["epsilon_at_1e-5"] <= most + 2e-6


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


@pytest.mark.parametrize("neighbouring", [Neighbouring.ADD_REMOVE, Neighbouring.REPLACE])
@pytest.mark.parametrize(
    "row", [*(pytest.param(row, marks=pytest.mark.slow) for row in REFERENCE[:4]), REFERENCE[4]], ids=IDS
)
def test_delta_keeps_relative_accuracy_down_to_1e_minus_12(row, neighbouring):
    composed = Composed(run(row), neighbouring)
    for delta, width in ((1e-5, 1e-7), (1e-8, 1e-5), (1e-10, 1e-4), (1e-12, 1e-3)):
        epsilon = epsilon_at_delta(composed.bracket.pessimistic, delta)
        lower, upper = composed.delta(epsilon)
        assert lower > 0.0
        assert upper / lower - 1.0 <= width
        assert lower <= delta * (1.0 + 1e-9)
        # The polygon that the epsilon was read off is wider: what matters is that the epsilon holds.
        assert upper <= delta * (1.0 + 1e-6)


# Planted bugs: each must break an assertion that holds without it.


C2 = REFERENCE[1]


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
