"""The parameters of an attacker as JSON data, and back; everything is checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from typing import Any, get_type_hints

import numpy as np

from reticent.kernel.adversaries.base import ADVERSARIES, Adversary
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError
from reticent.kernel.registry import Parameter, parameters_of
from reticent.mechanisms.codec import value_of

_MOST_POINTS = 4096


def parameters(adversary: Adversary) -> dict[str, str | float | dict[str, Any] | None]:
    """What defines the adversary beyond its name, so that anybody can assess it again.

    What was measured on data (a sensitivity record, a law of susceptibilities, a spectrum) is an object that
    names its kind.
    """
    known = {field.name: getattr(adversary, field.name) for field in fields(adversary)}  # type: ignore[arg-type]
    return {name: _record(value) for name, value in known.items()}


def adversary_of(name: str, record: Mapping[str, Any]) -> Adversary:
    """The attacker of this name with the parameters of a record.

    Raises:
        ArtifactError: there is none, or a parameter is none of its own or outside its domain.
    """
    kind = kind_of(name)
    known = {parameter.name: parameter for parameter in parameters_of(kind)}
    try:
        return kind(**{name: _read(known[name], value) for name, value in record.items()})
    except (ReticentError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(f"{name}: {error}") from None


def kind_of(name: str) -> type[Adversary]:
    """The attackers of this name, as a document spells it.

    Raises:
        ArtifactError: there is none.
    """
    if name not in ADVERSARIES:
        raise ArtifactError(f"unknown attacker {name[:100]!r}: this version knows {', '.join(ADVERSARIES)}")
    return ADVERSARIES[name]


def _record(value: Any) -> Any:
    if not is_dataclass(value):
        return value
    return {"kind": type(value).__name__, **{name: _plain(item) for name, item in asdict(value).items()}}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read(parameter: Parameter, value: Any) -> Any:
    """A number, or what was measured, as an object that names its kind."""
    if value is not None and not isinstance(value, dict) and parameter.measured and not parameter.typeable:
        raise ParameterError(parameter.name, value, "what was measured: an object that names its kind")
    if not isinstance(value, dict):
        return value if value is None else value_of(parameter, value)
    measured = dict(value)
    name = measured.pop("kind", None)
    kind = {known.__name__: known for known in parameter.measured}[str(name)]
    for points in measured.values():
        if isinstance(points, list) and len(points) > _MOST_POINTS:
            raise ParameterError("parameters", len(points), f"lists of at most {_MOST_POINTS} numbers")
    hints = get_type_hints(kind)
    return kind(**{name: _measured(hints.get(name), value) for name, value in measured.items()})


def _measured(hint: Any, value: Any) -> Any:
    """A field of a measurement: null means infinity unless the field may be None, words name an enumeration's."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint is float and value is None:
        return math.inf
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and hint is not int else value
