"""``reticent gate``: stop a release whose certificate breaches a policy."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from reticent._strict import write_atomic
from reticent.certificate.verify import ROUNDING
from reticent.cli._app import app
from reticent.cli._options import JsonOption
from reticent.cli._progress import waiting
from reticent.cli._tables import say
from reticent.errors import ArtifactError, ParameterError


@app.command("gate")
def gate_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="A certificate, or its page.")],
    policy: Annotated[Path, typer.Option("--policy", help="The policy, a YAML file.")],
    key: Annotated[Path | None, typer.Option("--key", help="Public key of the issuer: require its signature.")] = None,
    signature: Annotated[
        Path | None, typer.Option("--signature", help="A detached signature; default: the embedded one.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the outcome as Markdown; - prints it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the outcome as JUnit XML.")] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help=f"Accept numbers that differ by this factor, at most {ROUNDING:g}.")
    ] = 0.0,
    json: JsonOption = False,
) -> None:
    """Verify a certificate and hold it against a policy; exit code 1 on a breach, 2 when it cannot be checked."""
    from reticent.certificate import gate_report
    from reticent.certificate.check import read_document, refuse_without_key, signature_problems
    from reticent.certificate.policy import Check, check, load_policy
    from reticent.certificate.verify import verify

    printed = str(markdown) == "-"
    if printed and json:
        raise ParameterError("markdown", "-", "a file, or left out: --json prints nothing else")
    wanted = load_policy(policy)
    if wanted.signature and key is None:
        raise ArtifactError(f"{policy} requires a signature: give --key with the public key of the issuer")
    refuse_without_key(signature, key)
    document, page_problems = read_document(certificate)
    with waiting("deriving") as progress:
        outcome = verify(document, tolerance=tolerance, progress=progress)
    signed = None if key is None else not signature_problems(document, key, signature)
    checks = check(document, outcome, wanted, signed=signed, now=datetime.now(UTC))
    checks += [Check("the page shows its document", False, problem) for problem in page_problems]
    report = gate_report.markdown(document, checks)
    for path, text in ((None if printed else markdown, report), (junit, gate_report.junit(document, checks))):
        if path is not None:
            _write(path, text)
    if json:
        typer.echo(gate_report.as_json(document, checks), nl=False)
    elif printed:
        typer.echo(report, nl=False)
    else:
        for line in gate_report.plain(document, checks):
            say(line, indent=8 if line.startswith(("pass", "BREACH")) else 0)
    if not all(found.passed for found in checks):
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    try:
        write_atomic(path, text.encode())
    except OSError as error:
        raise ArtifactError(f"cannot write {path}: {error.strerror}") from None
