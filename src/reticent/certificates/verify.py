"""Anybody can check a certificate: the whole document is derived again and every number and sentence is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from reticent import __version__
from reticent.certificates.document.derive import derive
from reticent.certificates.document.inputs import inputs_of
from reticent.certificates.document.rounding import Path, agrees, leaves, settled
from reticent.certificates.document.schema import Certificate, content_hash
from reticent.io.models import first_problem
from reticent.kernel import checks
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError
from reticent.kernel.messages import from_json, is_message

ROUNDING = 1e-5
"""Relative difference that another processor can explain; more is never taken for rounding."""

_ABSENT = object()
_NOT_DERIVED = ("declared", "signatures", "content_sha256", "reticent_version", "pages")


class State(StrEnum):
    """What became of a leaf that is not exactly what was derived."""

    ROUNDED = "rounded"
    """A number within the rounding of another processor, or within the tolerance that was named."""
    TAMPERED = "tampered"
    """Nothing explains it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One leaf that differs.

    Attributes:
        leaf: path inside the document, parts joined by dots.
        state: how serious it is.
        stated: what the document says, as text.
        found: what was derived, as text.
        accepted: the named tolerance allows it.
        rule: whether ``found`` is no value but says what is wrong there.
    """

    leaf: str
    state: State
    stated: str
    found: str
    accepted: bool = False
    rule: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of a check.

    Attributes:
        equal: number of values that are exactly what was derived.
        differences: all other derived values.
        declared: what the issuer declares, by leaf: nobody can derive it, a signature protects it.
        private: attackers whose numbers follow from a measurement on private data that the document states.
        measured: attackers whose numbers follow from a measurement that the document states and calls public.
        assessments: number of assessments derived.
        tolerance: relative tolerance that was named; 0 for none.
    """

    equal: int
    differences: tuple[Difference, ...]
    declared: dict[str, Any]
    private: tuple[str, ...]
    assessments: int
    tolerance: float
    measured: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """No leaf is tampered, and rounding needs a named tolerance."""
        return not any(self.refuses(difference) for difference in self.differences)

    def refuses(self, difference: Difference) -> bool:
        """Whether this difference alone makes the document unacceptable."""
        return difference.state is State.TAMPERED or not difference.accepted


def verify(
    certificate: Certificate, *, tolerance: float = 0.0, progress: Callable[[str], None] | None = None
) -> Verification:
    """Derive the whole document again and compare every number and sentence.

    Numbers must agree in every digit that is stated (see ``document.rounding``), text must be equal, and nothing may be
    missing or added. What is declared is listed; what is measured on private data is taken
    from the document, and its attackers are named.

    Args:
        tolerance: relative difference of numbers to accept, at most 1e-5; 0 accepts none.
        progress: called with the name of each attacker before its numbers are computed.

    Raises:
        ArtifactError: the document cannot be derived: it names something that does not exist, is out of bounds,
            or comes from another version.
        ParameterError: ``tolerance`` is no number from 0 to 1e-5.
    """
    if checks.non_negative(tolerance=tolerance) > ROUNDING:
        raise ParameterError("tolerance", tolerance, f"a number from 0 to {ROUNDING:g}")
    _check_version(certificate)
    inputs = inputs_of(certificate)
    stated = _leaves(certificate)
    comparison = _Comparison(stated, tolerance)
    try:
        found = derive(inputs, comparison.settle, progress)
    except ValidationError as error:  # such as one assessment more than a certificate may have
        raise ArtifactError(f"the document cannot be derived: {first_problem(error)}") from None
    except (ReticentError, ArithmeticError, ValueError, MemoryError) as error:
        raise ArtifactError(f"the document cannot be derived: {error}") from None
    comparison.compare(_leaves(found))
    if content_hash(certificate) != certificate.content_sha256:
        comparison.add(("content_sha256",), certificate.content_sha256, content_hash(certificate))
    if certificate.pages:
        from reticent.certificates.page.page import page_digests

        pages = page_digests(found)
        for code in dict.fromkeys([*pages, *certificate.pages]):
            if certificate.pages.get(code) != pages.get(code):
                comparison.add(("pages", code), certificate.pages.get(code, _ABSENT), pages.get(code, _ABSENT))
    if certificate.signatures:
        from reticent.certificates.document.signature import false_signatures

        for problem in false_signatures(certificate):
            comparison.add(("signatures",), "signatures", problem)
    if inputs.ledger is not None:
        from reticent.certificates.document.ledger_rules import contradictions

        for leaf, problem in contradictions(inputs.ledger, inputs.declared, inputs.edition):
            comparison.breaks(leaf, problem)
    facts = ("declared", "policy", "mechanism" if inputs.ledger is None else "ledger")
    return Verification(
        equal=comparison.equal,
        differences=tuple(comparison.differences),
        declared={".".join(path): value for path, value in stated.items() if path[0] in facts},
        private=tuple(f"{a.adversary} ({a.neighbouring})" for a in found.assessments if a.do_not_publish),
        assessments=len(found.assessments),
        tolerance=tolerance,
        measured=tuple(
            f"{a.adversary} ({a.neighbouring})"
            for a in found.assessments
            if not a.do_not_publish and any(isinstance(value, dict) for value in a.parameters.values())
        ),
    )


class _Comparison:
    """Collects what differs between the stated values and the derived ones."""

    def __init__(self, stated: dict[Path, Any], tolerance: float) -> None:
        self._stated, self._tolerance = stated, tolerance
        self._rounded: dict[Path, Difference] = {}
        self.equal = 0
        self.differences: list[Difference] = []

    def settle(self, where: Path, found: float) -> float:
        """The number to state: that of the document where it agrees or nearly agrees, else our own, rounded."""
        stated, path = self._stated.get(where), where[2:]
        ours = settled(path, found)
        if not isinstance(stated, float) or not agrees(path, stated, found, ROUNDING):
            return ours
        if not agrees(path, stated, found):
            allowed = agrees(path, stated, found, self._tolerance)
            self._rounded[where] = Difference(
                ".".join(where), State.ROUNDED, repr(stated), repr(ours), accepted=allowed
            )
        return stated

    def compare(self, derived: dict[Path, Any]) -> None:
        """Every leaf of both sides, but for what cannot be derived."""
        for path in dict.fromkeys([*derived, *self._stated]):
            stated, found = self._stated.get(path, _ABSENT), derived.get(path, _ABSENT)
            if path[0] in _NOT_DERIVED:
                continue
            if path in self._rounded:
                self.differences.append(self._rounded[path])
            elif _same(stated, found):
                self.equal += 1
            else:
                self.add(path, stated, found)

    def add(self, path: Path, stated: Any, found: Any) -> None:
        """A leaf that differs."""
        self.differences.append(Difference(".".join(path), State.TAMPERED, _shown(stated), _shown(found)))

    def breaks(self, leaf: str, problem: str) -> None:
        """A fact of the ledger that contradicts others."""
        stated = self._stated.get(("ledger", *leaf.split(".")), "the ledger")
        self.differences.append(Difference(f"ledger.{leaf}", State.TAMPERED, _shown(stated), problem, rule=True))


def _leaves(certificate: Certificate) -> dict[Path, Any]:
    return leaves(certificate.model_dump(mode="json", by_alias=True))


def _check_version(certificate: Certificate) -> None:
    """Another version derives other numbers and sentences."""
    written_by = certificate.reticent_version
    if written_by != __version__:
        raise ArtifactError(
            f"written by version {written_by[:80]}, which version {__version__} does not know: check it with that one"
        )


def _same(stated: Any, found: Any) -> bool:
    """1 and 1.0 are one number in JSON."""
    return bool(stated == found)


def _shown(value: Any) -> str:
    if is_message(value):
        return repr(str(from_json(value)))
    return "nothing" if value is _ABSENT else repr(value)
