"""Whoever runs the training reacts to every release, and gains no more than the claim: simulated trainings.

RETICENT:kept-allocation, FELDMAN2025:Theorem 3.1, SMITH2022:Theorem 1, DENISOV2022:Theorem 2.1,
DONG2022:Proposition 2.5, RETICENT:public-coin. A training is a function that draws the releases without or with the
target and returns its own likelihood ratio of both; the library takes no part in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import FilteredGaussian, Guarantee, MatrixMechanism, OneOf
from reticent.samplers import AllocatedOnce, RandomAllocation

pytestmark = pytest.mark.usefixtures("coarse")
GAMES, EPSILONS = 20_000, (0.0, 0.3, 1.0)
Training = Callable[[np.random.Generator, bool], np.ndarray]


def side(seen: np.ndarray) -> np.ndarray:
    """Where the target pushes next: +1 or -1, by what was released."""
    return np.where(seen > 0.2, 1.0, -1.0)


def ratio(y: np.ndarray, shift: np.ndarray | float, noise: float) -> np.ndarray:
    """Of N(shift, noise^2) to N(0, noise^2) at ``y``."""
    return np.exp((y * shift - 0.5 * np.square(shift)) / noise**2)


def allocated(bins: int, epochs: int, noise: float, *, kept: bool, release: float | None = None) -> Training:
    """One hidden step of each epoch; a release of all records after each first step, with noise ``release``."""

    def play(rng: np.random.Generator, present: bool) -> np.ndarray:
        whole, weights, seen = np.ones(GAMES), np.ones((bins, GAMES)), np.zeros(GAMES)
        place = rng.integers(bins, size=GAMES)
        for epoch in range(epochs):
            if epoch and not kept:
                whole, weights = whole * weights.mean(axis=0), np.ones((bins, GAMES))
                place = rng.integers(bins, size=GAMES)
            for step in range(bins):
                push = side(seen)
                y = noise * rng.normal(size=GAMES) + present * (place == step) * push
                weights[step] *= ratio(y, push, noise)
                seen = seen + y
                if release and step == 0:
                    y = release * rng.normal(size=GAMES) + present * side(seen)
                    whole, seen = whole * ratio(y, side(seen), release), seen + y
        return whole * weights.mean(axis=0)

    return play


def filtered(budget: float, rate: float, noise: float) -> Training:
    """A bold analyst spends more where the target shows itself, with a sampled step after each release."""

    def play(rng: np.random.Generator, present: bool) -> np.ndarray:
        found, left = np.ones(GAMES), np.full(GAMES, budget)
        for turn in range(3):
            spent = np.where(found > 1.1, left, 0.2 * left) if turn < 2 else left
            mu, left = np.sqrt(spent), left - spent
            y = rng.normal(size=GAMES) + present * mu
            push = side(y)
            z = noise * rng.normal(size=GAMES) + present * (rng.random(GAMES) < rate) * push
            found = found * ratio(y, mu, 1.0) * (1.0 - rate + rate * ratio(z, push, noise))
        return found

    return play


def correlated(strategy: np.ndarray, turns: tuple[int, ...], noise: float) -> Training:
    """Contributions to steps ``turns`` whose side follows from the rows released before."""

    def play(rng: np.random.Generator, present: bool) -> np.ndarray:
        shift, seen, found = np.zeros((len(strategy), GAMES)), np.zeros(GAMES), np.ones(GAMES)
        for step in range(len(strategy)):
            if step in turns:
                shift += np.outer(strategy[:, step], side(seen))
            y = noise * rng.normal(size=GAMES) + present * shift[step]
            found, seen = found * ratio(y, shift[step], noise), seen + y
        return found

    return play


def guaranteed(epsilon: float, releases: int) -> Training:
    """A flipped answer; where the first spoke for the target, the next question is put the other way round."""

    def play(rng: np.random.Generator, present: bool) -> np.ndarray:
        found, right = np.ones(GAMES), 1.0 / (1.0 + math.exp(-epsilon))
        for _ in range(releases):
            turned = found > 1.0
            yes = (rng.random(GAMES) < right) == (present ^ turned)
            found = found * np.exp(np.where(yes ^ turned, epsilon, -epsilon))
        return found

    return play


def one_of(noises: tuple[float, float], weight: float) -> Training:
    """A public coin draws the noise."""

    def play(rng: np.random.Generator, present: bool) -> np.ndarray:
        noise = np.where(rng.random(GAMES) < weight, *noises)
        return ratio(noise * rng.normal(size=GAMES) + present, 1.0, noise)

    return play


SIGNED = np.array([[1.0, 0, 0, 0], [-0.6, 1.0, 0, 0], [0.3, -0.6, 1.0, 0], [-0.2, 0.3, -0.6, 1.0]])
ALLOCATED = DPSGD(0.9, 1 / 3, 6, sampler=RandomAllocation())
ONCE = DPSGD(0.9, 1 / 3, 6, sampler=AllocatedOnce())
HALVES = DPSGD(0.9, 0.5, 2, sampler=RandomAllocation())
TRAININGS: dict[str, tuple[Training, Mechanism, float]] = {
    "allocation": (allocated(3, 2, 0.9, kept=False), ALLOCATED, 0.95),
    "kept allocation": (allocated(3, 2, 0.9, kept=True), ONCE, 0.95),
    "a release in an epoch": (allocated(2, 1, 0.9, kept=False, release=1.5), Ledger((HALVES, Gaussian(1.5))), 0.95),
    "filter and sampled steps": (filtered(0.5, 0.3, 0.9), Ledger((FilteredGaussian(0.5), DPSGD(0.9, 0.3, 3))), 0.95),
    "correlated noise": (
        correlated(SIGNED, (0, 2), 2.0),
        MatrixMechanism(2.0, 4, "[[1],[-0.6,1],[0.3,-0.6,1],[-0.2,0.3,-0.6,1]]", participations=2, separation=2),
        0.8,
    ),
    "guarantees": (guaranteed(0.5, 3), Guarantee(0.5, 0.0, 3), 0.95),
    "a drawn setting": (one_of((1.0, 3.0), 0.25), OneOf((Gaussian(1.0), Gaussian(3.0)), (1, 3)), 0.95),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_no_reaction_gains_more_than_is_claimed(name: str) -> None:
    """Delta in both directions within four standard errors; and most of the claimed advantage is reached."""
    training, mechanism, reached = TRAININGS[name]
    rng = np.random.default_rng(len(name))
    absent, present = training(rng, False), training(rng, True)
    claimed = WorstCase().assess(mechanism, Neighbouring.ADD_REMOVE).curve.delta(np.array(EPSILONS))
    for epsilon, most in zip(EPSILONS, claimed, strict=True):
        bound = math.exp(epsilon)
        for gains in (np.maximum(1.0 - bound / present, 0.0), np.maximum(1.0 - bound * absent, 0.0)):
            assert gains.mean() <= most + 4.0 * gains.std() / math.sqrt(GAMES)
    assert np.maximum(1.0 - 1.0 / present, 0.0).mean() > reached * claimed[0]
