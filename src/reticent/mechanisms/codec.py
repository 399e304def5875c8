"""A mechanism as JSON data, and back: what comes back is checked, and small enough to be computed with."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError
from reticent.kernel.mechanisms import MECHANISMS, Ledger, Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.registry import Parameter, flat, gathered, parameters_of, typed
from reticent.mechanisms import OneOf, Selection
from reticent.pairs.runs import runs_called

_MOST_PARTS = 64
_LARGEST_COUNT = 10**12
_MOST_WORK = 1e8
"""Numbers: some seconds, and less than a gigabyte."""


def mechanism_record(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism as plain data, with its kind."""
    if isinstance(mechanism, Ledger):
        return {"kind": mechanism.name, "parts": [mechanism_record(part) for part in mechanism.parts]}
    if mechanism.weights:
        settings = [mechanism_record(one) for one in mechanism.settings]
        return {"kind": mechanism.name, "settings": settings, "weights": list(mechanism.weights)}
    if mechanism.runs is not None:
        return {"kind": mechanism.name, "base": mechanism_record(mechanism.base), "runs": runs_record(mechanism.runs)}
    usual = {"unit": Unit.RECORD, "copies": None}  # nothing is said where a record is a record, listed once
    said = {name: value for name, value in flat(mechanism).items() if name not in usual or value != usual[name]}
    return {"kind": mechanism.name, **said}


def mechanism_of(record: dict[str, Any]) -> Mechanism:
    """The mechanism that a record describes.

    Raises:
        ArtifactError: it describes none, or one beyond every use we know.
    """
    fields = dict(record)
    kind: Any = fields.pop("kind", None)
    try:
        if kind == "ledger":
            return within_reach(Ledger(tuple(mechanism_of(part) for part in _parts(fields))))
        if kind == Selection.name:
            return within_reach(_selection(**fields))
        if kind == OneOf.name:
            return within_reach(_one_of(**fields))
        known = MECHANISMS.find(kind, "kind")
        spelt = fields.keys() <= {parameter.name for parameter in parameters_of(known)}
        for parameter in parameters_of(known):
            if spelt and parameter.required and fields.get(parameter.name) is None:
                raise ParameterError(parameter.name, None, "given", shown=False)
            if fields.get(parameter.name) is not None:
                fields[parameter.name] = value_of(parameter, fields[parameter.name])
        mechanism = known(**gathered(known, fields))
    except (ReticentError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(f"mechanism: {error}") from None
    return within_reach(mechanism)


def within_reach(mechanism: Mechanism) -> Mechanism:
    """The same mechanism, if a document from outside may ask for what it takes to derive it.

    Raises:
        ArtifactError: it takes too much.
    """
    if mechanism.work > _MOST_WORK:
        asked = f"goes through about {mechanism.work:.0e} numbers"
        raise ArtifactError(f"mechanism: {asked}, more than the {_MOST_WORK:.0e} that a document may ask for")
    return mechanism


def value_of(parameter: Parameter, value: Any) -> Any:
    """The value of a parameter as its type; whole numbers are written without a point: 4 is 4.0 again.

    Raises:
        ParameterError, ValueError: it is a count beyond every use, or no member of an enumeration.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value > _LARGEST_COUNT:
        raise ParameterError(parameter.name, value, f"at most {_LARGEST_COUNT:g}")
    if parameter.leaves is not None:
        return typed(parameter, value)
    if issubclass(parameter.kind, StrEnum):
        return parameter.kind(value)
    if parameter.kind is int and isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_COUNT:
        return int(value)
    return float(value) if whole and parameter.kind is not int else value


def _selection(base: dict[str, Any], runs: dict[str, Any]) -> Selection:
    return Selection(mechanism_of(base), runs_of(runs))


def runs_record(runs: Any) -> dict[str, Any]:
    """How many runs there are of which the best is released, as plain data."""
    kind: type = type(runs)
    return {"kind": runs.name, **{p.name: getattr(runs, p.name) for p in parameters_of(kind)}}


def runs_of(record: dict[str, Any]) -> Any:
    """The same back.

    Raises:
        KeyError, ParameterError, TypeError: it is no such record.
    """
    law = dict(record)
    kind: Any = runs_called(str(law.pop("kind")))
    known = {p.name: p for p in parameters_of(kind)}
    return kind(**{name: value_of(known[name], value) for name, value in law.items()})


def _one_of(settings: list[dict[str, Any]], weights: list[Any]) -> OneOf:
    if not all(isinstance(given, list) and len(given) <= _MOST_PARTS for given in (settings, weights)):
        raise ParameterError("settings", "given", f"a list of at most {_MOST_PARTS} mechanisms, with weights")
    whole = tuple(weight for weight in weights if isinstance(weight, int) and 0 < weight <= _LARGEST_COUNT)
    return OneOf(tuple(mechanism_of(one) for one in settings), whole)


def _parts(fields: dict[str, Any]) -> list[dict[str, Any]]:
    parts = fields["parts"]
    if set(fields) != {"parts"} or not isinstance(parts, list) or not 1 <= len(parts) <= _MOST_PARTS:
        raise ParameterError("parts", "given", f"the one field, a list of 1 to {_MOST_PARTS} mechanisms")
    if not all(isinstance(part, dict) and part.get("kind") != "ledger" for part in parts):
        raise ParameterError("parts", "given", "objects, none of them a ledger")
    return parts
