"""Files that say what was released: a ledger or a certificate of ours, a mechanism, a DpEvent, a process of opake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reticent.interop.opake import is_opake, mechanism_from_opake
from reticent.io import strict
from reticent.kernel.errors import ArtifactError, ReticentError, UnsupportedError, needing
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.text import printable
from reticent.records.ledger import RunLedger, ledger_of

_DEEPEST = 32


def read_release(path: Path) -> Mechanism | RunLedger:
    """What the file at ``path`` says was released; see ``read_statement``.

    Raises:
        ArtifactError, UnsupportedError: as for ``read_statement``; or a ledger contradicts itself.
    """
    return release_from(strict.load(path), str(path))


def release_from(document: Any, where: str) -> Mechanism | RunLedger:
    """What a JSON document says was released; errors call it ``where``.

    Raises:
        ArtifactError, UnsupportedError: as for ``read_statement``; or a ledger contradicts itself.
    """
    found = statement(document, where)
    if not isinstance(found, Mechanism):
        from reticent.certificates.document.ledger_rules import refuse_contradictions

        refuse_contradictions(found)
    return found


def read_statement(path: Path) -> Mechanism | RunLedger:
    """What the file at ``path`` holds, whether or not a ledger agrees with itself.

    Raises:
        ArtifactError: it is missing, no strict JSON, or none of these.
        UnsupportedError: the event or process has no counterpart, or dp_accounting is not installed.
    """
    return statement(strict.load(path), str(path))


def statement(document: Any, where: str) -> Mechanism | RunLedger:
    """What a JSON document holds, whether or not a ledger agrees with itself; errors call it ``where``.

    Raises:
        ArtifactError, UnsupportedError: as for ``read_statement``.
    """
    stated = document if isinstance(document, dict) else {}
    if "class_name" in stated:
        return mechanism_from_event_json(document, where)
    if "kind" in stated:
        return _from_record(document, where)
    if str(stated.get("schema")).startswith("reticent.certificate/"):
        return _certified(document, where)
    if "schema" in stated:
        return ledger_of(document, where)
    if is_opake(stated):
        return mechanism_from_opake(stated, where)
    raise ArtifactError(
        f"{where}: no ledger (it has no schema), no mechanism (it has no kind), no DpEvent (it has no class_name) "
        "and no process of opake (it has no type)"
    )


def _certified(document: Any, where: str) -> Mechanism | RunLedger:
    """What a certificate says was released; whether its numbers follow from that, ``verify`` says."""
    from reticent.certificates.document.schema import Certificate

    found = Certificate.parse(document, where)
    if found.declared.releases:
        raise ArtifactError(f"{where}: is about several recorded runs and holds none of their ledgers: give these")
    return _from_record(found.mechanism, where) if found.ledger is None else found.ledger


def _from_record(document: dict[str, Any], where: str) -> Mechanism:
    """The mechanism of a record as ``reticent risk --json`` shows it under ``mechanism``."""
    from reticent.mechanisms.codec import mechanism_of

    try:
        return mechanism_of(document)
    except ArtifactError as error:
        raise ArtifactError(f"{where}: {error}") from None


def mechanism_from_event_json(document: Any, where: str) -> Mechanism:
    """The mechanism of an event tree in JSON.

    An event is an object with its ``class_name`` and its fields, as ``DpEvent.to_named_tuple`` names them;
    ``module_name`` is allowed and ignored: nothing is imported that the file names.

    Raises:
        ArtifactError: it is no event.
        UnsupportedError: it has no counterpart, or dp_accounting is not installed.
    """
    with needing("reading a DpEvent", "interop"):
        from reticent.interop.dp_events import from_dp_event
    try:
        return from_dp_event(_event(document, where, 0))
    except (ArtifactError, UnsupportedError):
        raise
    except (ReticentError, TypeError, ValueError) as error:
        raise ArtifactError(f"{where}: {printable(error)}") from None


def event_to_json(event: Any) -> dict[str, Any]:
    """An event tree as JSON data, the inverse of ``mechanism_from_event_json`` up to the mechanism."""
    fields = {field.name: _plain(getattr(event, field.name)) for field in type(event).__attrs_attrs__}
    return {"class_name": type(event).__name__, **fields}


def _plain(value: Any) -> Any:
    from dp_accounting import dp_event

    if isinstance(value, dp_event.DpEvent):
        return event_to_json(value)
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _event(document: Any, where: str, depth: int) -> Any:
    from dp_accounting import dp_event

    if depth > _DEEPEST or not isinstance(document, dict):
        raise ArtifactError(f"{where}: an event must be an object, nested at most {_DEEPEST} deep")
    fields = {name: value for name, value in document.items() if name not in ("class_name", "module_name")}
    kind = getattr(dp_event, str(document.get("class_name")), None)
    if not (isinstance(kind, type) and issubclass(kind, dp_event.DpEvent)):
        raise ArtifactError(f"{where}: {printable(repr(document.get('class_name')), 100)} is no event of dp_accounting")
    known: Any = kind
    names = {field.name for field in known.__attrs_attrs__}
    if set(fields) - names:
        raise ArtifactError(f"{where}: {kind.__name__} has no field {printable(sorted(set(fields) - names)[0], 100)!r}")
    return known(**{name: _value(value, where, depth) for name, value in fields.items()})


def _value(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, dict):
        return _event(value, where, depth + 1)
    return [_value(item, where, depth) for item in value] if isinstance(value, list) else value
