"""``reticent train --dry-run``: columns, model, cost and risk of a run that is not trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.cli._tables import print_json, print_risk, print_table, say
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import digits, printable

if TYPE_CHECKING:
    from reticent.adversaries.report import RiskDocument
    from reticent.data.own import OwnTable
    from reticent.kernel.mechanisms import Mechanism
    from reticent.training import TrainConfig

SCHEMA = "reticent.plan/1"


def print_plan(config: Path, settings: TrainConfig, table: OwnTable | None, *, json: bool) -> None:
    """Say what would be trained; nothing is written.

    Args:
        config: what to call the configuration in messages.
        table: the records, if the user brings them.
        json: print strict JSON instead.

    Raises:
        ArtifactError: the configuration does not fit the records.
    """
    from reticent.training.run import cost_of
    from reticent.training.settings import release_of
    from reticent.training.setup import divided, load_dataset, make_settings

    with in_file(config):
        records = load_dataset(settings.data) if table is None else divided(table.dataset, settings.data)
        planned = make_settings(settings, len(records.train))
        release = release_of(planned, settings.records_per_user)
        cost = cost_of(settings, records, planned)
    risk = risk_of(release)
    columns = [] if table is None else _columns(table)
    model = settings.model.model_dump(mode="json")
    if json:
        document: dict[str, Any] = {"schema": SCHEMA, "columns": columns, "model": model, "cost": asdict(cost)}
        document["noise_multiplier"] = planned.noise_multiplier
        document["risk"] = risk.model_dump(mode="json", by_alias=True)
        print_json(document)
        return
    if columns:
        _print_columns(columns)
    kind = ", ".join(f"{key} {value}" for key, value in model.items())
    say(f"model: {kind}; {cost.num_parameters} trained parameters; {records.classes} classes", indent=2)
    say(
        f"cost: {cost.steps} steps of about {cost.batch_size:.6g} of {cost.records} records, "
        f"{cost.gradients:.4g} gradients, about {duration(cost.seconds)} on this machine",
        indent=2,
    )
    say(
        f"noise multiplier {digits(planned.noise_multiplier, 6, up=False)}, clip norm {planned.max_grad_norm:.6g}",
        indent=2,
    )
    print_risk(risk, full=True)
    say("dry run: nothing was trained or written")


def risk_of(release: Mechanism) -> RiskDocument:
    """The worst case, as every door shows it."""
    from reticent.verbs.risks import assess

    return assess(release).document


@contextmanager
def in_file(config: Path) -> Iterator[None]:
    """What does not fit is a mistake in the configuration, and names its file.

    Raises:
        ArtifactError: a parameter is out of its domain.
    """
    try:
        yield
    except ParameterError as error:
        raise ArtifactError(f"{config}: {error}") from None


def _columns(table: OwnTable) -> list[dict[str, Any]]:
    schema = table.schema
    return [
        {
            "column": name,
            "role": "label" if name == schema.label else "feature",
            "holds": "categories" if column.values is not None else "numbers",
            "says": column.says(),
            "missing": column.missing.value,
            "source": "records" if column.derived else "declared",
            "features": 0 if name == schema.label else column.width,
        }
        for name, column in schema.columns.items()
    ]


def _print_columns(columns: list[dict[str, Any]]) -> None:
    def texts(key: str) -> list[str]:
        return [printable(row[key], 48) for row in columns]

    names = [("column", texts("column")), ("holds", texts("holds"))]
    more = [(key, texts(key)) for key in ("says", "missing", "source", "features")]
    print_table("columns, the label with no features", names, more)
    read = [row["column"] for row in columns if row["source"] == "records"]
    if read:
        shown = ", ".join(printable(name, 60) for name in read[:20])
        say(f"! read off the records, so not covered by any number: {shown}; declare them with --schema", indent=2)


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 1.0:
        return "a second"
    return f"{seconds:.2g} seconds" if seconds < 90.0 else f"{seconds / 60.0:.2g} minutes"
