"""Correlated noise: the sensitivity against every pattern, and what follows from it.

Theorems: RETICENT:participation-sensitivity, RETICENT:block-sampling, DENISOV2022:Theorem 2.1.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import dp_event

from reticent.adversaries import Relaxed
from reticent.calibration import Advantage, NoiseMultiplier
from reticent.calibration.solve import calibrate
from reticent.interop.dp_events import from_dp_event, to_dp_event
from reticent.kernel.accountants import compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage
from reticent.mechanisms import MatrixMechanism, strategies
from tests.laws.experiments import Experiment

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def patterns(steps: int, most: int, separation: int) -> list[tuple[int, ...]]:
    """All of them, by going through all subsets."""
    found = []
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(steps), size):
            if all(b - a >= separation for a, b in itertools.pairwise(chosen)):
                found.append(chosen)
    return found


def rows(matrix: np.ndarray) -> str:
    return json.dumps([[float(x) for x in row[: index + 1]] for index, row in enumerate(matrix)])


def strategies_of(rng: np.random.Generator, steps: int) -> list[tuple[str, int | None]]:
    positive = np.tril(rng.uniform(0.1, 1.0, (steps, steps)))
    mixed = np.tril(rng.normal(size=(steps, steps))) + np.eye(steps)
    rising = ",".join(f"{x:.6f}" for x in rng.uniform(0.1, 1.0, 4))
    return [
        ("identity", None),
        ("prefix", None),
        ("square-root", None),
        ("square-root", 3),
        ("tree", None),
        ("1,0.5,0.5,0.2", None),
        (rising, None),
        ("1,0,0.9", None),
        (rows(positive), None),
        (rows(mixed), None),
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("most", "separation"), [(1, 1), (2, 1), (3, 1), (3, 2), (2, 3), (4, 3), (9, 4)])
def test_the_sensitivity_by_going_through_every_pattern(seed: int, most: int, separation: int) -> None:
    rng, steps = np.random.default_rng(seed), 8
    for strategy, bands in strategies_of(rng, steps):
        asked = strategies.Strategy(strategy, bands, steps)
        c = strategies.matrix(asked)
        claimed = strategies.sensitivity(asked, most, separation)
        along = [float(np.linalg.norm(c[:, p].sum(axis=1))) for p in patterns(steps, most, separation)]
        bound = [float(np.sqrt(np.abs(c.T @ c)[np.ix_(p, p)].sum())) for p in patterns(steps, most, separation)]
        for pattern in patterns(steps, most, separation):  # directions of their own
            u = rng.normal(size=(len(pattern), 3))
            u /= np.linalg.norm(u, axis=1, keepdims=True)
            assert np.linalg.norm(c[:, pattern] @ u) <= claimed.proven * (1.0 + 1e-12)
        assert max(along) <= claimed.proven * (1.0 + 1e-12)
        assert claimed.attained <= max(along) * (1.0 + 1e-12)
        if np.all(c.T @ c >= 0.0):
            assert claimed.attained <= max(bound) * (1.0 + 1e-12)
        if claimed.attained == claimed.proven:
            assert claimed.proven == pytest.approx(max(along), rel=1e-12, abs=0)
        exact = strategy in ("identity", "prefix", "square-root", "1,0.5,0.5,0.2") or most == 1
        assert not exact or claimed.attained == claimed.proven


def test_the_square_root_multiplies_to_prefix_sums() -> None:
    root = strategies.matrix(strategies.Strategy("square-root", None, 30))
    assert root @ root == pytest.approx(np.tril(np.ones((30, 30))), abs=1e-12)


def test_banded_blocks_are_sampled_steps() -> None:
    run = MatrixMechanism(2.0, 103, "1,0.5,0.25", separation=4, sample_rate=0.1)
    norm = np.sqrt(1.0 + 0.25 + 0.0625)
    assert run.equivalent() == DPSGD(2.0 / norm, 0.1, 26)
    truth = compose(run, ADD)
    expected = compose(DPSGD(2.0 / norm, 0.1, 26), ADD)
    assert advantage(truth.pessimistic) == pytest.approx(advantage(expected.pessimistic), rel=1e-6, abs=0)
    assert advantage(truth.optimistic) <= advantage(truth.pessimistic)
    assert advantage(truth.optimistic) > 0.98 * advantage(truth.pessimistic)


def test_a_block_of_two_rows_by_quadrature() -> None:
    """Two steps, one turn: the record moves (1, c) with probability p, seen in the plane."""
    noise, rate, c = 1.3, 0.3, 0.7
    moved = {(0.0, 0.0): 1.0 - rate, (1.0, c): rate}
    seen = Experiment.noisy({(0.0, 0.0): 1.0}, moved, noise, 1201).delta(0.0)
    claimed = compose(MatrixMechanism(noise, 2, f"1,{c}", separation=2, sample_rate=rate), ADD)
    assert advantage(claimed.pessimistic) == pytest.approx(seen, rel=1e-4, abs=0)


def test_the_relaxed_attacker_has_one_shift() -> None:
    run = MatrixMechanism(5.0, 64, "square-root", bands=8, participations=4, separation=16)
    shift = run.sensitivity().proven / 5.0
    for dimension in (1, 40):
        mine = Relaxed(dimension=dimension).assess(run, ADD).measure(advantage)
        plain = Relaxed(dimension=dimension).assess(Gaussian(1.0 / shift, dimension=dimension), ADD)
        assert mine.value == pytest.approx(plain.measure(advantage).value, rel=1e-9, abs=0)
        assert mine.value < WorstCase().assess(run, ADD).measure(advantage).lower


def test_what_cannot_be_is_refused_in_one_line() -> None:
    for wrong in (
        {"strategy": "nonsense"},
        {"strategy": "0,1"},
        {"strategy": "[[1],[2]]"},
        {"strategy": "[[1],[2,0]]", "steps": 2},
        {"strategy": "1,0.5,0.2", "sample_rate": 0.1, "separation": 2},
        {"sample_rate": 0.1, "participations": 2},
        {"strategy": "tree", "bands": 3},
        {"participations": 0},
    ):
        with pytest.raises(ParameterError):
            MatrixMechanism(**{"noise_multiplier": 1.0, "steps": 8, **wrong})
    with pytest.raises(UnsupportedError, match="2048"):
        MatrixMechanism(1.0, 5000, "0.5,1", participations=3, separation=1).sensitivity()


def test_a_strategy_from_a_file(tmp_path: Path) -> None:
    c = np.tril(np.arange(1.0, 10.0).reshape(3, 3))
    np.save(tmp_path / "c.npy", c)
    np.savetxt(tmp_path / "c.csv", c, delimiter=",")
    for name in ("c.npy", "c.csv"):
        given = MatrixMechanism.resolved({"noise_multiplier": 1.0, "steps": 3, "strategy_file": str(tmp_path / name)})
        assert strategies.matrix(strategies.Strategy(given["strategy"], None, 3)) == pytest.approx(c, rel=1e-12, abs=0)
    np.save(tmp_path / "full.npy", np.ones((3, 3)))
    for name in ("full.npy", "missing.npy"):
        with pytest.raises(ParameterError, match="strategy_file"):
            MatrixMechanism.resolved({"strategy_file": str(tmp_path / name)})


def test_it_is_calibrated() -> None:
    run = MatrixMechanism(4.0, 6, rows(np.tril(np.ones((6, 6)))), participations=2, separation=3)
    assert run.sensitivity().attained <= run.sensitivity().proven
    found = calibrate(run, NoiseMultiplier(), Advantage(0.1))
    assert found.achieved.value <= 0.1
    assert found.slack < 1e-4
    longer = MatrixMechanism(1.0, 512, "tree")
    assert calibrate(longer, NoiseMultiplier(), Advantage(0.1)).value == pytest.approx(
        np.sqrt(10.0) / 0.25132, rel=1e-3
    )


def test_events() -> None:
    tree = from_dp_event(dp_event.SingleEpochTreeAggregationDpEvent(3.0, 20))
    assert tree == MatrixMechanism(3.0, 20, "tree")
    trees = from_dp_event(dp_event.SingleEpochTreeAggregationDpEvent(3.0, [4, 20, 8]))
    assert trees == tree
    assert to_dp_event(tree).noise_multiplier == pytest.approx(3.0 / np.sqrt(5.0))
