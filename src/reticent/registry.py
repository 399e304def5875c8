"""Catalogues: kinds by name, and the parameters of a kind from its dataclass fields.

A mechanism or an attacker is a frozen dataclass in a file of its own. The command line, the dashboard,
certificates and the documentation take their lists from here, so that none of them can forget one.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from reticent.errors import ParameterError
from reticent.keywords import hinting
from reticent.text import one_of

Kind = TypeVar("Kind")
_PLAIN = (int, float, bool, str)


@dataclass(frozen=True, slots=True)
class Search:
    """Where calibration may look for a parameter.

    Attributes:
        low: the smallest value, > 0.
        high: the largest.
        risk_grows: whether risk grows with the parameter; a theorem, not a guess.
    """

    low: float
    high: float
    risk_grows: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a mechanism or an attacker.

    Attributes:
        name: of the field.
        kind: ``float``, ``int``, ``bool``, ``str`` or a ``StrEnum``: what can be typed; ``NoneType`` if nothing can be.
        help: one sentence for people.
        option: the name on the command line, without dashes in front.
        required: no default exists.
        default: None where there is none, or where the default says "not given".
        measured: dataclasses that the field takes as well, which can only be measured.
        search: where calibration may look for it; None where it may not.
    """

    name: str
    kind: type
    help: str
    option: str
    required: bool
    default: Any
    measured: tuple[type, ...] = ()
    search: Search | None = None

    @property
    def typeable(self) -> bool:
        """Whether a person can type a value, rather than measure one."""
        return self.kind is not types.NoneType

    @classmethod
    def in_place(cls, name: str, kind: type, help: str) -> Parameter:
        """Something that may be typed in place of fields."""
        return cls(name, kind, help, name.replace("_", "-"), required=False, default=None)


def described(help: str, *, option: str | None = None, search: Search | None = None) -> dict[str, Any]:
    """``metadata`` of a dataclass field that people may set.

    Args:
        help: one sentence for people.
        option: where the command line has another name for it.
        search: where calibration may look for it.
    """
    return {"help": help, "option": option, "search": search}


@cache
def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """The parameters of a frozen dataclass that can be typed, in the order of its fields."""
    hints = get_type_hints(kind)
    return tuple(_parameter(known, hints[known.name]) for known in fields(kind) if known.init and known.metadata)


def _parameter(known: Any, hint: Any) -> Parameter:
    choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    required = known.default is MISSING
    return Parameter(
        name=known.name,
        kind=next((kind for kind in choices if kind in _PLAIN or issubclass(kind, StrEnum)), types.NoneType),
        help=known.metadata["help"],
        option=known.metadata["option"] or known.name.replace("_", "-"),
        required=required,
        default=None if required else known.default,
        measured=tuple(kind for kind in choices if isinstance(kind, type) and is_dataclass(kind)),
        search=known.metadata["search"],
    )


def typed(parameter: Parameter, value: Any) -> Any:
    """What was typed for a parameter, as its type.

    Raises:
        ParameterError: it is no member of an enumeration; the message lists those.
    """
    if not issubclass(parameter.kind, StrEnum):
        return value
    try:
        return parameter.kind(value)
    except ValueError:
        raise ParameterError(parameter.name, value, one_of(value, parameter.kind)) from None


class Registry(Mapping[str, type[Kind]], Generic[Kind]):
    """Kinds by name, in the order in which they are shown.

    Args:
        what: what is listed, for error messages.
        package: where the built-in kinds live.
        modules: the files of the built-in kinds, in order; they are imported when the list is first needed.
    """

    def __init__(self, what: str, package: str, modules: tuple[str, ...]) -> None:
        self._what, self._package, self._modules = what, package, modules
        self._kinds: dict[str, type[Kind]] = {}

    def add(self, kind: type[Kind]) -> type[Kind]:
        """List ``kind`` under its ``name``; a class decorator.

        Raises:
            ParameterError: another kind has the name already.
        """
        name: str = kind.name  # type: ignore[attr-defined]
        known = self._kinds.setdefault(name, kind)
        if known.__qualname__ != kind.__qualname__:  # dataclasses with slots make a class twice
            raise ParameterError("name", name, f"a name that no other {self._what} has")
        kind.__init__ = hinting(kind.__init__)  # type: ignore[method-assign]
        self._kinds[name] = kind
        return kind

    def remove(self, name: str) -> None:
        """Take one off the list again."""
        del self._kinds[name]

    def find(self, name: str, option: str, *more: str) -> type[Kind]:
        """The kind called ``name``.

        Args:
            name: as typed.
            option: what the error calls the argument.
            more: words that are allowed besides the names.

        Raises:
            ParameterError: there is none; the message lists all, the nearest first asked about.
        """
        known = self._loaded()
        if name in known:
            return known[name]
        raise ParameterError(option, name, one_of(name, [*known, *more]))

    def _loaded(self) -> dict[str, type[Kind]]:
        built_in = [import_module(f"{self._package}.{module}").__name__ for module in self._modules]
        place = {module: index for index, module in enumerate(built_in)}
        ordered = sorted(self._kinds.items(), key=lambda item: place.get(item[1].__module__, len(place)))
        return dict(ordered)

    def __getitem__(self, name: str) -> type[Kind]:
        return self._loaded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())
