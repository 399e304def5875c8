"""What is found about a relaxed attacker on the way to an assessment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reticent.accountants import worst_case
from reticent.adversaries.worst_case import worst_case_theorems
from reticent.curves.enclosure import Enclosure
from reticent.mechanisms import Ledger, Mechanism, Neighbouring


@dataclass(frozen=True, slots=True)
class Answer:
    """The enclosure, the keys of what it stands on, what it needs of data or attacker, and what else is to be said.

    Attributes:
        floor: whether mu of the worst case is reached from below, where errors are rare: the direction does not
            matter there.
        average: whether the number is an average over one direction.
    """

    truth: Enclosure
    keys: tuple[str, ...]
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    floor: bool = True
    average: bool = True

    def over(self, other: Answer) -> Answer:
        """This enclosure with the lower end of ``other``."""
        return replace(self, truth=Enclosure(self.truth.pessimistic, other.truth.optimistic))

    def below_unknown(self) -> Answer:
        """The same with nothing claimed from below."""
        return replace(self, truth=Enclosure.from_above(self.truth.pessimistic, self.truth.notes))

    def saying(self, *notes: str) -> Answer:
        """The same with more to be said."""
        return replace(self, notes=(*self.notes, *notes))

    def standing_on(self, *keys: str) -> Answer:
        """The same with more theorems."""
        return replace(self, keys=(*self.keys, *keys))


def no_relaxed_curve(mechanism: Mechanism, neighbouring: Neighbouring) -> Answer:
    """The worst case, with a note that no relaxed curve is proven."""
    what = "a ledger of several mechanisms" if isinstance(mechanism, Ledger) else "this release and relation"
    note = (
        f"No relaxed curve is proven for {what}: the answer is the worst case with its own enclosure, which is always "
        "safe. How much less this attacker reaches is not known."
    )
    return Answer(
        worst_case(mechanism, neighbouring), worst_case_theorems(mechanism, neighbouring), (note,), average=False
    )
