"""Grids of runs: what is trained, what is kept, and what all runs together give away."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.tasks import Local, Store
from reticent.training import load_run
from reticent.training.sweep import make_grid, parse_axis, sweep
from tests.training.small import BASE

SETTINGS = BASE | {"data": {"name": "breast-cancer", "train_size": 60}}
RATES = {"learning_rate": [0.1, 0.2]}


def worst(release) -> tuple[float, float]:
    found = WorstCase().assess(release)
    return found.measure(advantage).value, found.measure(lambda curve: epsilon_at_delta(curve, 1e-5)).value


def test_every_combination_once_and_the_base_is_left_alone():
    cells = make_grid(SETTINGS, RATES | {"data.train_size": [40, 50]}, "x")
    found = [(c.config.learning_rate, c.config.data.train_size) for c in cells]
    assert found == [(0.1, 40), (0.1, 50), (0.2, 40), (0.2, 50)]
    assert SETTINGS["data"]["train_size"] == 60
    assert len({c.name for c in cells}) == 4


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "mapping of keys to lists"),
        ({"learning_rate": 0.1}, "mapping of keys to lists"),
        ({"learning_rate": []}, "mapping of keys to lists"),
        ({"learning_rate": [0.1, 0.10]}, "two cells are the same"),
        ({"lerning_rate": [0.1]}, "lerning_rate"),
        ({"target.epsilon": [1.0]}, "target is not a section"),
        ({"learning_rate.x": [1.0]}, "learning_rate is not a section"),
        ({"seed": list(range(1001))}, "at most 1000 cells"),
    ],
)
def test_what_is_no_grid_ends_in_one_line(axes, words):
    with pytest.raises(ArtifactError, match=words):
        make_grid(SETTINGS, axes, "x")


def test_an_axis_in_one_word():
    assert parse_axis("model.widths=[32],[64,32]") == ("model.widths", [[32], [64, 32]])
    assert parse_axis("optimiser=sgd,adam") == ("optimiser", ["sgd", "adam"])
    for text in ("learning_rate", "learning_rate=", "=1", "a=[1"):
        with pytest.raises(ParameterError, match="KEY=VALUE"):
            parse_axis(text)


def test_a_later_grid_in_the_folder_counts_what_was_trained_before(tmp_path):
    first = sweep(make_grid(SETTINGS, RATES, "x"), tmp_path / "s")
    assert [o.cell.choice["learning_rate"] for o in first.outcomes] == [0.1, 0.2]
    for outcome in first.outcomes:
        assert load_run(tmp_path / "s" / "runs" / outcome.cell.name).config == outcome.cell.config
        found = outcome.risks.advantage.value, outcome.risks.epsilon.value
        assert found == pytest.approx(worst(DPSGD(2.0, 12 / 60, 3)), rel=1e-6, abs=0)
    kept = [o.run.ledger.created for o in first.outcomes], [o.run.manifest for o in first.outcomes]
    with pytest.raises(ArtifactError, match="--resume"):
        sweep(make_grid(SETTINGS, RATES, "x"), tmp_path / "s")
    more = make_grid(SETTINGS, {"noise_multiplier": [1.0], "learning_rate": [0.2]}, "x")
    found = sweep(more, tmp_path / "s", resume=True)
    assert found.trained == 3
    everything = worst(Ledger((DPSGD(2.0, 0.2, 6), DPSGD(1.0, 0.2, 3))))
    assert (found.together.advantage.value, found.together.epsilon.value) == pytest.approx(everything, rel=1e-4, abs=0)
    again = sweep(make_grid(SETTINGS, RATES, "x"), tmp_path / "s", resume=True)
    assert ([o.run.ledger.created for o in again.outcomes], [o.run.manifest for o in again.outcomes]) == kept
    assert again.trained == 3


def test_a_cell_that_was_killed_after_its_last_step_is_not_trained_twice(tmp_path):
    (cell,) = make_grid(SETTINGS, {"learning_rate": [0.1]}, "x")
    before = sweep([cell], tmp_path / "s").outcomes[0].run.manifest
    shutil.rmtree(tmp_path / "s" / "tasks" / cell.task.key)
    half = tmp_path / "s" / "runs" / f".{cell.name}.partial-0123456789abcdef"
    half.mkdir()
    assert sweep([cell], tmp_path / "s", resume=True).outcomes[0].run.manifest == before
    assert not half.exists()


def test_a_run_that_was_removed_or_exchanged_is_missed(tmp_path):
    one, two = make_grid(SETTINGS, RATES, "x")
    sweep([one, two], tmp_path / "s")
    runs = tmp_path / "s" / "runs"
    shutil.rmtree(runs / one.name)
    with pytest.raises(ArtifactError, match="not a run directory"):
        sweep([two], tmp_path / "s", resume=True)
    shutil.copytree(runs / two.name, runs / one.name)
    with pytest.raises(ArtifactError, match="is not the run that this sweep trained"):
        sweep([two], tmp_path / "s", resume=True)


def test_shared_noise_has_no_bound_and_own_noise_has(tmp_path):
    fixed = SETTINGS | {"randomness": "reproducible"}
    shared = sweep(make_grid(fixed, RATES, "x"), tmp_path / "shared")
    assert shared.together is None
    assert "same seed" in shared.why_not
    own = sweep(make_grid(fixed, {"seed": [1, 2]}, "x"), tmp_path / "own")
    assert own.together is not None


def test_what_diverged_is_counted_as_planned(tmp_path):
    deep = SETTINGS | {"model": {"kind": "mlp", "widths": [4], "activation": "relu"}}
    found = sweep(make_grid(deep, {"learning_rate": [0.1, 1e30]}, "x"), tmp_path / "s")
    assert [o.run is None for o in found.outcomes] == [False, True]
    both = worst(DPSGD(2.0, 0.2, 6))
    assert (found.together.advantage.value, found.together.epsilon.value) == pytest.approx(both, rel=1e-4, abs=0)


def test_a_cell_that_cannot_be_trained_is_refused_before_another_is_and_leaves_no_folder(tmp_path):
    with pytest.raises(ParameterError, match="batch_size must be at most the 60 training records, got 61"):
        sweep(make_grid(SETTINGS, {"batch_size": [12, 61]}, "x"), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_only_the_folder_of_a_sweep_is_gone_on_with(tmp_path):
    store = Store(tmp_path / "other")
    with store.exclusive({"kind": "attack"}):
        pass
    with pytest.raises(ArtifactError, match="something other than a sweep"):
        sweep(make_grid(SETTINGS, RATES, "x"), tmp_path / "other", resume=True)


@pytest.mark.slow  # ten seconds: two processes that import torch
def test_processes_train_the_same_runs(tmp_path):
    cells = make_grid(SETTINGS | {"randomness": "reproducible"}, {"seed": [1, 2, 3]}, "x")
    here = sweep(cells, tmp_path / "here")
    there = sweep(cells, tmp_path / "there", engine=Local(2))
    for a, b in zip(here.outcomes, there.outcomes, strict=True):
        assert all(np.array_equal(x, b.run.weights()[name]) for name, x in a.run.weights().items())
