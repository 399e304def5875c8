"""Limits on the gradients of a public pool that ``reticent train`` held to at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from reticent.facts.base import section

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


class Limits(NamedTuple):
    """What was held to.

    Attributes:
        mean_gradient: root mean square over the planned steps of the length of the pool's mean gradient.
        second_moment: largest mean of <g, e>^2 along a direction, at every step; both in clip norms.
        record_label: ``known`` where the candidates of each label kept within them by themselves.
    """

    mean_gradient: float
    second_moment: float
    record_label: Literal["known", "unknown"]


def limits_of(ledger: RunLedger) -> Limits | None:
    """The limits of a run that was asked to hold to some; None where none were, or where it continues another.

    A run ends before a step that would break them (``reticent.training.spread``).
    """
    asked = section(ledger.asked, "spread")
    if not asked or ledger.earlier or ledger.changes:
        return None
    label: Literal["known", "unknown"] = "known" if asked["each_label"] else "unknown"
    return Limits(float(asked["mean_gradient"]), float(asked["second_moment"]), label)
