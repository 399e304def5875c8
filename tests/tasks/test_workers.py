"""Workers that die, hang, differ, or have thousands of small things to do."""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reticent.kernel.errors import WorkerError
from reticent.tasks import Dask, Local, Ray, Store, Task, execute

WORK = """
import os
import time

import numpy as np


def sleep(store, task):
    time.sleep(task.inputs["seconds"])
    return {"x": np.full(1, float(os.getpid()))}


def die_at_three(store, task):
    if task.inputs["i"] == 3:
        os.kill(os.getpid(), 9)
    return {"x": np.zeros(1)}


def fail_at_three(store, task):
    if task.inputs["i"] == 3:
        raise RuntimeError("no luck\\nat all")
    time.sleep(3600.0 if task.inputs["i"] > 3 else 0.0)
    return {"x": np.full(1, float(os.getpid()))}


def meet(store, task):
    folder = store.root.parent / "met"
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + 60.0
    while len(list(folder.iterdir())) < task.inputs["workers"]:
        if time.monotonic() > end:
            raise RuntimeError("nobody else came")
        time.sleep(0.01)
    found = np.sqrt(store.get(task.inputs["blob"])["x"] + task.inputs["i"])
    return {"x": found, "who": np.array([float(os.getpid()), float(os.environ["OMP_NUM_THREADS"])])}
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A module that workers can import and that loads fast."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "worker_code.py").write_text(WORK)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    sys.modules.pop("worker_code", None)
    import worker_code

    return worker_code


def tasks(number: int, **inputs: object) -> list[Task]:
    return [Task("t", {"i": i, **inputs}) for i in range(number)]


def lost(wanted, call, store, engine, **more) -> str:
    """The one line with which work ends that nobody finishes."""
    with pytest.raises(WorkerError) as stop:
        execute(wanted, call, store, engine, **more)
    line = str(stop.value)
    assert "\n" not in line
    assert f"{sum(store.has(task) for task in wanted)} of {len(wanted)} tasks are kept in {store.root}" in line
    assert "--resume" in line
    return line


def test_a_local_worker_that_is_killed_is_one_line(tmp_path, work):
    store = Store(tmp_path / "work")
    assert "a worker died" in lost(tasks(12), work.die_at_three, store, Local(2))
    assert any(store.has(task) for task in tasks(12))


def test_many_small_tasks_use_all_workers_of_one_thread_each_and_give_the_bits_of_one(tmp_path, work, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    found, owners = [], set()
    for workers in (1, 2):
        store = Store(tmp_path / str(workers) / "work")
        wanted = tasks(60, blob=store.put({"x": np.arange(5.0)}), workers=workers)
        execute(wanted, work.meet, store, Local(workers))
        found.append([store.load(task)["x"].tobytes() for task in wanted])
        owners |= {tuple(store.load(task)["who"]) for task in wanted}
    assert found[0] == found[1]
    assert sorted(threads for _, threads in owners) == [1.0, 1.0, 3.0]


def passes(monkeypatch, seen: list, report_tells) -> None:
    """Ten seconds pass with each such report and none besides: how busy the machine is decides nothing."""
    clock = SimpleNamespace(monotonic=lambda: 10.0 * sum(map(report_tells, seen)))
    monkeypatch.setattr("reticent.tasks.engine.time", clock)


def test_work_that_hangs_ends_after_the_timeout_with_what_is_kept(tmp_path, work, monkeypatch):
    store, seen = Store(tmp_path / "work"), []
    wanted = [*tasks(2, seconds=0.0), Task("t", {"i": 9, "seconds": 3600.0})]
    passes(monkeypatch, seen, lambda report: report.done == 2)
    line = lost(wanted, work.sleep, store, Local(2), timeout=15.0, progress=seen.append)
    assert "no task was finished for 15 s; 2 of 3 tasks" in line
    assert len([report for report in seen if report.done == 2]) >= 2  # progress goes on while nothing moves


def test_workers_with_another_version_of_a_library_are_refused(tmp_path, work, monkeypatch):
    monkeypatch.setattr("reticent.tasks.engine.library_versions", lambda: {"numpy": "1.0.0-elsewhere"})
    line = lost(tasks(3, seconds=0.0), work.sleep, Store(tmp_path / "work"), Local(2))
    assert f"a worker has numpy {np.__version__}, this process 1.0.0-elsewhere" in line


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_will_do_and_lives_on(tmp_path, work, kind):
    store, wanted, seen = Store(tmp_path / "work"), tasks(5, seconds=0.0), []
    more = {"mp_context": multiprocessing.get_context("forkserver")} if kind is ProcessPoolExecutor else {}
    with kind(2, **more) as executor:
        execute(wanted, work.sleep, store, executor, seen.append, prepare=lambda missing, workers: seen.append(workers))
        assert all(store.has(task) for task in wanted)
        assert executor.submit(len, "abc").result() == 3
        assert "RuntimeError: no luck at all" in lost(
            tasks(4)[3:], work.fail_at_three, Store(tmp_path / "other"), executor
        )
    assert seen[0] == 2
    assert [report.done for report in seen[1:] if report.waiting is None][-1] == 5


def test_a_worker_with_many_threads_does_one_task_at_a_time(tmp_path):
    """Tasks set the number of threads of their process, on which the bits depend."""
    inside, most = [], []

    def count(store, task):
        inside.append(task)
        most.append(len(inside))
        time.sleep(0.02)
        inside.remove(task)
        return {"x": np.zeros(1)}

    with ThreadPoolExecutor(4) as executor:
        execute(tasks(8), count, Store(tmp_path / "work"), executor)
    assert most == [1] * 8


def test_what_was_given_to_an_executor_that_lives_on_is_taken_back(tmp_path):
    """A cluster of one's own would go on for hours with what nobody waits for."""
    store, wanted, ends = Store(tmp_path / "work"), tasks(10), threading.Event()

    def wait(store, task):
        assert ends.wait(60)
        return {"x": np.zeros(1)}

    with ThreadPoolExecutor(1) as executor:
        try:
            lost(wanted, wait, store, executor, timeout=0.5)
        finally:
            ends.set()
    assert not any(store.has(task) for task in wanted[1:])


@contextlib.contextmanager
def dask_cluster(file: Path, workers: int):
    """A scheduler and workers as processes of their own, so that they can be killed; they meet by way of a file."""
    from distributed import Client

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    meeting = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny"]
    started = [subprocess.Popen([*scheduler, *meeting], **quiet)]
    try:
        started += [subprocess.Popen([*worker, *meeting], **quiet) for _ in range(workers)]
        while not file.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def kill_once_begun(store: Store, wanted: list[Task], victims) -> None:
    def kill():
        while not any(store.has(task) for task in wanted):
            time.sleep(0.05)
        for process in victims:
            process.kill()

    threading.Thread(target=kill, daemon=True).start()


@pytest.mark.parametrize("dead", ["workers", pytest.param("scheduler", marks=pytest.mark.slow)])
def test_a_dask_cluster_whose_processes_are_dead_is_one_line(tmp_path, work, monkeypatch, dead, capfd):
    monkeypatch.setattr("reticent.tasks.engine.LOST_SECONDS", 2.0)
    store, wanted, seen = Store(tmp_path / "work"), tasks(300, seconds=0.2), []
    passes(monkeypatch, seen, lambda report: report.waiting is not None)
    with dask_cluster(tmp_path / "scheduler.json", 1) as (address, (scheduler, *workers)):
        kill_once_begun(store, wanted, workers if dead == "workers" else [scheduler])
        line = lost(wanted, work.sleep, store, Dask(address, timeout=60.0), progress=seen.append)
    assert ("has no worker left" if dead == "workers" else "is gone") in line
    assert "Traceback" not in "".join(capfd.readouterr())
    if dead == "workers":
        assert any("no worker left" in str(report.waiting) for report in seen)
        execute(wanted[:5], lambda store, task: {"x": np.zeros(1)}, store)  # and the work can go on


@pytest.mark.slow
def test_a_ray_worker_that_is_killed_is_one_line(tmp_path, work, monkeypatch, capfd):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert "a worker died" in lost(tasks(12), work.die_at_three, Store(tmp_path / "work"), Ray("local"))
    out, err = capfd.readouterr()
    assert ("Traceback" in err, out) == (False, "")


@pytest.mark.parametrize(
    ("alive", "cores", "wanted"), [(True, 2, None), (False, 2, "no worker left"), (True, 0, "no worker left")]
)
def test_a_ray_cluster_says_why_nobody_answers(monkeypatch, alive, cores, wanted):
    """A head that listens, whose nodes are as Ray tells; then one that is gone. Ray itself hangs where it is gone."""
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        ray = SimpleNamespace(
            is_initialized=lambda: True,
            get_runtime_context=lambda: SimpleNamespace(gcs_address=f"127.0.0.1:{head.getsockname()[1]}"),
            nodes=lambda: [{"Alive": alive, "Resources": {"CPU": cores}}],
            cluster_resources=lambda: {"CPU": 2.0},
            remote=lambda **_: lambda call: call,
            cancel=lambda _: None,
        )
        monkeypatch.setitem(sys.modules, "ray", ray)
        with Ray().pool() as pool:
            assert (pool.workers, pool.borrowed) == (2, True)
            assert (wanted or "None") in str(pool.trouble())
            head.close()
            assert re.match(r"the Ray head at \S+ is gone", pool.trouble())


def ended(owners) -> bool:
    """Whether none of the processes is there any more."""
    return bool(owners) and not any(Path(f"/proc/{owner}").exists() for owner in owners)


def test_processes_that_are_given_up_end_and_say_nothing(tmp_path, work, capfd):
    """Their thread tripped over work that was taken away: a traceback, and processes that lived on."""
    store, wanted = Store(tmp_path / "work"), tasks(12)
    assert "no luck" in lost(wanted, work.fail_at_three, store, Local(2))
    assert ended({int(store.load(task)["x"][0]) for task in wanted if store.has(task)})
    assert capfd.readouterr() == ("", "")
