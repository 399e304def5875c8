"""``reticent train``: one DP-SGD run from a configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent.cli._app import JSON, argument, command, option
from reticent.cli._keys import private_key
from reticent.cli._limits import limited
from reticent.cli._plan import in_file, print_plan
from reticent.cli._progress import progress_bar
from reticent.cli._selection import planned, print_planned, run_selection
from reticent.cli._sweep import asks_for_sweep, run_sweep
from reticent.cli._tables import say
from reticent.data.files import check_file
from reticent.io import yaml
from reticent.io.files import read_bytes, write_atomic, writing
from reticent.io.outputs import refuse_existing, refuse_overwriting
from reticent.kernel import checks
from reticent.kernel.errors import ArtifactError, ParameterError, needing
from reticent.kernel.text import digits
from reticent.records.ledger import RunLedger
from reticent.tasks.engines import engine_of
from reticent.verbs.request import leave_out

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from reticent.data.own import OwnTable
    from reticent.training import Run, TrainConfig

_LARGEST_TEXT = 1 << 20


@command(
    "train",
    argument("config", Path, "[CONFIG]", "A YAML configuration; may be left out with --data.", required=False),
    option("out", Path, "The run directory; must not exist."),
    option("data", Path, "A table of your own: csv, parquet or npz."),
    option("label", str, "With --data: the column to predict."),
    option("sensitive", str, "With --data: the column whose effect is recorded, privately."),
    option("schema", Path, "With --data: YAML with bounds or categories by column, fixed beforehand."),
    option("write_schema", Path, "Write a schema with blanks for this table, and nothing else."),
    option("trace", bool, "Record weights and released gradients of each step."),
    option("trace_every", int, "Record every N-th step, from step 0.", 1),
    option("trace_masks", bool, "Record which records each step used; never publish them."),
    option("checkpoint", Path, "Save the run in this file at intervals, and continue from it."),
    option("checkpoint_every", int, "Steps between two checkpoints.", 100),
    option("sweep", str, "KEY=VALUE,VALUE: one run for each value; several keys make a grid.", many=True),
    option("engine", str, "Where a sweep runs: local, dask or ray.", "local"),
    option("address", str, "Address of the Dask scheduler or the Ray head."),
    option("workers", int, "Processes of the local engine.", 1),
    option("timeout", float, "Give up when no cell was finished for this many seconds."),
    option("resume", bool, "Continue with the sweep in that folder."),
    option("dry_run", bool, "Write nothing: show columns, model, cost and risk of what would run."),
    option("sign", Path, "Private key of reticent keygen: signs the run when it ends."),
    JSON,
)
def train(
    config: Path | None,
    out: Path | None,
    data: Path | None,
    label: str | None,
    sensitive: str | None,
    schema: Path | None,
    write_schema: Path | None,
    trace: bool,
    trace_every: int,
    trace_masks: bool,
    checkpoint: Path | None,
    checkpoint_every: int,
    sweep: tuple[str, ...],
    engine: str,
    address: str | None,
    workers: int,
    timeout: float | None,
    resume: bool,
    dry_run: bool,
    sign: Path | None,
    json: bool,
) -> None:
    """Train with DP-SGD; write weights and the ledger of what really ran."""
    if write_schema is not None:
        if any(given is not None for given in (config, data, label, sensitive, schema)) or dry_run:
            raise ParameterError("write_schema", str(write_schema), "given alone: with the table, and --out")
        _write_schema(write_schema, out or write_schema.with_suffix(".schema.yaml"))
        return
    from reticent.training import load_config

    _look_first(config, data, schema)
    checks.count(checkpoint_every=checkpoint_every)
    traced = (trace_every, trace_masks) if trace or trace_masks or trace_every != 1 else None
    elsewhere = resume or address is not None or timeout is not None or (engine, workers) != ("local", 1)
    if sweep or asks_for_sweep(config):
        if config is None or data is not None or checkpoint is not None:
            raise ParameterError("sweep", sweep, "given with a configuration, and without --data and --checkpoint")
        require_torch()
        from reticent.training.selecting import cells_of

        cells, selection = cells_of(config, sweep)
        if selection is not None:
            if elsewhere or traced is not None:
                leave_out(
                    {"engine": engine}, " with selection: it trains in this process, and keeps nothing but the best"
                )
            if out is not None:
                refuse_overwriting(out)
            plan = planned(config, cells, selection)
            if dry_run:
                print_planned(config, plan, json=json)
                return
            run_selection(config, plan, _folder(config, out), None if sign is None else private_key(sign), json=json)
            return
        leave_out({"sign": sign}, " of a sweep: sign the certificate of a run")
        leave_out({"dry_run": dry_run or None}, " of a sweep: it shows one run")
        out = _folder(config, out)
        if traced is not None:
            cells = tuple(replace(cell, config=_with_trace(cell.config, *traced)) for cell in cells)
        run_sweep(cells, out, engine_of(engine, address, workers), timeout, resume=resume, json=json)
        return
    if elsewhere:
        raise ParameterError("sweep", None, "given: engines, --timeout and --resume are for a sweep", shown=False)
    table = None
    if data is None:
        leave_out({"label": label, "sensitive": sensitive, "schema": schema}, " unless --data is given")
    if out is not None and checkpoint is None:
        refuse_overwriting(out)
    if data is not None:
        config, settings, table = _own(config, data, label, sensitive, schema)
        for line in table.changed:
            click.echo(f"! {line}", err=json)
    elif config is None:
        raise ArtifactError("give a configuration, or a table of your own: --data people.csv --label COLUMN")
    else:
        settings = load_config(config)
    if traced is not None:
        settings = _with_trace(settings, *traced)
    key = None if sign is None else private_key(sign)
    if dry_run:
        require_torch()
        print_plan(config, settings, table, json=json)
        return
    out = _folder(config, out)
    run = train_with_bar(config, settings, out, table, checkpoint, checkpoint_every, key)
    if json:
        click.echo(run.ledger.to_json(), nl=False)
        return
    say(*_summary(run.ledger, out), indent=2)


def _look_first(config: Path | None, data: Path | None, schema: Path | None) -> None:
    """Refuse what is not there at once: torch takes seconds to load."""
    for path in (config, schema):
        if path is not None:
            read_bytes(path, _LARGEST_TEXT)
    if data is not None:
        check_file(data)


def _write_schema(data: Path, out: Path) -> None:
    from reticent.data.own import skeleton

    refuse_existing(out)
    with limited(data, option=""):
        text = skeleton(data)
    with writing(out):
        write_atomic(out, text.encode())
    say(f"{out}: fill in the blanks, then train with --schema {out}")


def _folder(config: Path, out: Path | None) -> Path:
    if out is None:
        raise ParameterError("out", None, f"given: the folder to write, such as runs/{config.stem}", shown=False)
    return out


def train_with_bar(
    config: Path,
    settings: TrainConfig,
    out: Path,
    table: OwnTable | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 100,
    sign: Ed25519PrivateKey | None = None,
) -> Run:
    """Train with a progress bar; what does not fit is reported as a key of the configuration."""
    require_torch()
    from reticent.training import train

    with in_file(config), progress_bar(f"training {config.stem}") as progress:
        return train(settings, out, progress, (), None, checkpoint, checkpoint_every, sign, table)


def _own(
    config: Path | None, data: Path, label: str | None, sensitive: str | None, schema: Path | None
) -> tuple[Path, TrainConfig, OwnTable]:
    """What to call the run in messages, its configuration, and the records of the user."""
    from reticent.data.own import declared_columns, load_table  # whatever is wrong with a table needs no torch

    if label is None and data.suffix != ".npz":
        raise ParameterError("label", None, "given with --data: the column to predict", shown=False)
    with limited(data, option=""):  # before torch is loaded, which takes longer
        table = load_table(data, label or "label", None if schema is None else declared_columns(schema))
    require_torch()
    from reticent.training.own import own_config

    document = None if config is None else yaml.load_file(config)
    where = config or data
    return where, own_config(document, table, sensitive, str(where)), table


def require_torch() -> None:
    """Raises UnsupportedError, with the remedy, where the training extra is not installed."""
    with needing("training", "train"):
        import reticent.training.run  # noqa: F401


def _summary(ledger: RunLedger, path: Path) -> list[str]:
    """A few lines about a run for people."""
    first = ledger.first
    return [
        f"{path}: {ledger.steps} noisy updates on {ledger.dataset_size} records of {ledger.own_data.name}",
        f"sampler {ledger.sampler.name}, sample rate {digits(first.sample_rate or 1.0, 6, up=True)}, "
        f"noise multiplier {digits(first.noise_multiplier, 6, up=False)}, clip norm {first.max_grad_norm:.6g}",
        *(["noise, sample rate or clip norm change along the run: the first are shown"] if ledger.changes else []),
        str(ledger.utility),
        *(f"! {fact.key}: {fact.text}" for fact in ledger.faults),
    ]


def _with_trace(config: TrainConfig, every: int, masks: bool) -> TrainConfig:
    from reticent.training.config import TraceConfig

    return config.model_copy(update={"trace": TraceConfig(every=checks.count(trace_every=every), masks=masks)})
