"""``reticent gate``: stop a release whose certificate breaches a policy."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.certificates.verify import ROUNDING
from reticent.cli._app import JSON, command, option
from reticent.cli._limits import limited
from reticent.cli._options import TIMEOUT
from reticent.cli._paths import several
from reticent.cli._progress import waiting
from reticent.cli._tables import say
from reticent.errors import ArtifactError, ParameterError
from reticent.io.outputs import refuse_foreign, write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reticent.certificates.gate_report import Judged
    from reticent.certificates.policy import Policy
    from reticent.certificates.register import Register
    from reticent.certificates.requirements import Check
    from reticent.certificates.schema import Certificate
    from reticent.mechanisms import Neighbouring


_OF_REGISTER = (
    option("register_key", Path, "With --register: public key that signed its lines."),
    option("register_head", str, "With --register: the head that was printed last; it must still be there."),
    option("register_name", str, "With --register: the name of the data set that it must be about."),
    option("register_budget", str, "With --register: the budget that it must have, as epsilon=3@1e-5."),
)


@command(
    "gate",
    several("CERTIFICATE...", "A certificate, or its page; or several."),
    option("policy", Path, "The policy, a YAML file.", required=True),
    option("key", Path, "Public key of the issuer: require its signature."),
    option("signature", Path, "A detached signature; default: the embedded one."),
    option("markdown", Path, "Write the outcome as Markdown; - prints it."),
    option("junit", Path, "Write the outcome as JUnit XML."),
    option("weights", Path, "The file of weights: it must be the one that the certificate names."),
    option("register", Path, "The register of the data set: the release must be in it, and its budget kept."),
    *_OF_REGISTER,
    option("tolerance", float, f"Accept numbers that differ by this factor, at most {ROUNDING:g}.", 0.0),
    TIMEOUT,
    JSON,
)
def gate(
    paths: tuple[Path, ...],
    policy: Path,
    key: Path | None,
    signature: Path | None,
    markdown: Path | None,
    junit: Path | None,
    weights: Path | None,
    register: Path | None,
    tolerance: float,
    timeout: float,
    json: bool,
    **of_register: Any,
) -> None:
    """Verify a certificate and check it against a policy; exit code 1 on a breach, 2 when nothing can be checked.

    Of several, the worst exit code counts.
    """
    from reticent.certificates import gate_report
    from reticent.certificates.check import refuse_without_key
    from reticent.certificates.policy import load_policy
    from reticent.certificates.requirements import Check

    printed = str(markdown) == "-"
    if printed and json:
        raise ParameterError("markdown", "-", "a file, or left out: --json prints nothing else")
    wanted = load_policy(policy)
    if wanted.signature and key is None:
        raise ArtifactError(f"{policy} requires a signature: give --key with the public key of the issuer")
    if wanted.weights and weights is None:
        raise ArtifactError(f"{policy} requires the model: give --weights with its file")
    refuse_without_key(signature, [] if key is None else [key])
    for name, file in {"signature": signature, "weights": weights}.items():
        if file is not None and len(paths) > 1:
            raise ParameterError(name, str(file), "left out: it belongs to one certificate")
    for name, value in of_register.items():
        if register is None and value is not None:
            raise ParameterError("register", None, f"given with --{name.replace('_', '-')}", shown=False)
    if register is not None and of_register["register_key"] is None:
        raise ParameterError("register_key", None, "given with --register", shown=False)
    outputs = [(None if printed else markdown, gate_report.MARKDOWN_MARK), (junit, gate_report.JUNIT_MARK)]
    for path, mark in outputs:
        if path is not None:
            refuse_foreign(path, mark)
    entered: Callable[[Certificate], list[Check]] | None = None
    if register is not None:
        opened = cache(partial(_opened, register, of_register.pop("register_key")))
        entered = partial(_registered, opened, wanted.demanded, **of_register)
    judged: list[Judged] = []
    for path in paths:
        try:
            judged.append(_judged(path, wanted, key, signature, weights, tolerance, timeout, entered))
        except ArtifactError as error:
            if len(paths) == 1 or path.is_file():
                raise
            unread = [Check("the certificate can be read", False, str(error))]
            judged.append(gate_report.Judged(str(path), None, unread, read=False))
    reports = gate_report.of_one(judged[0]) if len(judged) == 1 else gate_report.of_many(judged)
    for (path, mark), text in zip(outputs, (reports.markdown, reports.junit), strict=True):
        if path is not None:
            write_output(path, text.encode(), mark)
    if json or printed:
        click.echo(reports.json if json else reports.markdown, nl=False)
    else:
        for line in reports.plain:
            say(line, indent=8 if line.startswith(("pass", "BREACH")) else 2 if line.startswith("!") else 0)
    if code := max(one.exit_code for one in judged):
        raise click.exceptions.Exit(code)


def _judged(
    path: Path,
    wanted: Policy,
    key: Path | None,
    signature: Path | None,
    weights: Path | None,
    tolerance: float,
    timeout: float,
    entered: Callable[[Certificate], list[Check]] | None,
) -> Judged:
    """A certificate beside a policy.

    Raises:
        ArtifactError: there is no such file, or one of the others cannot be read.
    """
    from reticent.certificates.check import Checked, read_document, signature_problems, weights_problems
    from reticent.certificates.gate import check
    from reticent.certificates.gate_report import Judged
    from reticent.certificates.requirements import Check
    from reticent.certificates.verify import verify

    try:
        with limited(path, timeout), waiting("deriving") as progress:
            document, problems = read_document(path)
            outcome = verify(document, tolerance=tolerance, progress=progress)
    except ArtifactError as error:
        if not path.is_file():
            raise
        return Judged(str(path), None, [Check("the certificate verifies", False, str(error))])
    signed = None if key is None else not signature_problems(document, [key], signature)
    same = None if weights is None else not weights_problems(document, weights)
    checks = check(document, outcome, wanted, now=datetime.now(UTC), signed=signed, weights=same)
    checks += [Check("the page shows its document", False, problem) for problem in problems]
    checks += [] if entered is None else entered(document)
    known = tuple(Checked(document, outcome, (), (), key is not None).reservations())
    return Judged(str(path), document, checks, known)


def _opened(path: Path, key: Path) -> tuple[Register, float]:
    """The register, and what all its releases use together."""
    from reticent.certificates.register import read_register
    from reticent.signing.keys import load_public_key

    found = read_register(path, [load_public_key(key)])
    return found, found.spent()


def _registered(
    opened: Callable[[], tuple[Register, float]],
    demanded: Sequence[Neighbouring],
    document: Certificate,
    *,
    register_head: str | None,
    register_name: str | None,
    register_budget: str | None,
) -> list[Check]:
    from reticent.calibration.spelling import target_of
    from reticent.certificates.register import TORN
    from reticent.certificates.requirements import Check

    budget = None if register_budget is None else target_of(register_budget)
    found, spent = opened()
    entered = found.holds(document)
    notes = [TORN] if found.torn else []
    notes += ["whether it is an old one was not asked (--register-head)"] if register_head is None else []
    how = "; ".join([f"{found.opened.data}: {'entered' if entered else 'not entered'}", *notes])
    between = found.opened.neighbouring
    kept = f"{found.left(spent)} ({between}, for a plan)"
    checks = [
        Check("the release is in the register", entered, how),
        Check("all releases keep the budget", found.budget.met_by(spent), kept),
        Check("the register is of a relation of the policy", between in demanded, between),
    ]
    if register_head is not None:
        there = found.reaches(register_head)
        checks.append(
            Check("the register is no old one", there, f"the head {'is' if there else 'is not'} in it: {register_head}")
        )
    if register_name is not None:
        checks.append(Check("the register is of the data", found.opened.data == register_name, found.opened.data))
    if budget is not None:
        checks.append(Check("the register has the budget", found.budget == budget, found.opened.budget))
    return checks
