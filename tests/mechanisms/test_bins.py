"""Balls in bins with correlated noise: exact likelihood ratios of small runs lie between both ends.

Theorem: RETICENT:binned-allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import Relaxed
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import MatrixMechanism
from reticent.samplers import AllocatedOnce
from tests.mechanisms.strategies import rows
from tests.pairs.allocation import coarse_grids

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
EPSILONS = np.array([0.0, 0.3, 1.0])
Contributes = Callable[[int, np.ndarray], np.ndarray]
"""What the record adds in a step, given all that was released before: shape (samples, dimension), length at most 1."""


@pytest.fixture(scope="module", autouse=True)
def _grids() -> Iterator[None]:
    with coarse_grids():
        yield


def constant(step: int, past: np.ndarray) -> np.ndarray:
    return np.eye(past.shape[-1])[:1].repeat(len(past), axis=0)


def turning(step: int, past: np.ndarray) -> np.ndarray:
    """Along what the last two steps released."""
    last = past[:, -2:].sum(axis=1) + 1e-9
    return last / np.linalg.norm(last, axis=1, keepdims=True)


def against(step: int, past: np.ndarray) -> np.ndarray:
    """One way or the other, by the sign of all that was released."""
    return np.where(past.sum(axis=1)[:, :1] > 0.0, -1.0, 1.0) * constant(step, past)


def waiting(step: int, past: np.ndarray) -> np.ndarray:
    """Nothing more once releases were high."""
    return (past.sum(axis=1)[:, :1] < 1.0) * constant(step, past)


def told(c: np.ndarray, noise: float, bins: int, adds: Contributes, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """What an attacker learns from all rows of C X + Z, and standard errors; at each epsilon, the worse order.

    Rows are drawn without the record. The likelihood ratio is the mean over the bins, of which each has its own sum.
    """
    steps, rng = len(c), np.random.default_rng(11)
    rows = noise * rng.standard_normal((samples, steps, 2))
    log, added = np.zeros((samples, bins)), np.zeros((samples, steps, 2))
    for t in range(steps):
        added[:, t] = adds(t, rows[:, :t]) if t else constant(t, rows)
        for i in range(bins):
            at = np.arange(i, t + 1, bins)
            moved = np.einsum("s,nsd->nd", c[t, at], added[:, at])
            log[:, i] += np.sum(rows[:, t] * moved, axis=1) / noise**2 - np.sum(moved**2, axis=1) / (2.0 * noise**2)
    ratio = np.exp(log).mean(axis=1)[:, None]
    lost = np.stack([np.maximum(ratio - np.exp(EPSILONS), 0.0), np.maximum(1.0 - np.exp(EPSILONS) * ratio, 0.0)])
    means, errors = lost.mean(axis=1), lost.std(axis=1) / np.sqrt(samples)
    worse = np.argmax(means, axis=0)
    return means[worse, range(len(EPSILONS))], errors[worse, range(len(EPSILONS))]


def banded(coefficients: list[float], steps: int) -> np.ndarray:
    return sum(x * np.eye(steps, k=-d) for d, x in enumerate(coefficients))


def by_chance(seed: int, steps: int, bands: int, low: float) -> np.ndarray:
    return np.tril(np.triu(np.random.default_rng(seed).uniform(low, 1.0, (steps, steps)), 1 - bands)) + np.eye(steps)


CASES: dict[str, tuple[np.ndarray, float, int]] = {
    "equal numbers": (banded([1.0, 1.0], 6), 1.3, 6),
    "two turns": (banded([1.0, 0.5], 6), 1.5, 3),
    "two turns, one of them cut": (banded([1.0, 0.8], 6), 1.5, 4),
    "bands that do not divide the bins": (banded([1.0, 0.9], 5), 1.2, 5),
    "three bands": (banded([1.0, 0.7, 0.4], 6), 1.6, 6),
    "no Toeplitz matrix": (by_chance(1, 6, 2, 0.2), 1.8, 4),
    "both signs": (by_chance(2, 6, 2, -1.0), 1.8, 4),
    "independent noise": (np.eye(6), 1.0, 3),
}


@pytest.mark.parametrize("adds", [constant, turning, against, waiting], ids=lambda adds: adds.__name__)
@pytest.mark.parametrize("name", CASES)
def test_no_contributions_show_more_than_the_upper_end(name: str, adds: Contributes) -> None:
    """Those of a constant direction show more than the lower end, which is 0 where a number is less than 0."""
    c, noise, bins = CASES[name]
    found = compose(MatrixMechanism(noise, len(c), rows(c), bins=bins), ADD)
    seen, errors = told(c, noise, bins, adds, 20_000)
    below, above = found.optimistic.delta(EPSILONS), found.pessimistic.delta(EPSILONS)
    assert np.all(seen <= above + 4.0 * errors)
    assert np.all(below <= above)
    if adds is constant:
        assert np.all(below <= seen + 4.0 * errors)
        assert above[0] < 1.5 * seen[0] + 4.0 * errors[0] or name in ("both signs", "two turns", "three bands")
        assert (below[0] > 0.0) == (name != "both signs")


def test_as_many_bins_as_are_apart_are_needed() -> None:
    """All bins would claim less than is true."""
    c, noise, bins = CASES["equal numbers"]
    seen, errors = told(c, noise, bins, constant, 20_000)
    norm = np.sqrt(2.0)
    all_bins = compose(DPSGD(noise / norm, 1.0 / bins, bins, sampler=AllocatedOnce(bins)), ADD)
    assert seen[0] > all_bins.pessimistic.delta(0.0) + 10.0 * errors[0]


def test_the_page_says_what_is_lost() -> None:
    """Ten bands, 100 bins, ten turns: what is proven, what is true, and where the attacker knows the bin."""
    run = MatrixMechanism(4.0, 1000, "square-root", bands=10, bins=100)
    known = MatrixMechanism(4.0, 1000, "square-root", bands=10, participations=10, separation=100)
    first = np.append(1.0, np.cumprod(1.0 - 0.5 / np.arange(1, 10)))
    means = np.zeros((100, 1000))
    for i in range(100):
        for s in range(i, 1000, 100):
            means[i, s : s + 10] += first[: 1000 - s]
    gram = means @ means.T / 16.0
    drawn = np.random.default_rng(5).multivariate_normal(np.zeros(100), gram, 20_000, method="cholesky")
    lost = np.maximum(1.0 - np.exp(drawn - np.diag(gram) / 2.0).mean(axis=1), 0.0)
    assert lost.mean() == pytest.approx(0.1235, rel=0.02, abs=0)
    assert rt.advantage(rt.assess(run, adversary="worst-case")) == pytest.approx(0.1638, rel=1e-3, abs=0)
    assert rt.advantage(rt.assess(known, adversary="worst-case")) == pytest.approx(0.4032, rel=1e-3, abs=0)


def test_independent_noise_is_one_assignment_for_all_epochs() -> None:
    for relation in Neighbouring:
        mine = compose(MatrixMechanism(1.5, 12, bins=4), relation).pessimistic
        other = compose(DPSGD(1.5, 0.25, 12, sampler=AllocatedOnce(4)), relation).pessimistic
        assert mine.delta(EPSILONS) == pytest.approx(other.delta(EPSILONS), rel=1e-9, abs=0)


def test_weaker_attackers_gain_nothing_and_draws_are_conditions() -> None:
    run = MatrixMechanism(2.0, 40, "1,0.5", bins=20)
    relaxed, worst, replaced = (
        who.assess(run, relation).measure(rt.advantage).upper
        for who, relation in ((Relaxed(), ADD), (WorstCase(), ADD), (WorstCase(), REPLACE))
    )
    assert relaxed == pytest.approx(worst, rel=1e-9, abs=0)
    assert worst < replaced
    keys = {one.key for one in run.conditions}
    assert {"kept-allocation-draws", "hidden-draws"} <= keys
    assert not {"participation-pattern", "kept-places"} & keys
    assert "drawn-anew" in {one.key for one in rt.Ledger((run, run)).conditions}
    assert "20 batches" in str(run.notes[0])


def test_what_is_not_proven_is_refused_in_one_line() -> None:
    for wrong, line in (
        ({"strategy": "1,0.5,0.2", "bins": 2}, "bins must be at least 3, the bands"),
        ({"strategy": "bisr", "bands": 2, "bins": 4}, "bins must be at least 8, the bands"),
        ({"strategy": "square-root", "bins": 4}, "bins must be at least 8, the bands"),
        ({"bins": 4, "participations": 2}, "participations must be left out"),
        ({"bins": 4, "separation": 4}, "separation must be left out where bins are given"),
        ({"bins": 4, "sample_rate": 0.5}, "sample_rate must be left out where bins are given"),
        ({"bins": 0}, "bins must be"),
    ):
        with pytest.raises(ParameterError, match=line):
            MatrixMechanism(**{"noise_multiplier": 1.0, "steps": 8, **wrong})
