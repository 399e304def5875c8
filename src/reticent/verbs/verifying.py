"""``verify``: whether a certificate is what follows from its facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.certificates.check import check
from reticent.certificates.document.schema import Certificate
from reticent.certificates.verify import ROUNDING, State
from reticent.io import strict
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.keywords import hinting
from reticent.verbs.request import COUNT, NON_NEGATIVE, PATH, Request, Spelling, asked, leave_out, path_said, several
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from reticent.certificates.check import Checked
    from reticent.certificates.verify import Verification
    from reticent.verbs.sealing import PlanChecked


def _certificate(name: str, said: Any) -> Certificate | Path:
    """The document, or the path of its file or page."""
    if isinstance(said, (str, Path)):
        return path_said(name, said)
    found = getattr(said, "certificate", said)
    if not isinstance(found, Certificate):
        raise ParameterError(name, type(found).__name__, "a certificate, or the path of its file or page")
    return found


def _report(path: Path) -> Any:
    """The report of an audit that lies there, as JSON data; None if something else does."""
    try:
        document = strict.load(path)
    except ArtifactError:
        return None
    schema = str(document.get("schema")) if isinstance(document, dict) else ""
    return document if schema.startswith(("reticent.audit/", "reticent.loop-audit/")) else None


def _written(certificate: Certificate | Path) -> str:
    if isinstance(certificate, Certificate):
        raise UnsupportedError("a request names the file of a certificate: save it first")
    return str(certificate)


CERTIFICATE = Spelling(_certificate, _written, {"type": "string"}, Path)


@dataclass(frozen=True, kw_only=True)
class Verify(Request):
    """Derive a certificate again and compare every number and sentence."""

    verb = "verify"
    certificate: Certificate | Path = asked(
        CERTIFICATE,
        "A certificate.json, certificate.public.json or page; or the report of an audit, in JSON.",
        word="CERTIFICATE",
    )
    key: tuple[Path, ...] = asked(several(PATH), "Public key of the issuer: require its signature.", ())
    threshold: int | None = asked(COUNT, "How many of several keys are enough; default: all.", None)
    signature: Path | None = asked(PATH, "A detached envelope; default: the embedded signatures.", None)
    opening: Path | None = asked(PATH, "A certificate.opening.json: open the commitments to the data.", None)
    data: Path | None = asked(PATH, "With an opening: the table that was trained on.", None)
    weights: Path | None = asked(PATH, "The file of weights: compare its fingerprint.", None)
    tolerance: float = asked(NON_NEGATIVE, f"Accept numbers that differ by this factor, at most {ROUNDING:g}.", 0.0)

    def answer(self, progress: Callable[[str], None] | None = None) -> Verified | PlanChecked:
        """How each number and sentence agrees with what is derived again; of an audit's report, with its plan.

        Raises:
            ArtifactError: a file cannot be read, the document cannot be derived, or a signature is given without a key.
        """
        said = {name: value for name, value in vars(self).items() if name != "certificate"}
        if isinstance(self.certificate, Path) and (report := _report(self.certificate)) is not None:
            from reticent.verbs.sealing import check_report

            leave_out({name: value or None for name, value in said.items()}, " for the report of an audit")
            return check_report(report, str(self.certificate))
        return Verified(check(self.certificate, **said, progress=progress))


class Differing(Record):
    """One leaf of a certificate that is not what is derived; ``refused`` if no tolerance that was named allows it."""

    where: str
    state: State
    stated: str
    derived: str
    refused: bool


class VerificationDocument(Record):
    """What ``reticent verify --json`` prints; ``declared`` has what nobody can derive, by leaf."""

    schema_: str = Field(default="reticent.verification/1", alias="schema")
    accepted: bool
    equal: int
    problems: list[str]
    differences: list[Differing]
    compared: list[str]
    reservations: list[str]
    declared: dict[str, Any]


class Verified(Table):
    """Whether a certificate is what follows from its facts; true in a condition if it is accepted.

    Attributes:
        checked: every difference, what else was compared, and what is declared.
    """

    def __init__(self, checked: Checked) -> None:
        self.checked = checked

    @property
    def accepted(self) -> bool:
        """Every number and sentence agrees, it has not expired, and all that was given to compare agrees."""
        return self.checked.accepted

    @property
    def verification(self) -> Verification:
        """How each number and sentence agrees with what was derived again."""
        return self.checked.verification

    @property
    def exit_code(self) -> int:
        """1 where it is refused."""
        return 0 if self.accepted else 1

    def __bool__(self) -> bool:
        return self.accepted

    def title(self) -> str:
        verdict = "accepted" if self.accepted else "REFUSED"
        return f"{verdict}: {self.verification.equal} numbers and sentences derived again and equal"

    def columns(self) -> tuple[str, ...]:
        return ("where", "state", "stated", "derived")

    def rows(self) -> list[tuple[Cell, ...]]:
        return [(d.leaf, d.state.value, d.stated, d.found) for d in self.verification.differences]

    @cached_property
    def document(self) -> VerificationDocument:
        """The verdict, every difference, the reservations and what is declared."""
        found, outcome = self.checked, self.verification
        return VerificationDocument(
            accepted=found.accepted,
            equal=outcome.equal,
            problems=list(found.problems),
            differences=[
                Differing(where=d.leaf, state=d.state, stated=d.stated, derived=d.found, refused=outcome.refuses(d))
                for d in outcome.differences
            ],
            compared=list(found.compared),
            reservations=list(found.reservations()),
            declared=outcome.declared,
        )

    def notes(self) -> list[str]:
        """Why it is refused, what else was compared, and what a reader must know."""
        declared = f"{len(self.verification.declared)} facts are declared: only a signature vouches for them."
        return [*self.checked.problems, *self.checked.compared, *self.checked.reservations(), declared]


@hinting
def verify(
    certificate: Any,
    *,
    key: Path | str | Sequence[Path | str] | None = None,
    signature: Path | str | None = None,
    weights: Path | str | None = None,
    threshold: int | None = None,
    opening: Path | str | None = None,
    data: Path | str | None = None,
    tolerance: float = 0.0,
) -> Verified | PlanChecked:
    """Derive a certificate again and compare every number and sentence; or an audit's report with its sealed plan.

    Args:
        certificate: the document, or the path of its JSON file or page; or the path of the JSON report of an audit.
        key: path of the issuer's public key, or several paths: all must have signed.
        signature: path of a detached envelope; None takes the embedded signatures.
        weights: path of the file of weights that the certificate must be about.
        threshold: how many of several keys are enough.
        opening: path of what opens the commitments to the data (``certificate.opening.json``).
        data: with ``opening``: path of the table that was trained on.
        tolerance: relative difference of numbers to accept, at most 1e-5.

    Raises:
        ArtifactError: a file cannot be read, the document cannot be derived, or a signature is given without a key.
        ParameterError: it is neither a certificate nor a path.
    """
    return Verify.of(**locals()).answer()
