"""``reticent train``: one DP-SGD run from a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.cli._app import app
from reticent.cli._options import JsonOption
from reticent.cli._progress import progress_bar
from reticent.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.mechanism.run_ledger import RunLedger

if TYPE_CHECKING:
    from reticent.train import Run, TrainConfig


@app.command("train")
def train_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A YAML configuration.")],
    out: Annotated[Path, typer.Option("--out", help="The run directory; must not exist.")],
    trace: Annotated[bool, typer.Option("--trace", help="Record weights and released gradients of each step.")] = False,
    trace_every: Annotated[int, typer.Option("--trace-every", help="Record each so manieth step.")] = 1,
    trace_masks: Annotated[
        bool, typer.Option("--trace-masks", help="Record which records each step used; never publish them.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train with DP-SGD; write weights and the ledger of what really ran."""
    settings = load_settings(config)
    if trace or trace_masks or trace_every != 1:
        settings = _with_trace(settings, trace_every, trace_masks)
    run = train_with_bar(config, settings, out)
    typer.echo(run.ledger.to_json() if json else summary(run.ledger, out), nl=not json)


def load_settings(config: Path) -> TrainConfig:
    """The configuration in a file.

    Raises:
        ArtifactError: it is missing, no YAML, or has a key or value that is not allowed.
        UnsupportedError: torch or Opacus is not installed.
    """
    require_torch()
    from reticent.train import load_config

    return load_config(config)


def train_with_bar(config: Path, settings: TrainConfig, out: Path) -> Run:
    """Train with a progress bar; what does not fit is reported as a key of the configuration."""
    from reticent.train import train

    try:
        with progress_bar(f"training {config.stem}") as progress:
            return train(settings, out, progress=progress)
    except ParameterError as error:
        raise ArtifactError(f"{config}: {error}") from None


def require_torch() -> None:
    """Raises UnsupportedError, with the remedy, where the training extra is not installed."""
    try:
        import reticent.train  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"training needs an extra: pip install 'reticent[train]' ({error})") from None


def summary(ledger: RunLedger, path: Path) -> str:
    """A few lines about a run for people."""
    accuracy = ledger.utility.test_accuracy
    lines = [
        f"{path}: {ledger.steps} noisy updates on {ledger.data.dataset_size} records of {ledger.data.name}",
        f"sampler {ledger.sampler.value}, sample rate {ledger.sample_rate:.6g}, "
        f"noise multiplier {ledger.noise_multiplier:.6g}, clip norm {ledger.max_grad_norm:.6g}",
        f"test accuracy {accuracy:.4f}" if accuracy is not None else "no test records",
        *(f"! {warning.value}: {warning.text}" for warning in ledger.warnings),
    ]
    return "\n".join(lines)


def _with_trace(config: TrainConfig, every: int, masks: bool) -> TrainConfig:
    from reticent.train.config import TraceConfig

    if every < 1:
        raise ParameterError("trace_every", every, "a whole number >= 1")
    return config.model_copy(update={"trace": TraceConfig(every=every, masks=masks)})
