"""A register: what was released from one data set, one signed line for each release, and what a budget leaves.

Each line is a DSSE envelope around one entry in canonical JSON. An entry names the SHA-256 of the entry before it, so
that no line can be changed, left out or put elsewhere without a trace. That the last lines were cut off, only who
remembers the head can see. A last line that a full disk or a kill tore was never entered: it counts for nothing, is
named, and gives way to the next one.

The budget is for a plan. What is entered is composed, and that holds where no release was chosen by looking at the
results of another (``fixed-plan``): to compose until a limit is reached is no filter (TRAN2026:F1).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from reticent.calibration.spelling import target_of
from reticent.calibration.targets import Target
from reticent.certificates.build import public
from reticent.certificates.document.inputs import inputs_of
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.sentences import STOP, persons
from reticent.facts.base import Silent
from reticent.io import strict
from reticent.io.files import held, read_bytes, write_atomic, writing
from reticent.io.models import Closed, Sha256, validated
from reticent.io.times import Date
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.text import digits
from reticent.mechanisms.codec import mechanism_of
from reticent.records.publication import published
from reticent.signing import envelope
from reticent.signing.keys import key_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

REGISTER = "application/vnd.reticent.register+json"
LONGEST = 500
"""Characters of a name or a budget."""
TORN = "its last line is torn, by a full disk or a kill: it was never entered, and the next one takes its place"
_FIRST = "0" * 64
_Text = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class Opened(Closed):
    """What the register is about.

    Attributes:
        data: the name of the data set.
        budget: the most risk that all releases together may have under the worst case, as ``epsilon=3@1e-5``.
        neighbouring: between which data sets.
    """

    data: _Text
    budget: _Text
    neighbouring: Neighbouring


class Released(Closed):
    """One release.

    Attributes:
        subject: as its certificate declares it.
        certificate: content hash of its public edition.
        mechanism: what was released.
        ledger: digest of its ledger in the form that every edition leads to; None where it holds none.
        silent: conditions on which its program kept silent.
    """

    subject: _Text
    certificate: Sha256
    mechanism: dict[str, Any]
    ledger: Sha256 | None = None
    silent: tuple[Silent, ...] = ()


class Entry(Closed):
    """One line: the first opens the register, each other one is a release."""

    schema_: Literal["reticent.register/1"] = Field(default="reticent.register/1", alias="schema")
    number: Annotated[int, Field(strict=True, ge=0)]
    previous: Sha256
    time: Date
    opened: Opened | None = None
    released: Released | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Entry:
        if (self.opened is None) != (self.number > 0) or (self.released is None) != (self.number == 0):
            raise ValueError("line 0 opens the register, and each other one is a release")
        return self

    @property
    def payload(self) -> bytes:
        """What is signed, and what the next entry names."""
        return strict.canonical(self.model_dump(mode="json", by_alias=True, exclude_none=True))


@dataclass(frozen=True)
class Register:
    """A register that was read and checked.

    Attributes:
        opened: what it is about.
        entries: the releases, in order.
        head: SHA-256 of the last entry: who remembers it can see whether lines were cut off.
        torn: whether the file ends with the beginning of a line.
    """

    opened: Opened
    entries: tuple[Entry, ...]
    head: str
    torn: bool = False

    @property
    def budget(self) -> Target:
        """The most risk of all releases together."""
        return target_of(self.opened.budget)

    def spent(self, *more: Mechanism) -> float:
        """The risk of all releases together, with ``more``, in the units of the budget."""
        known = [mechanism_of(one.released.mechanism) for one in self.entries if one.released is not None]
        parts = tuple(part for release in (*known, *more) for part in release.parts)
        if not parts:
            return 0.0 if self.budget.grows_with_risk else 1.0
        return self.budget.of(WorstCase().assess(Ledger(parts), self.opened.neighbouring)).value

    def holds(self, certificate: Certificate) -> bool:
        """Whether this certificate is entered, in whatever edition."""
        known = public(certificate).content_sha256
        return any(one.released and one.released.certificate == known for one in self.entries)

    def followed(self, released: Released, time: str) -> Register:
        """With one more line."""
        entry = Entry(number=len(self.entries) + 1, previous=self.head, time=time, released=released)
        return Register(self.opened, (*self.entries, entry), _digest(entry.payload))

    def reaches(self, head: str) -> bool:
        """Whether the line with this hash, which somebody remembers, is still there."""
        return head in {self.head, *(one.previous for one in self.entries)}

    def reservations(self) -> Iterator[str]:
        """What nobody stated of the releases: all together may then be more than is counted."""
        known = [one.released for one in self.entries if one.released is not None]
        if any(persons(one.mechanism) is None for one in known):
            yield " ".join(map(str, STOP))
        for place, one in enumerate(known, 1):
            if one.silent:
                yield f"Nobody stated {' and '.join(one.silent)} of release {place}: the truth may be more than counts."

    def left(self, spent: float) -> str:
        """One sentence about the budget."""
        unit, most, up = self.budget.name, self.budget.value, self.budget.grows_with_risk
        over = not self.budget.met_by(spent)
        rest = digits(abs(most - spent), 4, up=over)
        return f"{unit} {digits(spent, 4, up=up)} of {most:g}: {rest} {'too much' if over else 'is left'}"


def read_register(path: Path, keys: Sequence[Ed25519PublicKey], head: str | None = None) -> Register:
    """The register in a file, of which each line follows from the one before and is signed by one of ``keys``.

    Args:
        head: that somebody remembers.

    Raises:
        ArtifactError: it cannot be read, a line was changed, left out, put elsewhere or signed by somebody else, or the
            one with this ``head`` is not in it.
    """
    return _parsed(read_bytes(path, strict.LARGEST_FILE), str(path), [key_text(key) for key in keys], head)


def open_register(path: Path, opened: Opened, time: str, key: Ed25519PrivateKey) -> Register:
    """A new register.

    Raises:
        ArtifactError: there is a file already.
        ParameterError: the budget is no target.
    """
    target_of(opened.budget)
    entry = Entry(number=0, previous=_FIRST, time=time, opened=opened)
    try:
        with writing(path):
            write_atomic(path, _line(entry, key), new=True)
    except FileExistsError:
        raise ArtifactError(f"{path} exists: a register is opened once") from None
    return Register(opened, (), _digest(entry.payload))


def enter(
    path: Path,
    certificate: Certificate | Mapping[str, Certificate],
    time: str,
    key: Ed25519PrivateKey,
    keys: Sequence[Ed25519PublicKey] = (),
    *,
    anyway: bool = False,
    head: str | None = None,
) -> Register:
    """Enter a release, or all of several, or none; the file is locked meanwhile, and only ever grows.

    Args:
        certificate: of the release, as ``verify`` accepted it; of several by the names that errors call them.
        key: that signs the entry.
        keys: of others who may have signed earlier ones.
        anyway: enter it although the budget does not allow it, as it is out already.
        head: that somebody remembers.

    Raises:
        ArtifactError: as for ``read_register``; or the certificate, or another of the same run, is entered already.
        ParameterError: the budget does not allow it.
    """
    trusted = [key_text(one) for one in (key.public_key(), *keys)]
    with path.open("r+b", buffering=0) as stream, held(stream.fileno(), path):
        content = read_bytes(path, strict.LARGEST_FILE)
        register = _parsed(content, str(path), trusted, head)
        several = certificate if isinstance(certificate, Mapping) else {"": certificate}
        whole = register
        for name, one in several.items():
            whole = whole.followed(_released(whole, one, str(path), name), time)
        spent = register.spent(*(mechanism_of(one.mechanism) for one in several.values()))
        if not anyway and not register.budget.met_by(spent):
            said = ", ".join(dict.fromkeys(one.declared.subject for one in several.values()))
            raise ParameterError("certificate", said, f"within the budget: {register.left(spent)}", shown=False)
        end = content.rfind(b"\n") + 1 if register.torn else len(content)
        lines = b"".join(_line(entry, key) for entry in whole.entries[len(register.entries) :])
        with writing(path):
            _append(stream, end, lines if content[:end].endswith(b"\n") else b"\n" + lines)
    return whole


def _released(register: Register, certificate: Certificate, where: str, name: str) -> Released:
    """What is entered of a certificate; of several it has a name.

    Raises:
        ArtifactError: it, or another of the same run, is entered already.
    """
    shown = public(certificate)
    if register.holds(shown):
        raise ArtifactError(f"{where}: {name or 'this certificate'} is entered already")
    ran = inputs_of(certificate).ledger
    ledger = None if ran is None else published(ran).digest
    for one in register.entries:
        if ledger is not None and one.released is not None and one.released.ledger == ledger:
            same = f"a certificate of the same run{' as ' * bool(name)}{name}"
            raise ArtifactError(f"{where}, line {one.number + 1}: {same} is entered already")
    return Released(
        subject=certificate.declared.subject,
        certificate=shown.content_sha256,
        mechanism=certificate.mechanism,
        ledger=ledger,
        silent=tuple(sorted(certificate.silent)),
    )


def _append(stream: FileIO, end: int, line: bytes) -> None:
    """Write a line at ``end``, over whatever was torn there; nothing is left of one that does not fit."""
    try:
        stream.truncate(end)
        stream.seek(end)
        rest = memoryview(line)
        while rest:
            rest = rest[stream.write(rest) :]
        os.fsync(stream.fileno())
    except BaseException:
        stream.truncate(end)
        raise


def _line(entry: Entry, key: Ed25519PrivateKey) -> bytes:
    document = strict.loads(envelope.seal(entry.payload, REGISTER, [key]).to_json(), "register")
    return strict.dumps(document, indent=False).encode()


def _parsed(content: bytes, where: str, keys: Sequence[str], known: str | None) -> Register:
    entries, head = [], _FIRST
    *lines, last = content.split(b"\n")
    torn = bool(last) and not _is_whole(last)
    for number, line in enumerate([*lines, last] if last and not torn else lines):
        place = f"{where}, line {number + 1}"
        sealed = envelope.parse(strict.loads(line, place), REGISTER, place)
        if not sealed.signers(keys):
            raise ArtifactError(f"{place}: no signature of a key that is trusted")
        entry = validated(Entry, strict.loads(sealed.payload, place), place)
        if entry.payload != sealed.payload or (entry.number, entry.previous) != (number, head):
            raise ArtifactError(f"{place}: does not follow from the line before: a line was changed, moved or left out")
        entries.append(entry)
        head = _digest(entry.payload)
    if not entries or entries[0].opened is None:
        raise ArtifactError(f"{where}: no register: its first line opens none")
    register = Register(entries[0].opened, tuple(entries[1:]), head, torn)
    if known is not None and not register.reaches(known):
        raise ArtifactError(f"{where}: the head {known[:16]}... is not in it: lines were cut off, or it is an old copy")
    return register


def _is_whole(line: bytes) -> bool:
    """Whether a line without its end is whole: the beginning of a JSON object is none."""
    try:
        strict.loads(line, "line")
    except ArtifactError:
        return False
    return True


def _digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()
