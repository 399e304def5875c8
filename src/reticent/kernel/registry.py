"""Catalogues: kinds by name, and the parameters of a kind from its dataclass fields.

A mechanism, an attacker, an attack or a statistic of audits is one class in a file of its own. The command line, the
dashboard, certificates and the documentation take their lists from here, so that none of them can forget one. The
built-in kinds are listed by the stub file of their package, those of other packages by their entry points. Both are
loaded when the list is first asked: a kind that is given as an object costs its own imports alone.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from reticent.kernel.errors import ExtensionError, ParameterError
from reticent.kernel.keywords import hinted
from reticent.kernel.lazy import kinds
from reticent.kernel.text import listed, one_of, stated

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

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
        leaves: what the field is one of, by the name that is typed; None where it is a value.
        start: what a form shows before anything is typed; empty where it may choose.
    """

    name: str
    kind: type
    help: str
    option: str
    required: bool
    default: Any
    measured: tuple[type, ...] = ()
    search: Search | None = None
    leaves: Registry[Any] | None = None
    start: str = ""

    @property
    def typeable(self) -> bool:
        """Whether a person can type a value, rather than measure one."""
        return self.kind is not types.NoneType

    @classmethod
    def in_place(cls, name: str, kind: type, help: str) -> Parameter:
        """Something that may be typed instead of fields."""
        return cls(name, kind, help, name.replace("_", "-"), required=False, default=None)


def described(
    help: str,
    *,
    option: str | None = None,
    search: Search | None = None,
    one_of: Registry[Any] | None = None,
    start: str = "",
) -> dict[str, Any]:
    """``metadata`` of a dataclass field that people may set.

    Args:
        help: one sentence for people.
        option: where the command line has another name for it.
        search: where calibration may look for it.
        one_of: where the field holds one of several dataclasses. People type its name, and its own fields beside it.
        start: what a form shows before anything is typed.
    """
    return {"help": help, "option": option, "search": search, "one_of": one_of, "start": start}


@cache
def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """The parameters of a frozen dataclass that can be typed, in the order of its fields.

    After a field that holds one of several dataclasses come the fields of these, which only some of them have.
    """
    hints, found = get_type_hints(kind), []
    for known in fields(kind):
        if known.init and known.metadata:
            found += [_parameter(known, hints[known.name]), *_own(known)]
    names = [p.name for p in found]
    for twice in (name for name in names if names.count(name) > 1):
        raise ExtensionError(f"{kind.__name__} and one of what it may hold have a field of one name: {twice}")
    return tuple(found)


def _own(known: Any) -> list[Parameter]:
    """The fields of what the field is one of."""
    leaves = known.metadata["one_of"] or {}
    each = {p.name: replace(p, required=False) for leaf in leaves.values() for p in parameters_of(leaf)}
    return list(each.values())


def flat(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass as documents and doors spell them: of a leaf its name, and its own fields beside it.

    Fields that it has not are None; those of leaves of other packages are left out then.
    """
    found: dict[str, Any] = {}
    for known in fields(thing):
        value, leaves = getattr(thing, known.name), known.metadata.get("one_of")
        found[known.name] = value if leaves is None else value.name
        for leaf in (leaves or {}).values():
            if leaf is type(value) or leaf.__module__.startswith("reticent."):
                found |= {p.name: getattr(value, p.name, None) for p in parameters_of(leaf)}
    return found


def told(thing: Any) -> dict[str, Any]:
    """The same, without what is at its default."""
    chosen = set(stated(thing))
    for known in (known for known in fields(thing) if known.metadata.get("one_of")):
        leaf = getattr(thing, known.name)
        chosen |= stated(leaf).keys()
        chosen -= {known.name} if type(leaf) is type(known.default) else set()
    return {name: value for name, value in flat(thing).items() if name in chosen}


def gathered(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass from how documents and doors spell them; a leaf may be given as such, too.

    Raises:
        ParameterError: a leaf is not known, lacks a field, or has none of this name.
    """
    found = dict(given)
    for known in fields(kind):
        leaves = known.metadata.get("one_of")
        if leaves is not None:
            own = {p.name: found.pop(p.name, None) for p in _own(known)}
            said = {name: value for name, value in own.items() if value is not None}
            leaf = found.get(known.name)
            found[known.name] = _leaf(known.name, leaves, known.default if leaf is None else leaf, said)
    return found


def _leaf(field: str, leaves: Any, leaf: Any, said: dict[str, Any]) -> Any:
    """The leaf that is called so, or the one that is given, with these fields."""
    if not isinstance(leaf, str) and type(leaf) not in leaves.values():
        raise ParameterError(field, leaf, one_of(leaf, leaves))
    made: Any = leaves.find(leaf, field) if isinstance(leaf, str) else type(leaf)
    taken = {p.name: p for p in parameters_of(made)}
    for name in (name for name in said if name not in taken):
        takers = [each for each, one in leaves.items() if name in {p.name for p in parameters_of(one)}]
        raise ParameterError(name, said[name], f"given with the {field} {listed(takers, 'or')}, and with no other")
    if not isinstance(leaf, str):
        return replace(leaf, **said)
    for name in (name for name, p in taken.items() if p.required and name not in said):
        raise ParameterError(name, None, f"given with the {field} {made.name}, and with no other", shown=False)
    return made(**said)


def _parameter(known: Any, hint: Any) -> Parameter:
    choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    required, leaves = known.default is MISSING, known.metadata["one_of"]
    choices = choices if leaves is None else (str,)
    return Parameter(
        name=known.name,
        kind=next((kind for kind in choices if kind in _PLAIN or issubclass(kind, StrEnum)), types.NoneType),
        help=known.metadata["help"],
        option=known.metadata["option"] or known.name.replace("_", "-"),
        required=required,
        default=None if required else known.default if leaves is None else known.default.name,
        measured=tuple(kind for kind in choices if isinstance(kind, type) and is_dataclass(kind)),
        search=known.metadata["search"],
        leaves=leaves,
        start=known.metadata["start"],
    )


def typed(parameter: Parameter, value: Any) -> Any:
    """What was typed for a parameter, as its type.

    Raises:
        ParameterError: it is not a member of an enumeration, or no name of a list; the message lists those.
    """
    if parameter.leaves is not None:
        return parameter.leaves.find(value, parameter.name).name
    if not issubclass(parameter.kind, StrEnum):
        return value
    try:
        return parameter.kind(value)
    except ValueError:
        raise ParameterError(parameter.name, value, one_of(value, parameter.kind)) from None


class Choice:
    """Base of the kinds of a registry that are dataclasses with slots: unknown keywords of theirs are answered."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):  # the class with slots is made from the one that ``dataclass`` has finished
            hinted(cls)


class Registry(Mapping[str, type[Kind]], Generic[Kind]):
    """Kinds by name, in the order in which they are shown: the built-in ones, then those of other packages.

    Args:
        what: what is listed, for error messages.
        group: of the entry points by which other packages add to the list.
        base: what each kind of another package must be a subclass of; None where a name and a method are enough.
        package: whose stub file lists the built-in kinds; None where they are added by hand.
    """

    def __init__(self, what: str, group: str, base: type[Kind] | None = None, package: str | None = None) -> None:
        self._what, self._group, self._base, self._package = what, group, base, package
        self._listed: dict[str, type[Kind]] = {}
        self._searched = False

    def add(self, kind: type[Kind]) -> type[Kind]:
        """List ``kind`` under its ``name``, after the built-in ones; a class decorator.

        Raises:
            ParameterError: another kind has the name already.
        """
        if self._package:
            self._kinds()
        return self._list(kind)

    def _list(self, kind: type[Kind]) -> type[Kind]:
        name: str = kind.name  # type: ignore[attr-defined]
        if self._listed.setdefault(name, kind) is not kind:
            raise ParameterError("name", name, f"a name that no other {self._what} has")
        parameters_of.cache_clear()
        return hinted(kind)

    def remove(self, name: str) -> None:
        """Take one off the list again."""
        del self._listed[name]
        parameters_of.cache_clear()

    def find(self, name: str, option: str, *more: str) -> type[Kind]:
        """The kind called ``name``.

        Args:
            option: what the error calls the argument.
            more: words that are allowed besides the names.

        Raises:
            ParameterError: there is none; the message lists all, the nearest first asked about.
        """
        if name in self:
            return self[name]
        raise ParameterError(option, name, one_of(name, [*self, *more]))

    def _kinds(self) -> dict[str, type[Kind]]:
        """All kinds, looked for when the list is first needed; who asks meanwhile looks for them, too."""
        if not self._searched:
            self._search()
            self._searched = True
        return self._listed

    def _search(self) -> None:
        for kind in kinds(self._package) if self._package else ():
            self._list(kind)
        for point in sorted(offered_here().select(group=self._group), key=lambda point: (point.name, point.value)):
            self._add_from(point)

    def _add_from(self, point: Any) -> None:
        """List what another package offers. A list that lacks an installed attacker would be a wrong answer."""
        source = f"{point.value} of the package {point.dist.name if point.dist else 'unknown'}"
        try:
            kind = point.load()
            if self._base is not None and not (isinstance(kind, type) and issubclass(kind, self._base)):
                raise TypeError(f"it is not a subclass of {self._base.__name__}")
            if kind.name != point.name:
                raise ValueError(f"the entry point is called {point.name!r} and the class {kind.name!r}")
            self._list(kind)
        except Exception as error:
            raise ExtensionError(
                f"the {self._what} {source} cannot be used: {type(error).__name__}: {error}"
            ) from error

    def __getitem__(self, name: str) -> type[Kind]:
        """The kind of this name. If a file of the package is called so, it is read, and no other."""
        near = kinds(self._package, str(name).replace("-", "_")) if self._package and not self._searched else ()
        return next((hinted(kind) for kind in near if kind.name == name), None) or self._kinds()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds())

    def __len__(self) -> int:
        return len(self._kinds())


@cache
def offered_here() -> EntryPoints:
    """Of every installed package, read once: that takes milliseconds, and so does the import of their reader."""
    from importlib.metadata import entry_points

    return entry_points()  # type: ignore[return-value]
