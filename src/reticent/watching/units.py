"""Whom a watched loop protects."""

from __future__ import annotations

from reticent.errors import ParameterError
from reticent.mechanisms.units import Unit
from reticent.text import one_of


def unit_of(said: str, *, private: bool, records_per_user: int | None) -> Unit:
    """The unit that is meant.

    Args:
        said: its name.
        private: whether an optimizer is watched that clips the gradients of records.
        records_per_user: what is stated about persons.

    Raises:
        ParameterError: there is none of this name, or clients contradict what is seen or stated.
    """
    if said not in set(Unit):
        raise ParameterError("unit", said, one_of(said, Unit))
    unit = Unit(said)
    if unit is Unit.CLIENT and private:
        raise ParameterError("unit", said, "record: Opacus's optimizer clips records, and not the updates of clients")
    if unit is Unit.CLIENT and records_per_user is not None:
        hint = "left out with unit client: a client is protected with all its records"
        raise ParameterError("records_per_user", records_per_user, hint, shown=False)
    return unit
