"""Record the sensitivity of one attribute along a run, and keep it with the run, privately."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from reticent.adversaries.attribute import Scope, SensitivityRecord
from reticent.errors import ArtifactError, ParameterError
from reticent.io import strict
from reticent.sensitivity import SensitiveAttribute
from reticent.training.config import SensitiveConfig
from reticent.training.hooks import RunContext
from reticent.training.recorder import AttributeHook

SENSITIVITY = "sensitivity.json"


class SensitivityFileHook(AttributeHook):
    """An ``AttributeHook`` from a configuration, which writes what it recorded into the run directory.

    The file depends on private data. ``RunLedger.public`` and public certificates leave it out.
    """

    def __init__(self, config: SensitiveConfig, attribute: SensitiveAttribute) -> None:
        audit = np.arange(config.records) if config.scope is Scope.AUDIT_SET and config.records else None
        whole = config.scope is Scope.WHOLE_DATA
        super().__init__(attribute, audit=audit, whole=whole, budget=config.budget, every=config.every)
        self._records = config.records
        self._directory: Path | None = None

    def start(self, context: RunContext) -> None:
        """Attach to the model of the run.

        Raises:
            ParameterError: the audit set is larger than the training data.
        """
        self._directory = context.directory
        count = len(context.train_labels)
        if self._records is not None and self._records > count:
            raise ParameterError("sensitive.records", self._records, f"at most {count}, the training records")
        super().start(context)

    def finish(self) -> None:
        """Write the record; nothing where no step ran."""
        if self.recorder is not None and self._directory is not None:
            document = {"schema": "reticent.sensitivity/1", **asdict(self.recorder.record())}
            (self._directory / SENSITIVITY).write_text(strict.dumps(document), encoding="utf-8")


def parse_sensitivity(text: str, where: str) -> SensitivityRecord:
    """Read a record back.

    Raises:
        ArtifactError: the text is not strict JSON or not such a record.
    """
    document = strict.loads(text, where)
    try:
        fields = dict(document)
        if fields.pop("schema") != "reticent.sensitivity/1":
            raise ValueError("unknown schema")
        return SensitivityRecord(**{**fields, "scope": Scope(fields["scope"])})
    except (KeyError, TypeError, ValueError, ParameterError) as error:
        raise ArtifactError(f"{where}: not a sensitivity record ({error})") from None
