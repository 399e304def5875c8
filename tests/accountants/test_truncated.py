"""Poisson batches that are cut: all draws enumerated, both orders; Google's example; what some data set attains.

Theorems: RETICENT:truncated-dominance.
"""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.accountants import compose
from reticent.accountants.compose import both_directions
from reticent.accountants.steps import Step
from reticent.mechanisms import DPSGD, Ledger, Neighbouring
from reticent.pairs import AntipodalGaussianPair, GaussianPair, MixedPair
from reticent.risk import advantage, epsilon_at_delta
from reticent.samplers import TruncatedPoisson
from reticent.samplers.truncated_poisson import saturation

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT


def cut(noise: float, rate: float, records: int, most: int, steps: int = 1) -> DPSGD:
    return DPSGD(noise, rate, steps, sampler=TruncatedPoisson(most), dataset_size=records)


def law_of_sums(gradients: list[float], rate: float, most: int) -> dict[float, float]:
    """Every outcome of every coin, and every part that may be kept."""
    law: dict[float, float] = {}
    for coins in product((0, 1), repeat=len(gradients)):
        drawn = [g for g, coin in zip(gradients, coins, strict=True) if coin]
        mass = math.prod(rate if coin else 1.0 - rate for coin in coins)
        kept = list(combinations(drawn, min(most, len(drawn))))
        for batch in kept:
            law[round(sum(batch), 9)] = law.get(round(sum(batch), 9), 0.0) + mass / len(kept)
    return law


def divergence(first: dict[float, float], second: dict[float, float], noise: float, slope: float) -> float:
    x = np.linspace(-20.0, 20.0, 8001)
    one, other = (sum(w * norm.pdf(x, at, noise) for at, w in law.items()) for law in (first, second))
    return float(np.sum(np.maximum(one - slope * other, 0.0)) * (x[1] - x[0]))


class TestDominance:
    @pytest.mark.parametrize(("records", "most", "rate"), [(4, 2, 0.5), (5, 1, 0.3), (5, 3, 0.8), (3, 2, 0.2)])
    def test_all_draws(self, records: int, most: int, rate: float) -> None:
        """Targets and others of every sign and of length 0."""
        run = cut(0.8, rate, records, most)
        curves = {relation: compose(run, relation).pessimistic for relation in Neighbouring}
        rng = np.random.default_rng(3)
        worst = 0.0
        for _ in range(6):
            others = rng.choice([-1.0, -0.5, 0.0, 1.0], size=records - 1).tolist()
            target = float(rng.choice([-1.0, 1.0]))
            without, with_it = law_of_sums(others, rate, most), law_of_sums([*others, target], rate, most)
            zeroed, turned = law_of_sums([*others, 0.0], rate, most), law_of_sums([*others, -target], rate, most)
            for epsilon in (0.0, 0.7, 2.0):
                slope = math.exp(epsilon)
                for relation, other in ((ADD, without), (ZERO, zeroed), (REPLACE, turned)):
                    bound = float(curves[relation].delta(epsilon)) + 1e-9
                    seen = max(divergence(a, b, 0.8, slope) for a, b in ((with_it, other), (other, with_it)))
                    assert seen <= bound
                    worst = max(worst, seen / bound)
        assert worst > 0.5

    def test_the_probabilities(self) -> None:
        share, kept = saturation(0.3, 40, 15)
        others = np.arange(40)
        weights = binom.pmf(others, 39, 0.3)
        assert share == pytest.approx(weights[15:].sum(), rel=1e-12, abs=0)
        full = (0.3 * weights * 15 / (others + 1))[15:].sum() / weights[15:].sum()
        assert kept == pytest.approx(full, rel=1e-12, abs=0)
        assert saturation(0.3, 40, 40) == (0.0, 0.3)
        assert saturation(1.0, 40, 10) == (1.0, 0.25)

    def test_lower_ends_are_attained(self) -> None:
        """Gradients 0 but for the target's."""
        run = cut(1.0, 0.5, 4, 2)
        law, nothing = law_of_sums([0.0, 0.0, 0.0, 1.0], 0.5, 2), {0.0: 1.0}
        seen = divergence(law, nothing, 1.0, 1.0)
        assert advantage(compose(run, ADD).optimistic) == pytest.approx(seen, rel=1e-5, abs=0)

    def test_a_cut_that_is_never_made(self) -> None:
        plain = DPSGD(1.0, 0.1, 10)
        assert cut(1.0, 0.1, 100, 100, 10).parts_under(ADD)[0].pair == plain.parts_under(ADD)[0].pair

    @pytest.mark.slow
    def test_a_cut_that_is_seldom_made(self) -> None:
        plain = DPSGD(1.0, 0.1, 10)
        loose, tight = (advantage(compose(cut(1.0, 0.1, 100, most, 10), ADD).pessimistic) for most in (30, 11))
        assert advantage(compose(plain, ADD).pessimistic) == pytest.approx(loose, rel=1e-3, abs=0)
        assert tight > 1.05 * loose

    def test_without_noise(self) -> None:
        run = cut(0.0, 0.5, 4, 2)
        assert advantage(compose(run, ADD).pessimistic) == pytest.approx(0.5 * 0.5 + 0.5 * 0.3125, rel=1e-12, abs=0)


def test_the_example_of_dp_accounting() -> None:
    """Three steps of one data set and two of another: its own, looser pair has its own value, 17.904330."""
    theirs = []
    for records, steps in ((4, 3), (3, 2)):
        share, rate = saturation(0.5, records, 2)
        pair = MixedPair(GaussianPair(1.0, 0.5, 1.0), AntipodalGaussianPair(0.5, rate), share)
        theirs.append(Step(pair, steps))
    found = both_directions(tuple(theirs), 0.0, False)
    low, high = (epsilon_at_delta(curve, 1e-6) for curve in (found.optimistic, found.pessimistic))
    assert low < 17.904330 < high
    assert high - low < 2e-5
    ours = compose(Ledger((cut(1.0, 0.5, 4, 2, 3), cut(1.0, 0.5, 3, 2, 2))), ADD).pessimistic
    assert epsilon_at_delta(ours, 1e-6) == pytest.approx(16.45651, abs=2e-5)
