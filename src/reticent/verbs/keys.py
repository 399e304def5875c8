"""``keygen``: a key pair that signs certificates, ledgers and registers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.verbs.request import FLAG, PATH, Request, asked
from reticent.verbs.table import Answer


class KeyPair(Record):
    """What ``reticent keygen --json`` prints: where both keys lie, and what documents call the public one."""

    schema_: str = Field(default="reticent.keys/1", alias="schema")
    private: str
    public: str
    keyid: str


class Keys(Answer):
    """A new key pair."""

    def __init__(self, document: KeyPair) -> None:
        self.document = document

    def lines(self) -> list[str]:
        return [
            f"private key, for you alone: {self.document.private}",
            f"public key, for everybody who checks: {self.document.public}",
            f"as certificates name it: {self.document.keyid}",
        ]


@dataclass(frozen=True, kw_only=True)
class Keygen(Request):
    """A key pair for signing certificates."""

    verb = "keygen"
    private: Path = asked(PATH, "The private key to write; keep it secret.", word="KEY")
    public: Path | None = asked(PATH, "The public key to write; default: KEY with .pub added.", None)
    encrypt: bool = asked(
        FLAG, "Encrypt the private key: the passphrase is asked for, or in $RETICENT_PASSPHRASE.", False
    )

    def __post_init__(self) -> None:
        if not self.private.name:
            raise ParameterError("KEY", str(self.private), "the name of a file to write")

    def answer(self, progress: Callable[[str], None] | None = None, passphrase: str | None = None) -> Keys:
        """Write both files; nothing is overwritten.

        Args:
            passphrase: that encrypts the private key; None takes that of the environment.

        Raises:
            ArtifactError: a file exists or cannot be written, or there is no passphrase.
        """
        from reticent.signing.keys import PASSPHRASE, key_id, load_public_key, write_key_pair

        public = self.public or self.private.with_name(self.private.name + ".pub")
        said = (passphrase or os.environ.get(PASSPHRASE)) if self.encrypt else None
        if self.encrypt and not said:
            raise ArtifactError(f"--encrypt needs a passphrase: give it in {PASSPHRASE}")
        write_key_pair(self.private, public, said)
        name = key_id(load_public_key(public))
        return Keys(KeyPair(private=str(self.private), public=str(public), keyid=name))
