"""Several mechanisms, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeGuard

from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms.base import Mechanism
from reticent.kernel.mechanisms.dpsgd import DPSGD
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Condition, condition

_DRAWING = {"hidden-draws", "drawn-setting", "hidden-runs"}
"""Keys of conditions of a part whose risk is less because of what chance drew for it."""


@dataclass(frozen=True, slots=True, repr=False)
class Ledger(Mechanism):
    """Several mechanisms run one after the other on the same data.

    What a later one computes may depend on what earlier ones released. Which mechanisms they are, and with which
    parameters, may not: composition holds for a plan (DONG2022:Theorem 3.2), not for one that reacts (TRAN2026:F1).

    Attributes:
        parts: the mechanisms in the order in which they ran, at least one; a list becomes a tuple, and a ledger among
            them its own parts. Where one protects all records of a person together, all do, and for as many records.

    Raises:
        ParameterError: there is no part, or one is no mechanism.

    Example:
        >>> import reticent as rt
        >>> twice = rt.Ledger((rt.Gaussian(2.0), rt.Gaussian(2.0)))
        >>> round(rt.WorstCase().assess(twice).measure(rt.advantage).value, 4)
        0.2763
    """

    parts: tuple[Mechanism, ...] = field()

    name: ClassVar[str] = "ledger"

    def __init__(self, parts: Sequence[Mechanism], *more: Mechanism) -> None:
        if more:
            raise ParameterError("parts", f"{len(more) + 1} arguments", "in one tuple: Ledger((one, other))")
        if isinstance(parts, Mechanism):
            raise ParameterError("parts", type(parts).__name__, "several mechanisms: Ledger((one, other))")
        if not isinstance(parts, (tuple, list)):
            raise ParameterError("parts", parts, "a tuple of mechanisms")
        if not parts:
            raise ParameterError("parts", parts, "at least one mechanism")
        for part in parts:
            if not isinstance(part, Mechanism):
                raise ParameterError("parts", part, "mechanisms")
        object.__setattr__(self, "parts", tuple(one for part in parts for one in part.parts))
        stated = {part.records_per_user for part in self.parts}
        if len(stated) > 1 and any(records is not None and records > 1 for records in stated):
            raise ParameterError("records_per_user", sorted(stated, key=str), "the same in all parts")
        units = {part.unit for part in self.parts}
        if len(units) > 1:
            raise ParameterError("unit", sorted(units), "the same in all parts")

    def parts_under(self, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """See ``Mechanism``. Whether parts that keep hidden steps share their draw, both ends leave open."""
        kept: dict[type, list[DPSGD]] = {}
        for part in () if attained else filter(_keeps, self.parts):
            kept.setdefault(type(part.sampler), []).append(part)
        joined = (found for runs in kept.values() for found in runs[0].sampler.joined(runs, neighbouring))
        rest = (part for part in self.parts if attained or not _keeps(part))
        return (*joined, *(found for part in rest for found in part.parts_under(neighbouring, attained=attained)))

    @property
    def steps(self) -> int:
        return sum(part.steps for part in self.parts)

    def scaled(self, factor: float) -> Ledger:
        return Ledger(tuple(part.scaled(factor) for part in self.parts))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of all parts, each once; that nobody chose parts by looking at results, nor drew for two at once."""
        each = tuple(one for part in self.parts for one in part.conditions)
        drawing = [part for part in self.parts if _DRAWING & {one.key for one in part.conditions}]
        anew = len(drawing) > (2 if all(map(_keeps, drawing)) else 1)
        joint = ("fixed-plan", *(("drawn-anew",) if anew else ())) if len(self.parts) > 1 else ()
        return tuple(dict.fromkeys((*each, *map(condition, joint))))


def _keeps(part: Mechanism) -> TypeGuard[DPSGD]:
    """Whether its hidden draws may be those of another run too."""
    return isinstance(part, DPSGD) and part.sampler.keeps(part)


def together(parts: Sequence[Mechanism]) -> Mechanism:
    """All of these, one after the other: a ledger of several, or the one that there is."""
    return parts[0] if len(parts) == 1 else Ledger(tuple(parts))
