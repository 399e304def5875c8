"""Whom the numbers protect together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    return {} if run.records_per_user is None else {"records-per-person": Status.DECLARED}


PERSONS = Fact("records-per-person", Severity.NOTE, vouches=_vouches)
