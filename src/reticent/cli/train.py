"""``reticent train``: one DP-SGD run from a configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import JSON, argument, command, option
from reticent.cli._keys import private_key
from reticent.cli._limits import limited
from reticent.cli._plan import in_file, print_plan
from reticent.cli._selection import print_planned, run_selection
from reticent.cli._sweep import asks_for_sweep, run_sweep
from reticent.cli._tables import say
from reticent.cli.progress import progress_bar
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
def train(**given: Any) -> None:
    """Train with DP-SGD; write weights and the ledger of what really ran."""
    asked = SimpleNamespace(**given)
    if asked.write_schema is not None:
        others = (asked.config, asked.data, asked.label, asked.sensitive, asked.schema, asked.dry_run or None)
        if any(one is not None for one in others):
            raise ParameterError("write_schema", str(asked.write_schema), "given alone: with the table, and --out")
        _write_schema(asked.write_schema, asked.out or asked.write_schema.with_suffix(".schema.yaml"))
        return
    for path in (asked.config, asked.schema):  # torch takes seconds to load: what is not there is refused before
        if path is not None:
            read_bytes(path, _LARGEST_TEXT)
    if asked.data is not None:
        check_file(asked.data)
    checks.count(checkpoint_every=asked.checkpoint_every)
    several = asked.sweep or asks_for_sweep(asked.config)
    (_several if several else _one)(asked, asked.trace or asked.trace_masks or asked.trace_every != 1)


def _elsewhere(asked: SimpleNamespace) -> bool:
    """Whether something was typed that is for a sweep only."""
    usual = (False, None, None, "local", 1)
    return (asked.resume, asked.address, asked.timeout, asked.engine, asked.workers) != usual


def _several(asked: SimpleNamespace, traced: bool) -> None:
    """All runs of a sweep, or the best of several."""
    if asked.config is None or asked.data is not None or asked.checkpoint is not None:
        raise ParameterError("sweep", asked.sweep, "given with a configuration, and without --data and --checkpoint")
    require_torch()
    from reticent.training.selecting import cells_of, plan_selection

    cells, selection = cells_of(asked.config, asked.sweep)
    if selection is not None:
        if _elsewhere(asked) or traced:
            within = " with selection: it trains in this process, and keeps nothing but the best"
            leave_out({"engine": asked.engine}, within)
        if asked.out is not None:
            refuse_overwriting(asked.out)
        with in_file(asked.config):
            plan = plan_selection(cells, selection)
        if asked.dry_run:
            print_planned(asked.config, plan, json=asked.json)
        else:
            run_selection(asked.config, plan, _folder(asked.config, asked.out), _key(asked), json=asked.json)
        return
    leave_out({"sign": asked.sign}, " of a sweep: sign the certificate of a run")
    leave_out({"dry_run": asked.dry_run or None}, " of a sweep: it shows one run")
    out = _folder(asked.config, asked.out)
    if traced:
        cells = tuple(replace(cell, config=_with_trace(cell.config, asked)) for cell in cells)
    engine = engine_of(asked.engine, asked.address, asked.workers)
    run_sweep(cells, out, engine, asked.timeout, resume=asked.resume, json=asked.json)


def _one(asked: SimpleNamespace, traced: bool) -> None:
    """One run, or what it would be."""
    from reticent.training import load_config

    if _elsewhere(asked):
        raise ParameterError("sweep", None, "given: engines, --timeout and --resume are for a sweep", shown=False)
    config, table = asked.config, None
    if asked.data is None:
        of_data = {name: getattr(asked, name) for name in ("label", "sensitive", "schema")}
        leave_out(of_data, " unless --data is given")
    if asked.out is not None and asked.checkpoint is None:
        refuse_overwriting(asked.out)
    if asked.data is not None:
        config, settings, table = _own(asked)
        for line in table.changed:
            click.echo(f"! {line}", err=asked.json)
    elif config is None:
        raise ArtifactError("give a configuration, or a table of your own: --data people.csv --label COLUMN")
    else:
        settings = load_config(config)
    settings = _with_trace(settings, asked) if traced else settings
    key = _key(asked)
    if asked.dry_run:
        require_torch()
        print_plan(config, settings, table, json=asked.json)
        return
    out = _folder(config, asked.out)
    kept = {"checkpoint": asked.checkpoint, "checkpoint_every": asked.checkpoint_every}
    run = train_with_bar(config, settings, out, table=table, sign=key, **kept)
    if asked.json:
        click.echo(run.ledger.to_json(), nl=False)
        return
    say(*_summary(run.ledger, out), indent=2)


def _key(asked: SimpleNamespace) -> Ed25519PrivateKey | None:
    return None if asked.sign is None else private_key(asked.sign)


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


def train_with_bar(config: Path, settings: TrainConfig, out: Path, **more: Any) -> Run:
    """Train with a progress bar; what does not fit is reported as a key of the configuration.

    Args:
        config: what to call the configuration in messages.
        settings, out, more: as for ``reticent.training.train``.
    """
    require_torch()
    from reticent.training import train

    with in_file(config), progress_bar(f"training {config.stem}") as progress:
        return train(settings, out, progress, **more)


def _own(asked: SimpleNamespace) -> tuple[Path, TrainConfig, OwnTable]:
    """What to call the run in messages, its configuration, and the records of the user."""
    from reticent.data.own import declared_columns, load_table  # whatever is wrong with a table needs no torch

    config, data, label, schema = asked.config, asked.data, asked.label, asked.schema
    if label is None and data.suffix != ".npz":
        raise ParameterError("label", None, "given with --data: the column to predict", shown=False)
    with limited(data, option=""):  # before torch is loaded, which takes longer
        table = load_table(data, label or "label", None if schema is None else declared_columns(schema))
    require_torch()
    from reticent.training.own import own_config

    document = None if config is None else yaml.load_file(config)
    where = config or data
    return where, own_config(document, table, asked.sensitive, str(where)), table


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


def _with_trace(config: TrainConfig, asked: SimpleNamespace) -> TrainConfig:
    from reticent.training.config import TraceConfig

    every = checks.count(trace_every=asked.trace_every)
    return config.model_copy(update={"trace": TraceConfig(every=every, masks=asked.trace_masks)})
