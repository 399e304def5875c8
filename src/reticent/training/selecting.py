"""Private selection: several runs, how many and with which settings is drawn, and only the best is written.

docs/theory/selection.md proves what the best reveals. Of the other runs nothing reaches a disk, and nothing says how
many there were: the theorem needs that nobody learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from reticent.data import Dataset
from reticent.facts.selected_run import SelectionRecord, with_score
from reticent.facts.steps import Randomness
from reticent.io import yaml
from reticent.io.models import Closed, Positive, validated
from reticent.io.outputs import refuse_overwriting
from reticent.io.strict import portable
from reticent.kernel.errors import ArtifactError, NumericalError, ParameterError
from reticent.kernel.registry import parameters_of
from reticent.mechanisms import Selection
from reticent.mechanisms.codec import mechanism_record
from reticent.mechanisms.one_of import drawn_from
from reticent.pairs import Runs
from reticent.pairs.runs import runs_called
from reticent.training import rundir
from reticent.training.config import parse_config
from reticent.training.randomness import SystemSource
from reticent.training.run import Fitted, fitted
from reticent.training.setup import load_dataset, make_settings, planned_release
from reticent.training.sweep import Cell, make_grid, parse_axis

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_REFUSED = ("target", "trace", "sensitive", "final_model")


class SelectionConfig(Closed):
    """The section ``selection`` of a sweep.

    Attributes:
        runs: the law of the number of runs: ``geometric``, ``negative-binomial``, ``poisson`` or ``fixed``.
        mean_runs: runs on average.
        shape: of ``negative-binomial``.
        score: what makes a run the best: its right answers on the ``test`` records, which no number here protects, or
            on the ``train`` records, with noise.
        score_noise: with ``train``: standard deviation of the noise on the number of right answers.
    """

    runs: str
    mean_runs: Annotated[float, Field(gt=0.0, le=1e5)]
    shape: Annotated[float, Field(allow_inf_nan=False)] | None = None
    score: Literal["test", "train"] = "test"
    score_noise: Positive | None = None

    @model_validator(mode="after")
    def _is_a_law(self) -> SelectionConfig:
        if (self.score == "train") != (self.score_noise is not None):
            raise ValueError("score_noise goes with score: train, where it is counted")
        try:
            self.law()
        except ParameterError as error:
            raise ValueError(str(error)) from None
        return self

    def law(self) -> Runs:
        """The law of the number of runs.

        Raises:
            ParameterError: there is none of this name, or with these numbers.
        """
        kind = runs_called(self.runs)
        if self.shape is not None and "shape" not in {p.name for p in parameters_of(kind)}:
            raise ParameterError("shape", self.shape, "left out unless runs is negative-binomial")
        own = {} if self.shape is None else {"shape": self.shape}
        return kind(mean=self.mean_runs, **own)  # type: ignore[call-arg]


def cells_of(config: Path, options: Sequence[str]) -> tuple[tuple[Cell, ...], SelectionConfig | None]:
    """The grid in ``sweep:`` of the file and in ``--sweep``, and its section ``selection``.

    An option replaces the axis of the same key. Where the best of several runs is asked for, a list of one will do.

    Raises:
        ArtifactError, ParameterError: as ``make_grid``, ``parse_axis`` and ``parse_selection``.
    """
    document = yaml.load_file(config)
    if not isinstance(document, dict):
        raise ArtifactError(f"{config}: must be a mapping of keys to values")
    axes = document.pop("sweep", {})
    if not isinstance(axes, dict):
        raise ArtifactError(f"{config}: sweep: must be a mapping of keys to lists of values")
    for option in options:
        key, values = parse_axis(option)
        axes[key] = values
    stated = document.pop("selection", None)
    selection = None if stated is None else parse_selection(stated, str(config))
    if selection is not None and not axes:
        return (Cell({}, parse_config(document, str(config))),), selection
    return make_grid(document, axes, str(config)), selection


def parse_selection(document: Any, where: str) -> SelectionConfig:
    """The section ``selection`` of a configuration.

    Raises:
        ArtifactError: one line that names the key, the value and what is allowed.
    """
    if not isinstance(document, Mapping):
        raise ArtifactError(f"{where}: selection: must be a mapping of keys to values")
    return validated(SelectionConfig, dict(document), f"{where}: selection")


@dataclass(frozen=True)
class Plan:
    """A selection before anything is drawn.

    Attributes:
        cells: the list of settings.
        asked: the section of the configuration.
        dataset: the records, the same in every run.
        release: what the best reveals.
    """

    cells: tuple[Cell, ...]
    asked: SelectionConfig
    dataset: Dataset
    release: Selection


@dataclass(frozen=True)
class Selected:
    """What came of a selection.

    Attributes:
        run: the best, or None where no run was drawn: then nothing is released.
        score: right answers of the best; with their noise, and not as a share, where it is that of training records:
            their number may be what is kept secret.
    """

    run: rundir.Run | None
    score: float | None


def plan_selection(cells: Sequence[Cell], asked: SelectionConfig) -> Plan:
    """What would be released, checked before the first draw.

    Args:
        cells: of ``make_grid``: each run draws one of them, uniformly.
        asked: the law of the number of runs, and the score.

    Raises:
        ParameterError: the settings cannot be drawn from: other records, seeded noise, a target, no test records.
        DataError, UnsupportedError: a configuration cannot be carried out.
    """
    for cell in cells:
        _check_cell(cell, cells[0])
    dataset = load_dataset(cells[0].config.data)
    if asked.score == "test" and len(dataset.test) == 0:
        raise ParameterError("score", asked.score, "train, with score_noise: there are no test records")
    if asked.score == "train" and cells[0].config.records_per_user not in (None, 1):
        raise ParameterError("score", asked.score, "test: one answer is counted for each person, not several")
    size = len(dataset.train)
    runs = (with_score(planned_release(cell.config, size), asked.score_noise) for cell in cells)
    return Plan(tuple(cells), asked, dataset, Selection(drawn_from(runs), asked.law()))


def select(
    plan: Plan,
    out: Path | str,
    *,
    sign: Ed25519PrivateKey | None = None,
    working: Callable[[], None] = lambda: None,
    rng: np.random.Generator | None = None,
) -> Selected:
    """Draw how many runs there are, train each with a setting that is drawn anew, and write the best.

    Noise and batches of every run come from the operating system. The ledger has the time at which the selection
    began, as the time of its end tells how many runs there were.

    Args:
        out: the run directory; must not exist.
        sign: a private key that signs the run.
        working: called before each step of the work; it must show nobody how often.
        rng: for tests only: a number of runs that somebody can repeat is not secret. By default seeded by 128 bits of
            the operating system, and kept nowhere.

    Raises:
        ArtifactError: ``out`` exists or cannot be written.
        NumericalError: the best run diverged; nothing is written.
    """
    refuse_overwriting(Path(out))
    began = datetime.now(UTC).isoformat(timespec="seconds")
    draws = np.random.default_rng() if rng is None else rng
    best: tuple[tuple[float, float], Fitted | None] | None = None
    for _ in range(plan.asked.law().draw(draws)):
        working()
        run = _one(plan, plan.cells[int(draws.integers(len(plan.cells)))])
        rank = (-np.inf if run is None else _score(plan, run), float(draws.random()))  # a coin for each breaks ties
        if best is None or rank > best[0]:
            best = rank, run
    if best is None:
        return Selected(None, None)
    if best[1] is None:
        raise NumericalError("training diverged in the best run: lower learning_rate or noise_multiplier")
    return Selected(_written(plan, best[1], Path(out), began, sign), best[0][0])


def _check_cell(cell: Cell, first: Cell) -> None:
    """A setting that the theorem covers: the same records, fresh noise, nothing that only its own run may have."""
    config = cell.config
    if config.data != first.config.data:
        raise ParameterError("sweep", "data", "left out of the axes: every run uses the same records", shown=False)
    if config.records_per_user != first.config.records_per_user:
        raise ParameterError("records_per_user", config.records_per_user, "the same in every setting")
    if config.randomness is not Randomness.FRESH:
        raise ParameterError("randomness", config.randomness.value, "fresh: runs with one seed are not independent")
    for name in _REFUSED:
        if getattr(config, name):
            more = ": reticent calibrate --selection finds the noise for the best of all runs"
            wanted = f"left out with selection{more if name == 'target' else ''}"
            raise ParameterError(name, "given", wanted, shown=False)


def _one(plan: Plan, cell: Cell) -> Fitted | None:
    """One run; None where it diverged, which is an outcome like any other: the worst."""
    try:
        return fitted(cell.config, plan.dataset, make_settings(cell.config, len(plan.dataset.train)))
    except NumericalError:
        return None


def _score(plan: Plan, run: Fitted) -> float:
    """Right answers on the test records, or on the training records with the noise that every run counts."""
    if plan.asked.score_noise is not None:
        return run.right + plan.asked.score_noise * float(SystemSource().normal(1)[0])
    return round((run.ledger.utility.test_accuracy or 0.0) * len(plan.dataset.test))


def _written(plan: Plan, run: Fitted, out: Path, began: str, sign: Ed25519PrivateKey | None) -> rundir.Run:
    record = SelectionRecord(
        mechanism=portable(mechanism_record(plan.release)),
        settings=len(plan.cells),
        score=plan.asked.score,
        score_noise=plan.asked.score_noise,
    )
    ledger = run.ledger.model_copy(update={"created": began, "selection": record}).sealed()
    with rundir.new_run(out, sign) as directory:
        rundir.write_run(directory, ledger, run.model)
    return rundir.load_run(out)
