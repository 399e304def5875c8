"""A request: what a verb is asked, as one frozen object. Python, options and files make the same one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self

from reticent.kernel import checks
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.keywords import own_number
from reticent.kernel.text import one_of, printable

SCHEMA = "reticent.request/1"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one kind of value is said.

    Attributes:
        read: the value, from what Python, a file or a command line says for the field of this name.
        written: the value as plain data, which ``read`` takes again.
        schema: of what ``written`` gives, as JSON Schema; None where no file may say it.
        typed: the type of a word on the command line; None where several options say it together.
        many: it may be typed several times.
    """

    read: Callable[[str, Any], Any]
    written: Callable[[Any], Any]
    schema: Mapping[str, Any] | None
    typed: type | None
    many: bool = False


def asked(spelling: Spelling, help: str, default: Any = MISSING, *, word: str = "") -> Any:
    """A field of a request: how it is said, and one sentence for people. Without a default it has to be said.

    Args:
        word: what stands for it on the command line where it is typed without an option; with dots for several.
    """
    return field(default=default, metadata={"spelling": spelling, "help": help, "word": word})


def _text(name: str, said: Any) -> str:
    if not isinstance(said, str):
        raise ParameterError(name, said, "a text")
    return said


def path_said(name: str, said: Any) -> Path:
    """A path; a text that is empty would be the current folder.

    Raises:
        ParameterError: it is none.
    """
    if not isinstance(said, (str, Path)) or said == "" or "\0" in str(said):
        raise ParameterError(name, said, "a path")
    return Path(said)


def one_or_more(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of one value, or of a list of such."""
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def several(way: Spelling) -> Spelling:
    """The same for a field that holds one or more."""

    def read(name: str, said: Any) -> tuple[Any, ...]:
        alone = isinstance(said, (str, Mapping)) or not isinstance(said, Iterable)
        return tuple(way.read(name, one) for one in ((said,) if alone else said))

    schema = one_or_more(way.schema or {})
    return Spelling(read, lambda values: [way.written(one) for one in values], schema, way.typed, many=True)


def number(check: Callable[..., Any]) -> Spelling:
    """A number that keeps a check of ``reticent.kernel.checks``."""
    return Spelling(lambda name, said: check(**{name: said}), float, {"type": "number"}, float)


def whole(check: Callable[..., Any]) -> Spelling:
    """A whole number that keeps a check of ``reticent.kernel.checks``."""
    return Spelling(lambda name, said: check(**{name: said}), int, {"type": "integer"}, int)


def member(kind: type[StrEnum]) -> Spelling:
    """One of an enumeration."""
    return Spelling(lambda name, said: checks.member(kind, **{name: said}), str, {"enum": [*kind]}, str)


def word(*known: str) -> Spelling:
    """One of these words."""

    def read(name: str, said: Any) -> str:
        if said not in known:
            raise ParameterError(name, said, one_of(said, known))
        return str(said)

    return Spelling(read, str, {"enum": [*known]}, str)


def leave_out(given: Mapping[str, Any], wanted: str) -> None:
    """Refuse the first of these that was given.

    Raises:
        ParameterError: one of them was; ``wanted`` says where it may be.
    """
    for name, value in given.items():
        if value not in (None, ()):
            raise ParameterError(name, value, f"left out{wanted}", shown=False)


def _flag(name: str, said: Any) -> bool:
    if not isinstance(said, bool):
        raise ParameterError(name, said, "true or false")
    return said


TEXT = Spelling(_text, str, {"type": "string"}, str)
PATH = Spelling(path_said, str, {"type": "string"}, Path)
FLAG = Spelling(_flag, bool, {"type": "boolean"}, bool)
COUNT, SEED = whole(checks.count), whole(checks.seed)
NUMBER, POSITIVE, NON_NEGATIVE = number(checks.finite), number(checks.positive), number(checks.non_negative)
FRACTION = number(checks.open_fraction)
NUMBERS = several(NUMBER)


class Request:
    """What a verb is asked; a subclass is a frozen dataclass whose fields are made by ``asked``.

    Options of the command line, the JSON document, its schema and the reference follow from the fields.
    """

    verb: ClassVar[str]

    def answer(self, progress: Callable[[str], None] | None = None) -> Any:
        """What the verb answers.

        Args:
            progress: called with a few words about what is being worked on.
        """
        raise NotImplementedError

    @classmethod
    def of(cls, **said: Any) -> Self:
        """The request in which each field is said in any of its ways; None stands for what is not said.

        Raises:
            ParameterError: something is said that no such field can be.
        """
        ways = {one.name: spelling_of(one) for one in fields(cls)}  # type: ignore[arg-type]
        given = {name: own_number(value) for name, value in said.items() if value is not None}
        return cls(**{name: ways[name].read(name, value) for name, value in given.items()})

    def document(self) -> dict[str, Any]:
        """The request as plain data, without what is at its default."""
        known = ((one, getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        said = {one.name: spelling_of(one).written(value) for one, value in known if value != one.default}
        return {"schema": SCHEMA, "verb": self.verb, **said}

    def to_json(self) -> str:
        """The document ``reticent.request/1`` as strict JSON text."""
        return json.dumps(self.document(), indent=2, allow_nan=False)

    @classmethod
    def of_document(cls, document: Any, where: str) -> Self:
        """The request that a JSON document states; errors call it ``where``.

        Raises:
            ArtifactError: it is no request to this verb, or has a name that none of its fields has.
            ParameterError: a value is none that the field can have, or one is missing.
        """
        stated = dict(document) if isinstance(document, dict) else {}
        schema, verb = stated.pop("schema", None), stated.pop("verb", None)
        if schema != SCHEMA:
            raise ArtifactError(f"{where}: no request: its schema is not {SCHEMA}")
        if verb != cls.verb:
            raise ArtifactError(f"{where}: a request to {printable(repr(verb), 60)}, not to {cls.verb!r}")
        names = {one.name: one for one in fields(cls) if spelling_of(one).schema is not None}  # type: ignore[arg-type]
        for name in stated:
            if name not in names:
                raise ArtifactError(f"{where}: {printable(name, 60)!r} is not {one_of(name, names)}")
        for name, one in names.items():
            if one.default is MISSING and stated.get(name) is None:
                raise ArtifactError(f"{where}: {name} must be given")
        return cls.of(**stated)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request that ``to_json`` wrote.

        Raises:
            ArtifactError, ParameterError: as for ``of_document``.
        """
        from reticent.io import strict

        return cls.of_document(strict.loads(text, "the request"), "the request")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON Schema of its document."""
        known = [one for one in fields(cls) if spelling_of(one).schema is not None]  # type: ignore[arg-type]
        said = {one.name: {**(spelling_of(one).schema or {}), "description": one.metadata["help"]} for one in known}
        always = {"schema": {"const": SCHEMA}, "verb": {"const": cls.verb}}
        return {
            "title": (cls.__doc__ or "").split("\n")[0],
            "type": "object",
            "properties": {**always, **said},
            "required": [*always, *(one.name for one in known if one.default is MISSING)],
            "additionalProperties": False,
        }


def spelling_of(known: Field[Any]) -> Spelling:
    """How a field of a request is said."""
    found: Spelling = known.metadata["spelling"]
    return found
