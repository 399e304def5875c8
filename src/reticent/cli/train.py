"""``reticent train``: one DP-SGD run from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reticent.cli._app import app
from reticent.cli._options import JsonOption, is_terminal
from reticent.errors import ArtifactError, UnsupportedError
from reticent.mechanism import _strict
from reticent.mechanism.run_ledger import RunLedger

if TYPE_CHECKING:
    from reticent.train import Run, TrainConfig


@app.command("train")
def train_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML configuration.")],
    out: Annotated[Path, typer.Option("--out", help="The run directory; must not exist.")],
    trace: Annotated[bool, typer.Option("--trace", help="Record weights and released gradients of each step.")] = False,
    trace_every: Annotated[int, typer.Option("--trace-every", min=1, help="Record each so manieth step.")] = 1,
    trace_masks: Annotated[
        bool, typer.Option("--trace-masks", help="Record which records each step used; never publish them.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train with DP-SGD and write weights and the ledger of what really ran."""
    settings = _load(config)
    if trace or trace_masks or trace_every != 1:
        settings = _with_trace(settings, trace_every, trace_masks)
    run = _train(settings, out)
    typer.echo(_strict.dumps(run.ledger.model_dump(mode="json", by_alias=True)) if json else summary(run), nl=not json)


def run_of(source: Path, out: Path | None) -> tuple[RunLedger, Path]:
    """The ledger of a run, and the folder for what is derived from it.

    Args:
        source: a run directory, or a configuration that is trained first.
        out: the folder; default the run directory itself, or ``runs/NAME`` for ``NAME.yaml``. For a
            configuration it is the run directory: a complete run of the same configuration that lies
            there already is used as it is, anything else there is refused.

    Raises:
        ArtifactError: ``source`` is neither, or ``out`` holds something else.
    """
    _require_torch()
    from reticent.train import load_run

    if source.is_dir():
        return load_run(source).ledger, out if out is not None else source
    if not source.exists():
        raise ArtifactError(f"{source}: no such run or configuration")
    folder = out if out is not None else Path("runs") / source.stem
    config = _load(source)
    if not folder.exists():
        return _train(config, folder).ledger, folder
    run = load_run(folder)
    if run.ledger.config != config.model_dump(mode="json"):
        raise ArtifactError(f"{folder} holds the run of another configuration; choose another --out")
    return run.ledger, folder


def summary(run: Run) -> str:
    """A few lines about a run for people."""
    ledger = run.ledger
    accuracy = ledger.utility.test_accuracy
    lines = [
        f"{run.path}: {ledger.steps} noisy updates on {ledger.data.dataset_size} records of {ledger.data.name}",
        f"sampler {ledger.sampler.value}, sample rate {ledger.sample_rate:.6g}, "
        f"noise multiplier {ledger.noise_multiplier:.6g}, clip norm {ledger.max_grad_norm:.6g}",
        f"test accuracy {accuracy:.4f}" if accuracy is not None else "no test records",
        *(f"! {warning.value}: {warning.text}" for warning in ledger.warnings),
    ]
    return "\n".join(lines)


def _load(config: Path) -> TrainConfig:
    _require_torch()
    from reticent.train import load_config

    return load_config(config)


def _with_trace(config: TrainConfig, every: int, masks: bool) -> TrainConfig:
    from reticent.train.config import TraceConfig

    return config.model_copy(update={"trace": TraceConfig(every=every, masks=masks)})


def _train(config: TrainConfig, out: Path) -> Run:
    from reticent.train import train

    with _bar() as progress:
        return train(config, out, progress=progress)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not is_terminal():
        yield None
        return
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("training", total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


def _require_torch() -> None:
    try:
        import opacus  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"training needs an extra: pip install 'reticent[train]' ({error})") from None
