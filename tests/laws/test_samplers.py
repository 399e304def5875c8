"""Laws of samplers, over the list; parts dominate all draws of a few records, enumerated; batches follow these draws.

Theorems: RETICENT:fixed-size-dominance, RETICENT:truncated-dominance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from scipy import stats

from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import SAMPLERS, Poisson, Sampler
from reticent.kernel.samplers.base import Uniform
from reticent.samplers import (
    AllocatedOnce,
    BlockAllocation,
    Cyclic,
    FixedSize,
    RandomAllocation,
    Shuffled,
    TruncatedPoisson,
)
from reticent.testing import laws
from reticent.training.randomness import SeededSource, Stream, SystemSource
from tests.conftest import some
from tests.laws.draws import Draws, allocated, anew, chosen, coins, cut, of_steps, orders, sums
from tests.laws.experiments import Experiment
from tests.laws.leaves import full, run_of

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
EPSILONS = (0.0, 0.4, 1.5)


@pytest.mark.parametrize("kind", SAMPLERS.values(), ids=SAMPLERS)
def test_laws(kind: type[Sampler]) -> None:
    laws.sampler(full(kind), run_of(full(kind)))


def kept(epoch: Draws) -> Draws:
    """The same steps in a second epoch."""
    return [(np.vstack([mask, mask]), chance) for mask, chance in epoch]


CASES: dict[str, tuple[DPSGD, int, Callable[[int], Draws]]] = {
    "poisson": (DPSGD(0.8, 0.3, 1), 3, lambda n: coins(n, 0.3)),
    "poisson twice": (DPSGD(0.9, 0.3, 2), 2, lambda n: anew(coins(n, 0.3), 2)),
    "three draws": (DPSGD(1.0, 0.2, 1, sampler=Poisson(3)), 2, lambda n: coins(n, 0.2, 3)),
    "one of three": (DPSGD(0.9, 1 / 3, 1, sampler=FixedSize()), 3, lambda n: chosen(n, 1)),
    "two of five": (DPSGD(0.9, 0.4, 1, sampler=FixedSize()), 5, lambda n: chosen(n, 2)),
    "two of four, twice": (DPSGD(1.2, 0.5, 2, sampler=FixedSize()), 4, lambda n: anew(chosen(n, 2), 2)),
    "cut at two": (DPSGD(0.8, 0.5, 1, sampler=TruncatedPoisson(2), dataset_size=4), 4, lambda n: cut(n, 0.5, 2)),
    "cut at three": (DPSGD(0.8, 0.8, 1, sampler=TruncatedPoisson(3), dataset_size=5), 5, lambda n: cut(n, 0.8, 3)),
    "cut at one": (DPSGD(0.8, 0.3, 1, sampler=TruncatedPoisson(1), dataset_size=5), 5, lambda n: cut(n, 0.3, 1)),
    "two steps": (DPSGD(0.9, 0.5, 2, sampler=RandomAllocation()), 3, lambda n: allocated(n, [2])),
    "three steps": (DPSGD(0.9, 1 / 3, 3, sampler=RandomAllocation()), 2, lambda n: allocated(n, [3])),
    "two of four": (DPSGD(1.2, 0.25, 4, sampler=RandomAllocation(4, uses_per_epoch=2)), 2, lambda n: of_steps(n, 4, 2)),
    "blocks": (DPSGD(0.9, 1 / 3, 3, sampler=BlockAllocation(3, uses_per_epoch=2)), 2, lambda n: allocated(n, [2, 1])),
    "kept": (DPSGD(1.5, 0.5, 4, sampler=AllocatedOnce()), 2, lambda n: kept(allocated(n, [2]))),
    "shuffled": (DPSGD(1.0, 0.5, 2, sampler=Shuffled(2)), 4, lambda n: orders(n, 2)),
    "in order": (DPSGD(1.0, 0.5, 2, sampler=Cyclic(2)), 4, lambda n: [(orders(n, 2)[0][0], 1.0)]),
}
"""A run, of how many records, and how so many are drawn."""
CELLS, NEAR = {1: 4001, 2: 401, 3: 61, 4: 23}, {1: 1e-5, 2: 2e-3, 3: 5e-3, 4: 3e-2}


def data_sets(rng: np.random.Generator, others: int) -> list[np.ndarray]:
    """Gradients of the other records: all alike, opposite to the target's, none, and by chance."""
    drawn = [rng.choice([-1.0, -0.5, 0.0, 1.0], others) for _ in range(2)]
    return [np.full(others, -1.0), np.zeros(others), *drawn]


def neighbours(run: DPSGD, draws: Callable[[int], Draws], rest: np.ndarray, relation: Neighbouring, target: float):
    """The laws of all sums without the target and with it; where places are public, the others keep theirs."""
    records = len(rest) + 1
    present = sums(draws(records), np.append(rest, target))
    if relation is ADD and not run.sampler.public_places:
        return sums(draws(records - 1), rest), present
    return sums(draws(records), np.append(rest, -target if relation is REPLACE else 0.0)), present


ASKED = [(name, relation) for relation in (ADD, REPLACE) for name in CASES]
ASKED += [(name, ZERO) for name in ("one of three", "two of five", "cut at two", "shuffled")]
LATER = [(name, ZERO) for name in CASES if (name, ZERO) not in ASKED]
"""Where no other record takes the place of one that counts as nothing, that is its removal."""


@pytest.mark.parametrize(("name", "relation"), some(ASKED + LATER, *range(len(ASKED))))
def test_no_data_set_shows_more_than_the_parts(name: str, relation: Neighbouring) -> None:
    """Each order of both data sets; and the lower end is reached by some of them, where it claims anything."""
    run, records, draws = CASES[name]
    found, most = compose(run, relation), np.zeros(len(EPSILONS))
    near = NEAR[run.steps]
    for rest in data_sets(np.random.default_rng(7), records - 1):
        for target in (1.0, -0.6):
            both = neighbours(run, draws, rest, relation, target)
            reach = 6.0 if run.steps > 2 else 10.0
            seen = Experiment.noisy(*both, run.noise_multiplier, CELLS[run.steps], reach)
            most = np.maximum(most, [seen.worse(epsilon) for epsilon in EPSILONS])
    assert np.all(most <= found.pessimistic.delta(EPSILONS) * (1.0 + near) + 1e-6)
    assert np.all(found.optimistic.delta(EPSILONS) <= most * (1.0 + near) + 1e-5)
    assert most[0] > 0.5 * found.pessimistic.delta(0.0) or name in ("shuffled", "kept", "three draws")


def test_opposite_gradients_attain_what_is_said_of_batches_of_fixed_size() -> None:
    run, _, draws = CASES["two of five"]
    seen = Experiment.noisy(*neighbours(run, draws, np.full(4, -1.0), ADD, 1.0), run.noise_multiplier)
    for epsilon in EPSILONS:
        assert compose(run, ADD).pessimistic.delta(epsilon) == pytest.approx(seen.worse(epsilon), rel=1e-5, abs=0)


@pytest.mark.parametrize("records", [2, 3])
def test_records_of_a_person_have_one_direction_at_worst(records: int) -> None:
    """Random vectors in the plane, both relations, against the pair; parallel ones attain it."""
    rng, noise, rate = np.random.default_rng(records), 1.1, 0.4
    x = np.linspace(-12.0, 12.0, 401)
    found = {
        relation: compose(DPSGD(noise, rate, 1, records_per_user=records), relation) for relation in (ADD, REPLACE)
    }

    def law(vectors: np.ndarray) -> np.ndarray:
        total = np.zeros((len(x), len(x)))
        for mask, chance in coins(records, rate):
            mean = mask[0] @ vectors
            total += chance * np.multiply.outer(*(stats.norm.pdf(x, m, noise) for m in mean))
        return total.ravel() * (x[1] - x[0]) ** 2

    angles, sizes = rng.uniform(0.0, 2.0 * np.pi, (2, records)), rng.uniform(0.3, 1.0, (2, records))
    one, other = (s[:, None] * np.stack([np.cos(a), np.sin(a)], axis=1) for s, a in zip(sizes, angles, strict=True))
    aligned = np.tile([1.0, 0.0], (records, 1))
    cases = [(ADD, 0.0 * one, one), (REPLACE, other, one), (ADD, 0.0 * one, aligned), (REPLACE, -aligned, aligned)]
    for relation, first, second in cases:
        seen = Experiment(law(first), law(second))
        for epsilon in EPSILONS:
            most = float(found[relation].pessimistic.delta(epsilon))
            assert seen.worse(epsilon) <= most * (1.0 + 1e-3) + 1e-6
            assert second is not aligned or seen.worse(epsilon) == pytest.approx(most, rel=1e-3, abs=1e-6)


FOLLOWED: list[tuple[Sampler, int | None, Draws]] = [
    (Poisson(), None, coins(3, 0.3)),
    (FixedSize(), 2, chosen(5, 2)),
    (RandomAllocation(), 2, allocated(3, [2])),
    (RandomAllocation(uses_per_epoch=2), 1, of_steps(3, 3, 2)),
    (BlockAllocation(uses_per_epoch=2), 1, allocated(3, [2, 1])),
    (Shuffled(), 2, orders(4, 2)),
    (Cyclic(), 2, [(orders(4, 2)[0][0], 1.0)]),
]
"""Each sampler whose batches can be drawn, their size, and one draw."""


SOURCES: dict[str, Uniform] = {
    "drawn": laws.Source(3),
    "seeded": SeededSource(7, Stream.SAMPLING),
    "system": SystemSource(),
}


@pytest.mark.parametrize(
    ("sampler", "size", "law", "source"),
    [*((*followed, "drawn") for followed in FOLLOWED), *((*FOLLOWED[0], source) for source in ("seeded", "system"))],
    ids=lambda one: getattr(one, "name", one if isinstance(one, str) else ""),
)
def test_batches_follow_the_draws(sampler: Sampler, size: int | None, law: Draws, source: str) -> None:
    """Two draws that follow each other, over all their outcomes: none remembers the one before.

    Whatever source there is, one sampler tells.
    """
    steps, records = law[0][0].shape
    expected: Counter[bytes] = Counter()
    for mask, chance in law:
        for again, other in law:
            expected[np.vstack([mask, again]).astype(np.int8).tobytes()] += chance * other
    seen, games = Counter(), 6000
    stream = sampler.batches(SOURCES[source], records, 0.3, size)
    for _ in range(games):
        mask = np.zeros((2 * steps, records), dtype=np.int8)
        for row, batch in zip(mask, islice(stream, 2 * steps), strict=True):
            row[batch] = 1
        seen[mask.tobytes()] += 1
    assert seen.keys() <= expected.keys()
    likely = [key for key, chance in expected.items() if chance * games > 5.0]
    wanted = np.array([expected[key] * games for key in likely])
    off = np.array([seen[key] for key in likely]) - wanted
    assert stats.chi2.sf(float(np.sum(off**2 / wanted)), max(len(likely) - 1, 1)) > 1e-9
    assert math.isclose(sum(expected.values()), 1.0, rel_tol=1e-9)


def test_every_leaf_is_asked() -> None:
    """Those whose batches nobody can draw here have no law of batches."""
    drawn = {name for name, kind in SAMPLERS.items() if kind.batches is not Sampler.batches}
    assert {sampler.name for sampler, *_ in FOLLOWED} == drawn
    assert {run.sampler.name for run, *_ in CASES.values()} == set(SAMPLERS)


class Forgetful(Poisson):
    """Draws a record seldom, and says otherwise."""

    name = "forgetful"

    def batches(self, source, records, sample_rate, size):
        return Poisson().batches(source, records, 0.2 * sample_rate, size)


def test_a_sampler_that_breaks_a_law_is_seen() -> None:
    with pytest.raises(AssertionError):
        laws.batches(Forgetful())


class Fixed:
    """A source that returns what it is told."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def uniform(self, size: int) -> np.ndarray:
        assert size == len(self.values)
        return self.values


@pytest.mark.parametrize("rate", [1e-7, 1e-4, 0.15])
def test_poisson_rates_are_not_rounded_to_single_precision(rate):
    """Uniforms in float32 know 2^24 values, which moves a rate of 1e-7 by up to a half."""
    source = Fixed([rate * (1 - 1e-12), rate * (1 + 1e-12)])
    assert next(Poisson().batches(source, 2, rate, None)).tolist() == [0]


@pytest.mark.parametrize("source", [SeededSource(1, Stream.SAMPLING), SystemSource()], ids=["seeded", "system"])
def test_uniforms_have_more_than_single_precision(source):
    assert np.mean((source.uniform(1_000) * 2.0**40) % 1.0 != 0.0) > 0.99


def test_samplers_that_the_loop_does_not_draw_are_refused():
    with pytest.raises(
        ParameterError, match="sampler must be one of poisson, fixed-size, random-allocation, shuffled, cyclic"
    ):
        TruncatedPoisson(9).batches(SystemSource(), 40, 0.1, 4)


@pytest.mark.parametrize("batch", [None, 0, 41])
def test_a_batch_larger_than_the_data_is_refused(batch):
    with pytest.raises(ParameterError, match="batch_size must be a whole number from 1 to 40"):
        FixedSize().batches(SystemSource(), 40, 0.1, batch)
