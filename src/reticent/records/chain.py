"""Where a watched loop began: the start weights, and the watched loops that led to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent.kernel.errors import ParameterError
from reticent.records.publication import published

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

MOST_EARLIER = 512


def follows(later: RunLedger, first: RunLedger) -> bool:
    """Whether ``later`` began at the weights at which ``first`` ended."""
    salt = None if later.diagnostics is None else later.diagnostics.start_salt
    return later.start is not None and later.start.opened_by(salt, first.weights_sha256)


def continued(first: RunLedger, later: RunLedger) -> RunLedger:
    """The ledger of both loops: that of the later one, with the earlier one in it.

    Raises:
        ParameterError: the later one began elsewhere, or the two are about different people.
    """
    if later.start is None or later.diagnostics is None or not follows(later, first):
        raise ParameterError(
            "ledgers", "two that do not meet", "each to begin at the weights where the one before ends"
        )
    if later.earlier:
        raise ParameterError(
            "ledgers", "a later one that continues another", "in the order in which they ran, each once"
        )
    if later.records_per_user != first.records_per_user:
        raise ParameterError("records_per_user", later.records_per_user, "the same in all ledgers of one model")
    if later.unit != first.unit:
        raise ParameterError("unit", later.unit, "the same in all ledgers of one model")
    before = (*first.earlier, alone(first))
    if len(before) > MOST_EARLIER:
        raise ParameterError("ledgers", len(before) + 1, f"at most {MOST_EARLIER + 1} loops in one chain")
    start = later.start.model_copy(update={"salt": later.diagnostics.start_salt})
    return later.model_copy(update={"earlier": before, "start": start}).sealed()


def alone(run: RunLedger) -> RunLedger:
    """One loop in public, without those that it continues."""
    return published(run.model_copy(update={"earlier": ()}))


def chained(ledgers: Sequence[RunLedger]) -> RunLedger | None:
    """One ledger of loops that ran one after the other on one model; None where they did not.

    Args:
        ledgers: at least one, in the order in which they ran. Each may hold those before it already.
    """
    whole = ledgers[0]
    for later in ledgers[1:]:
        try:
            whole = later if holds(later, whole) else continued(whole, later)
        except ParameterError:
            return None
    return whole


def holds(later: RunLedger, first: RunLedger) -> bool:
    """Whether a ledger holds another one among those that it continues."""
    return alone(first).digest in {run.digest for run in later.earlier}
