"""What an attacker is shown of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.facts.spread import Limits
    from reticent.mechanisms.gradients import GradientsRecord


class Witness(Protocol):
    """A ledger: what it saw of the model, and for which conditions it vouches."""

    @property
    def gradients(self) -> GradientsRecord | None:
        """What the form of the model says about gradients; None where nobody looked."""

    @property
    def contraction(self) -> float | None:
        """By which factor the updates contract, where it is established and only the last weights were kept."""

    @property
    def unequal_updates(self) -> str | None:
        """What was seen that keeps updates from being equal (condition ``equal-updates``); None where nothing was."""

    @property
    def spread(self) -> Limits | None:
        """The limits that gradients of a public pool kept at every step; None where none were held to."""

    @property
    def looks_to_stop(self) -> bool:
        """Whether a look at private gradients could end the training (condition ``same-stop``)."""

    def rearranges(self, neighbouring: Neighbouring) -> bool:
        """Whether a record may have decided who else was in a batch (condition ``kept-places``)."""

    def vouches(self) -> dict[str, Status]:
        """Statuses of conditions, by key."""
