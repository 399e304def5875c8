"""``reticent certify`` and ``reticent verify``: the certificate of a run, and its check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from reticent.certificate.build import certify_run
from reticent.certificate.schema import Certificate
from reticent.certificate.verify import verify
from reticent.cli._app import app
from reticent.cli._options import JsonOption, is_terminal
from reticent.cli._tables import print_assessments, print_json
from reticent.cli.train import load_settings, require_torch, train_with_bar
from reticent.errors import ArtifactError

if TYPE_CHECKING:
    from reticent.train import Run


@app.command("certify")
def certify(
    source: Annotated[Path, typer.Argument(metavar="RUN|CONFIG", help="A finished run, or a configuration to train.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the certificate; default: beside the run.")
    ] = None,
    include_private: Annotated[
        bool, typer.Option("--include-private", help="Show numbers that depend on private data in the page.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Certify a run under every adversary; a configuration is trained first."""
    from reticent.certificate.store import write_certificate  # matplotlib takes a while to import

    if not source.exists():
        raise ArtifactError(f"{source} does not exist: give a run directory or a configuration file")
    run, folder = _load(source, out) if source.is_dir() else _train(source, out)
    certificate = _certify(run)
    files = write_certificate(certificate, folder, include_private=include_private)
    if json:
        print_json(certificate)
        return
    console = Console()
    print_assessments(console, certificate.assessments, short=True)
    for assessment in certificate.assessments:
        console.print(f"- {assessment.sentence}", markup=False, highlight=False)
    for warning in certificate.warnings:
        console.print(f"! {warning.name}: {warning.text}", markup=False, highlight=False)
    console.print(f"\nopen {files.page}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"complete, not for publication: {files.complete}", markup=False, highlight=False, soft_wrap=True)


@app.command("verify")
def verify_command(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="A certificate.json.")],
) -> None:
    """Recompute a certificate's hash and numbers; exit code 1 when something does not agree."""
    outcome = verify(Certificate.load(certificate))
    for problem in outcome.problems:
        typer.echo(f"differs: {problem}")
    for name in outcome.not_recomputed:
        typer.echo(f"not recomputed (depends on data): {name}")
    if outcome.problems:
        raise typer.Exit(1)
    typer.echo(f"{certificate}: hash and {outcome.recomputed} assessments agree")


def _load(source: Path, out: Path | None) -> tuple[Run, Path]:
    require_torch()
    from reticent.train import load_run

    return load_run(source), out or source.resolve().with_name(f"{source.resolve().name}-certificate")


def _train(source: Path, out: Path | None) -> tuple[Run, Path]:
    """Train into ``out``/run, or take the finished run of the same configuration that lies there."""
    settings = load_settings(source)
    folder = out or Path("runs") / source.stem
    target = folder / "run"
    if not target.exists():
        return train_with_bar(source, settings, target), folder
    run, _ = _load(target, folder)
    if run.config != settings:
        raise ArtifactError(f"{target} holds a run of another configuration; choose another --out")
    typer.echo(f"{target} is a finished run of this configuration: certifying it, not training again", err=True)
    return run, folder


def _certify(run: Run) -> Certificate:
    sensitivity = run.sensitivity()
    if not is_terminal():
        return certify_run(run.ledger, sensitivity)
    with Console().status("assessing") as status:
        return certify_run(run.ledger, sensitivity, lambda name: status.update(f"assessing {name}"))
