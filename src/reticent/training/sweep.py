"""Several runs over a grid of settings, each a run folder of its own, and what all of them together give away.

Training ten models on the same records and releasing the best uses all ten. The certificate of the chosen run
covers that run alone; a bound for the choice is the composition of all runs, which is what ``Sweep.together`` holds.

    OUT/                   a folder of tasks, as of an attack: ``reticent.tasks``
    OUT/runs/NAME/         one run folder for each cell; NAME is the beginning of its task's key
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.facts.steps import Randomness
from reticent.io import yaml
from reticent.io.files import remove_strays
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.errors import ArtifactError, NumericalError, ParameterError, ReticentError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.mechanisms.ledger import together as as_one
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.tasks import Engine, Progress, Store, Task, execute
from reticent.training.config import TrainConfig, parse_config
from reticent.training.run import train
from reticent.training.rundir import Run, load_run
from reticent.training.setup import load_dataset, make_settings, planned_release

MOST_CELLS = 1000
_KIND, _RUNS = "train-cell", "runs"


@dataclass(frozen=True)
class Cell:
    """One point of the grid.

    Attributes:
        choice: values by key, in the order of the axes.
        config: the whole configuration.
    """

    choice: Mapping[str, Any]
    config: TrainConfig

    @property
    def task(self) -> Task:
        """What an engine is asked to do."""
        return Task(_KIND, {"config": self.config.model_dump(mode="json")})

    @property
    def name(self) -> str:
        """Of the run folder."""
        return _name(self.task.key)


@dataclass(frozen=True)
class Risks:
    """What the worst-case attacker gains, as enclosures of a bound.

    Attributes:
        advantage: of membership inference.
        epsilon: at the delta of the sweep; infinite where no noise leaves no bound.
    """

    advantage: Interval
    epsilon: Interval


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes:
        cell: which.
        run: the finished run, or None where the training diverged.
        risks: of this run alone, released without a look at the others.
    """

    cell: Cell
    run: Run | None
    risks: Risks


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    Attributes:
        out: its folder.
        outcomes: one for each cell, in the order of the grid.
        trained: runs in the folder, those of earlier grids included.
        together: risks of all runs in the folder together: a bound for whatever is chosen among them.
        why_not: why there is no such bound, or None.
        delta, neighbouring: of the risks.
    """

    out: Path
    outcomes: tuple[Outcome, ...]
    trained: int
    together: Risks | None
    why_not: str | None
    delta: float
    neighbouring: Neighbouring


def parse_axis(text: str) -> tuple[str, list[Any]]:
    """``KEY=VALUE,VALUE`` as a key and YAML values; lists are written ``[32],[64,32]``.

    Raises:
        ParameterError: it has another form.
    """
    key, equals, values = text.partition("=")
    try:
        found = yaml.loads(f"[{values}]", "sweep")
    except ArtifactError:
        found = None
    if not key or not equals or not isinstance(found, list) or not found:
        raise ParameterError("sweep", text, "KEY=VALUE,VALUE such as learning_rate=0.1,0.2")
    return key, found


def make_grid(document: Any, axes: Mapping[str, Any], where: str) -> tuple[Cell, ...]:
    """Every combination of the values of ``axes``, the last key moving fastest.

    Args:
        document: a configuration without ``sweep``.
        axes: lists of values by key; a dot leads into a section, as in ``model.widths``.
        where: names the document in messages.

    Raises:
        ArtifactError: an axis is not a list of values, a cell is not a valid configuration, two cells are the same, or
            there are more than 1,000.
    """
    if not axes or not all(isinstance(key, str) and isinstance(v, list) and v for key, v in axes.items()):
        raise ArtifactError(f"{where}: sweep: must be a mapping of keys to lists of values")
    if np.prod([float(len(values)) for values in axes.values()]) > MOST_CELLS:
        raise ArtifactError(f"{where}: sweep: must have at most {MOST_CELLS} cells")
    cells = []
    for values in itertools.product(*axes.values()):
        choice = dict(zip(axes, values, strict=True))
        changed = copy.deepcopy(document)
        for key, value in choice.items():
            _put(changed, key, value, where)
        cells.append(Cell(choice, parse_config(changed, where)))
    if len({cell.name for cell in cells}) < len(cells):
        raise ArtifactError(f"{where}: sweep: two cells are the same")
    return tuple(cells)


def sweep(
    cells: Sequence[Cell],
    out: Path | str,
    *,
    engine: Engine | None = None,
    resume: bool = False,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Train every cell that is not trained yet, and compose all runs in the folder.

    Args:
        out: a new folder, or with ``resume`` that of an earlier sweep, whose grid may have been another.
        engine: where to train; by default in this process.
        resume: go on with what is in the folder.
        timeout: give up when no cell was finished for this many seconds.
        progress: called after each cell.

    Raises:
        ArtifactError: the folder is something else, or a run in it is missing or damaged.
        ParameterError, DataError, UnsupportedError: a configuration cannot be carried out.
        WorkerError: as ``reticent.tasks.execute``.
    """
    if not cells:
        raise ParameterError("cells", 0, "at least one cell")
    store = Store(Path(out))
    _check_folder(store, resume)
    _check_cells(cells)
    plan = {"kind": "sweep", "cells": len(cells)}
    execute(
        [cell.task for cell in cells],
        train_cell,
        store,
        engine,
        progress,
        plan=plan,
        prepare=lambda tasks, workers: remove_strays(store.root / _RUNS),
        timeout=timeout,
    )
    return _assessed(cells, store)


def train_cell(store: Store, task: Task) -> dict[str, np.ndarray]:
    """The work of one task: a run folder, and whether there is one.

    Raises:
        ArtifactError: the task is of another kind.
    """
    if task.kind != _KIND:
        raise ArtifactError(f"unknown kind of task {task.kind!r}")
    path = store.root / _RUNS / _name(task.key)
    # A folder without a result in the store is a cell that was killed after its last step: it is complete.
    try:
        run = load_run(path) if path.exists() else train(parse_config(task.inputs["config"], "sweep"), path)
    except NumericalError:
        return {"steps": np.zeros(0, dtype=np.int64)}
    return {"steps": np.array([run.ledger.steps])}


def _check_folder(store: Store, resume: bool) -> None:
    plan = store.read_manifest()
    if plan is None:
        return
    if plan.get("kind") != "sweep":
        raise ArtifactError(f"{store.root}: holds something other than a sweep: name another folder")
    if not resume:
        raise ArtifactError(f"{store.root}: holds an earlier sweep: --resume goes on with it, --out names another one")


def _check_cells(cells: Sequence[Cell]) -> None:
    """What does not fit its data set, or meets no target, is said before a cell is trained."""
    sizes: dict[str, int] = {}
    for config in (cell.config for cell in cells):
        data = config.data.model_dump_json()
        if data not in sizes:
            sizes[data] = len(load_dataset(config.data).train)
        make_settings(config, sizes[data])


def _assessed(cells: Sequence[Cell], store: Store) -> Sweep:
    target = cells[0].config.target
    neighbouring = Neighbouring.ADD_REMOVE if target is None else target.neighbouring
    delta = 1e-5 if target is None or target.delta is None else target.delta
    known: dict[Mechanism, Risks] = {}

    def risks(release: Mechanism) -> Risks:
        if release not in known:
            found = WorstCase().assess(release, neighbouring)
            known[release] = Risks(
                found.measure(advantage), found.measure(lambda curve: epsilon_at_delta(curve, delta))
            )
        return known[release]

    trained = {folder.name: _trained(store, folder.name) for folder in sorted((store.root / "tasks").iterdir())}
    mine = ((cell, *trained[cell.task.key][1:]) for cell in cells)
    outcomes = tuple(Outcome(cell, run, risks(release)) for cell, run, release in mine)
    together, why_not = None, _shared_noise(config for config, *_ in trained.values())
    if why_not is None:
        parts = [part for *_, release in trained.values() for part in release.parts]
        try:
            together = risks(as_one(parts))
        except ReticentError as error:
            why_not = str(error)
    return Sweep(store.root, outcomes, len(trained), together, why_not, delta, neighbouring)


def _trained(store: Store, key: str) -> tuple[TrainConfig, Run | None, Mechanism]:
    """A cell of this grid or of an earlier one: its configuration, its run, and what it released."""
    task = store.task(key)
    config = parse_config(task.inputs["config"], f"{store.root}/tasks/{key}")
    if len(store.load(task)["steps"]) == 0:  # nothing was kept, but that it diverged is seen: its plan counts
        return config, None, planned_release(config, len(load_dataset(config.data).train))
    run = load_run(store.root / _RUNS / _name(key))
    if run.config != config:
        raise ArtifactError(f"{run.path}: is not the run that this sweep trained")
    return config, run, run.ledger.mechanism()


def _shared_noise(trained: Iterable[TrainConfig]) -> str | None:
    """Noise that two runs share hides nothing from an attacker who sees both."""
    seeds = [one.seed for one in trained if one.randomness is Randomness.REPRODUCIBLE]
    if len(set(seeds)) < len(seeds):
        return "two cells drew their noise from the same seed, so their releases are not independent"
    return None


def _name(key: str) -> str:
    return key[:12]


def _put(document: Any, key: str, value: Any, where: str) -> None:
    *sections, last = key.split(".")
    for section in sections:
        document = document.get(section) if isinstance(document, dict) else None
    if not isinstance(document, dict):
        raise ArtifactError(f"{where}: sweep: {key}: {'.'.join(sections) or 'the configuration'} is not a section")
    document[last] = value
