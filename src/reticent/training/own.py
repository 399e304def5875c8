"""The configuration of a training on a table of one's own."""

from __future__ import annotations

from typing import Any

from reticent.data.own import OwnTable
from reticent.data.own_columns import MISSING
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import one_of
from reticent.training.config import TrainConfig, parse_config
from reticent.training.config_data import OWN, TableConfig

DEFAULTS: dict[str, Any] = {
    "model": {"kind": "logistic"},
    "target": {"epsilon": 3.0, "delta": 1e-5},
    "epochs": 20,
    "learning_rate": 0.5,
}
"""What is trained where a table is given without a configuration."""

_BATCHES = 10


def own_config(document: dict[str, Any] | None, table: OwnTable, sensitive: str | None, where: str) -> TrainConfig:
    """The configuration of a run on ``table``.

    Args:
        document: a configuration without ``data``, or None for the defaults: logistic regression, epsilon at most 3
            at delta 1e-5, 20 epochs of ten batches.
        sensitive: a column whose effect on the model is recorded along the run, privately.
        where: names the document in messages.

    Raises:
        ArtifactError: the document names other data or another ``records_per_user``, or is no configuration.
        ParameterError: there is no such sensitive column, or its numbers may be missing.
    """
    fields = dict(DEFAULTS if document is None else document)
    if "data" in fields and not (isinstance(fields["data"], dict) and "name" not in fields["data"]):
        raise ArtifactError(f"{where}: data.name must be left out: the records come from --data")
    if document is None:
        fields["batch_size"] = max(1, len(table.dataset.train) // _BATCHES)
    kept = table.schema.records_per_user
    if kept is not None and fields.setdefault("records_per_user", kept) != kept:
        raise ArtifactError(f"{where}: records_per_user must be left out, or {kept}, as the schema of --data says")
    if sensitive is not None:
        fields["sensitive"] = {"group": _measurable(table, sensitive)}
    fields["data"] = {
        **fields.get("data", {}),
        "name": OWN,
        "table": named(table).model_dump(),
    }
    return parse_config(fields, where)


def named(table: OwnTable) -> TableConfig:
    """The table as a configuration names it."""
    sums = {"file_sha256": table.file_sha256, "schema_sha256": table.schema_sha256}
    return TableConfig(file=table.file, **sums, derived=table.schema.derived)


def _measurable(table: OwnTable, sensitive: str) -> str:
    """The attribute to be measured. What is not changed with it, whether it is missing, would not be covered."""
    names = [group.name for group in table.dataset.groups]
    if sensitive not in names:
        raise ParameterError("sensitive", sensitive, one_of(sensitive, names))
    if sensitive.endswith(MISSING) or f"{sensitive} {MISSING}" in names:
        raise ParameterError("sensitive", sensitive, "a column of numbers without missing: indicator")
    return sensitive
