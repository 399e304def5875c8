"""``gate``: whether a model may go out, by its certificate and a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from reticent.certificates import gate_report
from reticent.certificates.check import Checked, read_document, refuse_without_key, signature_problems, weights_problems
from reticent.certificates.document.policy import Policy, load_policy
from reticent.certificates.document.requirements import Check
from reticent.certificates.document.schema import Certificate
from reticent.certificates.gate import check, registered
from reticent.certificates.gate_report import GateReport, GateReports, Judged, Reports
from reticent.certificates.register import Register, read_register
from reticent.certificates.verify import ROUNDING, Verification, verify
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.keywords import hinting
from reticent.signing.keys import load_public_key
from reticent.verbs.documents import POLICY
from reticent.verbs.request import NON_NEGATIVE, PATH, TEXT, Request, asked, several
from reticent.verbs.table import Cell, Table
from reticent.verbs.verifying import CERTIFICATE

Progress = Callable[[str], None] | None
Around = Callable[[Path], AbstractContextManager[None]]


class Gated(Table):
    """Certificates beside a policy; true in a condition if all may go out.

    Attributes:
        judged: each certificate, with every requirement.
    """

    def __init__(self, judged: Sequence[Judged]) -> None:
        self.judged = tuple(judged)

    @cached_property
    def reports(self) -> Reports:
        """The outcome as plain text, Markdown, a document, and JUnit XML."""
        return gate_report.of_one(self.judged[0]) if len(self.judged) == 1 else gate_report.of_many(self.judged)

    @property
    def exit_code(self) -> int:
        """0 where all may go out, 1 on a breach, 2 where one could not be looked at."""
        return max(one.exit_code for one in self.judged)

    def __bool__(self) -> bool:
        return self.exit_code == 0

    def title(self) -> str:
        return self.lines()[0] if len(self.judged) == 1 else self.lines()[-1]

    def columns(self) -> tuple[str, ...]:
        return ("certificate", "requirement", "passed", "found")

    def rows(self) -> list[tuple[Cell, ...]]:
        return [(one.name, str(c.name), c.passed, str(c.detail)) for one in self.judged for c in one.checks]

    def notes(self) -> list[str]:
        """What a reader must know besides."""
        return list(dict.fromkeys(f"! {line}" for one in self.judged for line in one.reservations))

    def theorems(self) -> list[str]:
        known = [one.certificate for one in self.judged if one.certificate is not None]
        return [key for certificate in known for record in certificate.assessments for key in record.theorems]

    @property
    def document(self) -> GateReport | GateReports:
        """What ``reticent gate --json`` prints."""
        return self.reports.document

    def lines(self) -> list[str]:
        return self.reports.plain

    def indent(self, line: str) -> int:
        return 8 if line.startswith(("pass", "BREACH")) else 2 if line.startswith("!") else 0


@dataclass(frozen=True, kw_only=True)
class Gate(Request):
    """Whether models may go out: their certificates verify and keep a policy."""

    verb = "gate"
    certificate: tuple[Certificate | Path, ...] = asked(
        several(CERTIFICATE), "A certificate, or its page; or several.", word="CERTIFICATE..."
    )
    policy: Policy | Path = asked(POLICY, "The policy, a YAML file.")
    key: Path | None = asked(PATH, "Public key of the issuer: require its signature.", None)
    signature: Path | None = asked(PATH, "A detached signature; default: the embedded one.", None)
    weights: Path | None = asked(PATH, "The file of weights: it must be the one that the certificate names.", None)
    register: Path | None = asked(
        PATH, "The register of the data set: the release must be in it, and its budget kept.", None
    )
    register_key: Path | None = asked(PATH, "With --register: public key that signed its lines.", None)
    register_head: str | None = asked(
        TEXT, "With --register: the head that was printed last; it must still be there.", None
    )
    register_name: str | None = asked(TEXT, "With --register: the name of the data set that it must be about.", None)
    register_budget: str | None = asked(TEXT, "With --register: the budget that it must have, as epsilon=3@1e-5.", None)
    tolerance: float = asked(NON_NEGATIVE, f"Accept numbers that differ by this factor, at most {ROUNDING:g}.", 0.0)

    def __post_init__(self) -> None:
        for name, file in {"signature": self.signature, "weights": self.weights}.items():
            if file is not None and len(self.certificate) > 1:
                raise ParameterError(name, str(file), "left out: it belongs to one certificate")
        for name in ("register_key", "register_head", "register_name", "register_budget"):
            if self.register is None and getattr(self, name) is not None:
                raise ParameterError("register", None, f"given with --{name.replace('_', '-')}", shown=False)
        if self.register is not None and self.register_key is None:
            raise ParameterError("register_key", None, "given with --register", shown=False)

    def answer(self, progress: Progress = None, around: Around = lambda path: nullcontext()) -> Gated:
        """Each certificate beside the policy; of several, one that is no file is named, and the others are judged.

        Args:
            progress: called with the name of each attacker before its numbers are computed.
            around: of a file, in which it is read and derived: a limit on time, for instance.

        Raises:
            ArtifactError: the only certificate cannot be read, or the policy, the register or a key cannot; or the
                policy requires a key or the model, and none is given.
        """
        wanted = load_policy(self.policy) if isinstance(self.policy, Path) else self.policy
        where = self.policy if isinstance(self.policy, Path) else "the policy"
        if wanted.signature and self.key is None:
            raise ArtifactError(f"{where} requires a signature: give --key with the public key of the issuer")
        if wanted.weights and self.weights is None:
            raise ArtifactError(f"{where} requires the model: give --weights with its file")
        refuse_without_key(self.signature, [] if self.key is None else [self.key])
        opened, judged = cache(self._opened), []
        for number, one in enumerate(self.certificate, 1):
            path = one if isinstance(one, Path) else None
            where = f"certificate {number}" if path is None else str(path)
            try:
                with nullcontext() if path is None else around(path):
                    document, problems = (one, []) if isinstance(one, Certificate) else read_document(one)
                    outcome = verify(document, tolerance=self.tolerance, progress=progress)
            except ArtifactError as error:
                there = path is None or path.is_file()
                if not there and len(self.certificate) == 1:
                    raise
                what = "the certificate verifies" if there else "the certificate can be read"
                judged.append(Judged(where, None, [Check(what, False, str(error))], read=there))
                continue
            checks = self._checks(document, outcome, wanted, problems)
            if self.register is not None:
                name, budget, head = self.register_name, self.register_budget, self.register_head
                checks += registered(document, wanted, *opened(), name=name, budget=budget, head=head)
            known = tuple(Checked(document, outcome, (), (), self.key is not None).reservations())
            judged.append(Judged(where, document, checks, known))
        return Gated(judged)

    def _checks(
        self, document: Certificate, outcome: Verification, wanted: Policy, problems: Sequence[str]
    ) -> list[Check]:
        """A certificate beside a policy."""
        signed = None if self.key is None else not signature_problems(document, [self.key], self.signature)
        same = None if self.weights is None else not weights_problems(document, self.weights)
        found = check(document, outcome, wanted, now=datetime.now(UTC), signed=signed, weights=same)
        return found + [Check("the page shows its document", False, problem) for problem in problems]

    def _opened(self) -> tuple[Register, float]:
        """The register, and what all its releases use together."""
        path, key = PATH.read("register", self.register), PATH.read("register_key", self.register_key)
        found = read_register(path, [load_public_key(key)])
        return found, found.spent()


@hinting
def gate(
    certificate: Any,
    policy: Policy | Path | str,
    *,
    key: Path | str | None = None,
    signature: Path | str | None = None,
    weights: Path | str | None = None,
    register: Path | str | None = None,
    register_key: Path | str | None = None,
    register_head: str | None = None,
    register_name: str | None = None,
    register_budget: str | None = None,
    tolerance: float = 0.0,
) -> Gated:
    """Verify a certificate, or each of a list, and check it against a policy.

    Args:
        certificate: the document, or the path of its file or page; or a list of these.
        policy: path of the policy, a YAML file.
        key: path of the public key of the issuer, whose signature is then required.
        signature: path of a detached signature; None takes the embedded one.
        weights: path of the file of weights that the certificate must name.
        register: path of the register of the data set, in which the release must be, and whose budget must be kept.
        register_key: path of the public key that signed its lines.
        register_head: the head that was printed last, which must still be there.
        register_name: the name of the data set that it must be about.
        register_budget: the budget that it must have, as ``epsilon=3@1e-5``.
        tolerance: relative difference of numbers to accept, at most 1e-5.

    Raises:
        ArtifactError: the only certificate, the policy, the register or a key cannot be read.
        ParameterError: what is given does not go together.
    """
    said = dict(locals())
    one = said.pop("certificate")
    return Gate.of(certificate=one if isinstance(one, (list, tuple)) else (one,), **said).answer()
