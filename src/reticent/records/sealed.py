"""What ledgers of both kinds can do: be sealed, be published in part, be checked, be written and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict

from reticent.io import strict
from reticent.io.models import Terse, validated
from reticent.records.rules import Rule, contradictions, digest_of
from reticent.text import Brief

_READABLE_STEPS = 10_000
Public = TypeVar("Public", bound="Sealed")


class Sealed(Brief, Terse):
    """A ledger: facts, and a field ``digest`` that is theirs.

    Attributes:
        rules: what must hold among the facts.
    """

    rules: ClassVar[Iterable[Rule]]

    model_config = ConfigDict(populate_by_name=True)

    if TYPE_CHECKING:

        @property
        def steps(self) -> int:
            """Noisy updates."""

    def sealed(self) -> Self:
        """The same ledger with the digest of its facts, without which nobody accepts it."""
        return self.model_copy(update={"digest": digest_of(self)})

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Pairs of a fact and what is wrong there."""
        return contradictions(self.rules, self)

    def to_json(self) -> str:
        """Strict JSON text."""
        return strict.dumps(self.model_dump(mode="json", by_alias=True), indent=self.steps <= _READABLE_STEPS)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "ledger.json") -> Self:
        """Read a ledger back.

        Raises:
            ArtifactError: the text is not strict JSON or not a ledger of this version.
        """
        return validated(cls, strict.loads(text, where), where)


def facts_of(kind: type[Public], ledger: Public, changes: dict[str, Any]) -> Public:
    """The facts that ledgers of ``kind`` have, with ``changes``, sealed anew.

    Args:
        kind: of ledger, of which ``ledger`` is one that may know more.
        changes: facts to exchange, by name.
    """
    facts = {name: getattr(ledger, name) for name in kind.model_fields}
    return kind(**facts | changes | {"digest": ""}).sealed()
