"""``register``: all releases from one data set, and what its budget leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.certificates.check import read_document
from reticent.certificates.document.schema import Certificate
from reticent.certificates.register import LONGEST, TORN, Opened, Register, enter, open_register, read_register
from reticent.certificates.verify import verify
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS
from reticent.signing.keys import load_private_key, load_public_key
from reticent.verbs.request import FLAG, PATH, TEXT, Request, asked, member, several
from reticent.verbs.table import Answer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Progress = Callable[[str], None] | None
Unlock = Callable[[Path], "Ed25519PrivateKey"]
"""The private key in a file, whose passphrase somebody may be asked for."""
_ASSUMED = ("fixed-plan", "drawn-anew")


class RegisterState(Record):
    """What ``reticent register --json`` prints: ``spent`` is in the units of the budget."""

    schema_: str = Field(default="reticent.register-state/1", alias="schema")
    data: str
    budget: str
    head: str
    spent: float
    torn: bool
    releases: list[str]
    reservations: list[str]
    assumed: list[str]


class Registered(Answer):
    """A register that was read and checked, and what all its releases use.

    Attributes:
        register: every line.
    """

    def __init__(self, register: Register) -> None:
        self.register, self._spent = register, register.spent()
        self.document = RegisterState(
            data=register.opened.data,
            budget=register.opened.budget,
            head=register.head,
            spent=self._spent,
            torn=register.torn,
            releases=[one.released.subject for one in register.entries if one.released is not None],
            reservations=list(register.reservations()),
            assumed=list(_ASSUMED),
        )

    def lines(self) -> list[str]:
        found, (plan, anew) = self.document, (CONDITIONS[key].says for key in _ASSUMED)
        many = "1 release" if len(found.releases) == 1 else f"{len(found.releases)} releases"
        return [
            f"{found.data}: {many} ({self.register.opened.neighbouring})",
            *(f"{number}: {subject}" for number, subject in enumerate(found.releases, 1)),
            f"all together under the worst case: {self.register.left(self._spent)}",
            f"assumed: {plan} Who chooses a release by an earlier result can exceed the budget.",
            f"assumed: {anew}",
            *(f"! {line}" for line in (*found.reservations, *([TORN] if found.torn else ()))),
            f"head: {found.head}",
        ]

    def indent(self, line: str) -> int:
        return 2 if line[0].isdigit() else 0


@dataclass(frozen=True, kw_only=True)
class OfRegister(Request):
    """What is asked about any register."""

    register: Path = asked(PATH, "The register, a file of signed lines.", word="REGISTER")


@dataclass(frozen=True, kw_only=True)
class OpenRegister(OfRegister):
    """Begin a register, with a budget."""

    verb = "register_open"
    name: str = asked(TEXT, "The name of the data set.")
    budget: str = asked(TEXT, "The most risk of all releases together, as epsilon=3@1e-5.")
    neighbouring: Neighbouring = asked(member(Neighbouring), "Between which data sets.", Neighbouring.ADD_REMOVE)
    sign: Path = asked(PATH, "Private key of reticent keygen, which signs the line.")

    def __post_init__(self) -> None:
        for stated, text in {"name": self.name, "budget": self.budget}.items():
            if not 1 <= len(text) <= LONGEST:
                raise ParameterError(stated, text, f"a text of 1 to {LONGEST} characters")

    def answer(self, progress: Progress = None, unlock: Unlock = load_private_key) -> Registered:
        """Write the first line.

        Raises:
            ArtifactError: there is a file already, or the key cannot be read.
            ParameterError: the budget is no target.
        """
        opened = Opened(data=self.name, budget=self.budget, neighbouring=self.neighbouring)
        return Registered(open_register(self.register, opened, _now(), unlock(self.sign)))


@dataclass(frozen=True, kw_only=True)
class AddToRegister(OfRegister):
    """Enter releases by their certificates."""

    verb = "register_add"
    certificate: tuple[Path, ...] = asked(
        several(PATH),
        "The certificate of a release, or its page; of several, all are entered or none.",
        word="CERTIFICATE...",
    )
    sign: Path = asked(PATH, "Private key of reticent keygen, which signs the line.")
    key: tuple[Path, ...] = asked(several(PATH), "Public key that may have signed lines.", ())
    anyway: bool = asked(FLAG, "Enter it although the budget does not allow it: it is out already.", False)
    head: str | None = asked(TEXT, "The head that was printed last: so many lines must still be there.", None)

    def answer(self, progress: Progress = None, unlock: Unlock = load_private_key) -> Registered:
        """Write a line for each.

        Raises:
            ArtifactError: a certificate does not agree with itself, or is entered already; or a file cannot be read.
            ParameterError: the budget does not allow it.
        """
        documents: dict[str, Certificate] = {}
        for path in self.certificate:
            document, problems = read_document(path)
            if problems or not verify(document).accepted:
                raise ArtifactError(f"{path}: does not agree with itself; reticent verify says where")
            if str(path) in documents:
                raise ArtifactError(f"{path}: is named twice")
            documents[str(path)] = document
        what = documents if len(documents) > 1 else document
        keys, sign = [load_public_key(path) for path in self.key], unlock(self.sign)
        return Registered(enter(self.register, what, _now(), sign, keys, anyway=self.anyway, head=self.head))


@dataclass(frozen=True, kw_only=True)
class ShowRegister(OfRegister):
    """Check the register, and say what is left."""

    verb = "register_show"
    key: tuple[Path, ...] = asked(several(PATH), "Public key that may have signed lines.")
    head: str | None = asked(TEXT, "The head that was printed last: so many lines must still be there.", None)

    def answer(self, progress: Progress = None) -> Registered:
        """Each line must follow from the one before, and be signed by one of the keys.

        Raises:
            ArtifactError: a line does not, the head is not there, or a file cannot be read.
        """
        return Registered(read_register(self.register, [load_public_key(path) for path in self.key], self.head))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
