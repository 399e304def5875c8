"""A grid of a thousand releases through ``rt.assess_each``: one worker beside two, on each engine.

Wall-clock seconds of one whole call each: what workers load is counted, what starts a cluster is not. Each call starts
with an empty folder, and each worker has one thread. The error is the largest relative difference of a number between
the two.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from unittest import mock

import numpy as np

import reticent as rt
from benchmarks._rows import Row, main, spread
from reticent.tasks import Dask, Engine, Local, Ray

NOISES, RATES, STEPS, GOAL = 40, 25, 1000, 1.8
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**27), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
RELEASES = [
    rt.DPSGD(float(noise), float(rate), STEPS)
    for noise in np.geomspace(0.8, 8.0, NOISES)
    for rate in np.geomspace(1e-3, 0.05, RATES)
]


@contextlib.contextmanager
def local(workers: int) -> Iterator[Engine]:
    """Processes of this machine, which joblib keeps."""
    yield Local(workers)


@contextlib.contextmanager
def dask(workers: int) -> Iterator[Engine]:
    """A cluster of processes on this machine, with the settings that docs/howto/cluster.md names.

    Dask writes its own settings into the environment, from where later processes would have them.
    """
    from distributed import LocalCluster

    with (
        mock.patch.dict(os.environ, KEEP_MEMORY),
        LocalCluster(n_workers=workers, processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        yield Dask(cluster.scheduler_address)


@contextlib.contextmanager
def ray(workers: int) -> Iterator[Engine]:
    """A head node on this machine with so many cores."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": workers})
    try:
        yield Ray(cluster.address)
    finally:
        cluster.shutdown()


def rows() -> Iterator[Row]:
    """Each engine."""
    for name, cluster in (("this machine's processes", local), ("Dask", dask), ("Ray", ray)):
        one, two = _timed(cluster(1)), _timed(cluster(2))
        ratio = one[0] / two[0]
        yield Row(
            work=f"{len(RELEASES)} releases, all default numbers, two workers, {name}",
            peer="one worker",
            ratio=spread([ratio]),
            error=float(np.max(np.abs(one[1] / two[1] - 1.0))),
            goal=f"{GOAL} times as fast",
            met=ratio >= GOAL,
            notes={"seconds": two[0]},
        )


def _timed(cluster: AbstractContextManager[Engine]) -> tuple[float, np.ndarray]:
    """Seconds, and the numbers; the cluster ends before the next one begins."""
    with cluster as engine:
        started = time.perf_counter()
        grid = rt.assess_each(RELEASES, engine=engine)
        seconds = time.perf_counter() - started
    return seconds, np.array([row[5:] for row in grid.rows()], dtype=float)


if __name__ == "__main__":
    main(rows, __doc__ or "")
