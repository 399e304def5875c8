"""One code path, several engines, the same bits; and kill -9 at any moment."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from reticent.attacks.shadow import ShadowPlan, shadow_tasks, train_block, train_shadow_models
from reticent.kernel.errors import ArtifactError
from reticent.tasks import Dask, Ray, Store, Task, execute
from reticent.tasks.store import digest_of
from tests.tasks.results import digest
from tests.training.small import configured

RECORDS = 60
rng = np.random.default_rng(1)
X = rng.standard_normal((RECORDS, 5)).astype(np.float32)
Y = rng.integers(0, 2, RECORDS)
CONFIG = configured(data={"name": "digits"}, model={"kind": "mlp", "widths": [8]}, batch_size=8, steps=40)


def plan(blocks: int) -> ShadowPlan:
    return ShadowPlan(CONFIG, 16 * blocks, 40)


def tasks_in(store: Store, blocks: int):
    return shadow_tasks(plan(blocks), store.put({"features": X, "labels": Y}), 2, (5,))


def uninterrupted(path: Path, blocks: int) -> str:
    store = Store(path)
    train_shadow_models(plan(blocks), X, Y, store)
    return digest(store, tasks_in(store, blocks))


@pytest.mark.slow
def test_a_real_dask_scheduler_with_two_workers_gives_the_same_bits(tmp_path):
    from distributed import LocalCluster

    reference, store, reports = uninterrupted(tmp_path / "one", 4), Store(tmp_path / "two"), []
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        execute(tasks_in(store, 2), train_block, store, Dask(cluster.scheduler_address))
        execute(tasks_in(store, 4), train_block, store, Dask(cluster.scheduler_address), reports.append)
        assert len(cluster.scheduler_info["workers"]) == 2
    assert (reports[0].done, reports[-1].done, reports[-1].total) == (2, 4, 4)
    assert digest(store, tasks_in(store, 4)) == reference


@pytest.mark.slow
def test_ray_gives_the_same_bits(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    reference, store = uninterrupted(tmp_path / "one", 3), Store(tmp_path / "two")
    execute(tasks_in(store, 3), train_block, store, Ray("local"))
    assert digest(store, tasks_in(store, 3)) == reference


def die_while_holding(path: str, held) -> None:
    with Store(path).exclusive({"of": "squares"}):
        held.set()
        time.sleep(60)


def test_a_process_that_is_killed_lets_the_folder_go(tmp_path):
    context = multiprocessing.get_context("fork")
    held = context.Event()
    worker = context.Process(target=die_while_holding, args=(str(tmp_path), held))
    worker.start()
    assert held.wait(20)
    with pytest.raises(ArtifactError, match="another process"):
        squares(tmp_path)
    worker.kill()
    worker.join()
    assert squares(tmp_path) == squares(tmp_path / "whole")


class Killed(BaseException):
    """Stands for SIGKILL at one call."""


def square(store: Store, task: Task) -> dict[str, np.ndarray]:
    """Work that costs nothing: what is tested is how it is kept."""
    return {"x": store.get(task.inputs["pool"])["x"] ** 2 + task.inputs["i"]}


def squares(path: Path) -> str:
    """All that touches the disk when work is done: inputs, results, the manifest; the digest of what is kept."""
    store, pool = Store(path), {"x": np.arange(5.0)}
    tasks = [Task("square", {"pool": digest_of(pool), "i": i}) for i in range(2)]
    execute(tasks, square, store, plan={"of": "squares"}, prepare=lambda missing, workers: store.put(pool))
    return digest(store, tasks)


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.rename"])
def test_dying_at_each_call_that_touches_the_disk(tmp_path, monkeypatch, call):
    """Kills at random seldom hit the moments between two writes; here every one of them is hit."""
    reference = squares(tmp_path / "whole")
    name = call.removeprefix("os.")
    original = getattr(os, name)
    for fatal in range(60):
        path, count = tmp_path / f"{call}-{fatal}", [0]

        def fails(*args, count=count, fatal=fatal, **kwargs):
            count[0] += 1
            if count[0] > fatal:
                raise Killed
            return original(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            try:
                squares(path)
                break
            except Killed:
                pass
        assert squares(path) == reference
    assert 0 < fatal < 59
