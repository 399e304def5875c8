"""The neighbouring relation: between which two data sets a pair of laws is meant."""

from __future__ import annotations

from enum import StrEnum

from reticent.kernel import checks


class Neighbouring(StrEnum):
    """The neighbouring relation.

    Contributions of one record have norm at most 1 (in units of the clip norm), so a sum moves by
    at most 1 under ``ADD_REMOVE`` and ``ZERO_OUT`` and by at most 2 under ``REPLACE``. A value of one
    relation must never be compared with a value of another.
    """

    ADD_REMOVE = "add-remove"
    """One record is in or out; the guarantee covers both directions (the worse)."""
    REPLACE = "replace"
    """One record has one of two values; sizes agree. Game 2 of CHERUBIN2024."""
    ZERO_OUT = "zero-out"
    """One record is kept or its contribution is set to zero; sizes agree."""

    @property
    def sensitivity(self) -> float:
        """How far a sum of contributions of norm at most 1 can move."""
        return 2.0 if self is Neighbouring.REPLACE else 1.0


def relation_of(stated: Neighbouring | str | None) -> Neighbouring | None:
    """The relation that was stated, by its name or as it is; None leaves it to each attacker.

    Raises:
        ParameterError: no relation has this name.
    """
    return None if stated is None else checks.member(Neighbouring, neighbouring=stated)
