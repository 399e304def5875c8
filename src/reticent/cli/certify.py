"""``reticent certify`` and ``reticent keygen``: certificates from whatever says what was run, and keys to sign them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from reticent.api.documents import certify as certify_anything
from reticent.api.releases import dpsgd
from reticent.certificates.build import certify_run, run_declaration
from reticent.certificates.schema import Certificate, Declaration
from reticent.certificates.text import inert
from reticent.cli._app import app
from reticent.cli._keys import consents_of, new_passphrase, private_key, signer_of_file, signer_of_run
from reticent.cli._ledger import check_run_folder
from reticent.cli._options import JsonOption
from reticent.cli._progress import waiting
from reticent.cli._tables import print_assessments, print_json, say
from reticent.cli.train import load_settings, require_torch, train_with_bar
from reticent.errors import ArtifactError, ParameterError
from reticent.io.strict import dumps
from reticent.mechanisms import DPSGD
from reticent.records.run_ledger import first_problem
from reticent.text import did_you_mean

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from reticent.training import Run


PARAMETERS = "dpsgd"
"""Instead of a run: the options are all that is known, and the certificate says so."""


@app.command("certify")
def certify(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|CONFIG|FILE.json|dpsgd",
            help="A finished run, a configuration to train, a ledger or DpEvent in JSON, or the word dpsgd for "
            "parameters alone.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the certificate; default: beside the run.")
    ] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="What is certified; default: the data set.")] = None,
    issuer: Annotated[str | None, typer.Option("--issuer", help="Who answers for the certificate.")] = None,
    purpose: Annotated[str | None, typer.Option("--purpose", help="What the model is for.")] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="Date from which it must not be relied on.")] = None,
    sign: Annotated[
        list[Path] | None, typer.Option("--sign", help="Private key of reticent keygen: sign with it; may be repeated.")
    ] = None,
    run_key: Annotated[
        Path | None, typer.Option("--run-key", help="Public key that signed the run; default: that of --sign.")
    ] = None,
    publish: Annotated[
        list[str] | None,
        typer.Option("--publish", help="Show of your own records: names (of files and columns) or accuracy."),
    ] = None,
    include_private: Annotated[
        bool, typer.Option("--include-private", help="Show numbers that depend on private data in the page.")
    ] = False,
    noise_multiplier: Annotated[
        float | None, typer.Option("--noise-multiplier", help="With dpsgd: noise over the clip norm, on the sum.")
    ] = None,
    sample_rate: Annotated[
        float | None, typer.Option("--sample-rate", help="With dpsgd: inclusion probability; or give the sizes.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="With dpsgd: noisy updates; or give --epochs.")] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="With dpsgd: passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="With dpsgd: expected batch size.")] = None,
    dataset_size: Annotated[int | None, typer.Option("--dataset-size", help="With dpsgd: training records.")] = None,
    sampler: Annotated[
        str | None, typer.Option("--sampler", help="With dpsgd: poisson, fixed-size or shuffled.")
    ] = None,
    records_per_user: Annotated[
        int | None, typer.Option("--records-per-user", help="With dpsgd: most records of one person.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="With dpsgd: record, or client for federated learning.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Certify a run, a ledger, or parameters under every adversary; a configuration is trained first."""
    from reticent.certificates.signature import signed
    from reticent.certificates.store import write_certificate

    typed = {
        "noise_multiplier": noise_multiplier,
        "sample_rate": sample_rate,
        "steps": steps,
        "epochs": epochs,
        "batch_size": batch_size,
        "dataset_size": dataset_size,
        "sampler": sampler,
        "records_per_user": records_per_user,
        "unit": unit,
    }
    parameters = {name: value for name, value in typed.items() if value is not None}
    alone = str(source) == PARAMETERS and not source.exists()
    if not alone and not source.exists():
        known = f"give a run directory, a configuration, a ledger or event in JSON, or the word {PARAMETERS}"
        raise ArtifactError(f"{source} does not exist: {known}{did_you_mean(source, [PARAMETERS])}")
    check_run_folder(source)
    if parameters and not alone:
        only = f"left out: {source} says it. It goes with the word {PARAMETERS} only"
        raise ParameterError(next(iter(parameters)), next(iter(parameters.values())), only)
    if alone and run_key is not None:
        raise ParameterError("run_key", str(run_key), "left out: there is no run, so nobody signed one")
    keys = [private_key(path) for path in sign or ()]
    declared: dict[str, Any] = {"subject": subject, "issuer": issuer, "purpose": purpose, "expires": expires}
    _check_declaration(declared)
    consents = consents_of(publish or ())
    if alone or source.suffix == ".json":
        if not alone:
            declared["run_signed_by"] = signer_of_file(source, keys, run_key)
        certificate, folder = _of_document(_mechanism(parameters) if alone else source, source, declared, out, consents)
    else:
        run, folder = _load(source, out) if source.is_dir() else _train(source, out, keys)
        declared["run_signed_by"] = signer_of_run(run.path, keys, run_key)
        certificate = _certify(run, declared, consents)
    files = write_certificate(certificate, folder, include_private=include_private, key=keys)
    if json:
        print_json(signed(certificate, *keys))
        return
    say(certificate.headline)
    print_assessments(certificate.assessments, short=True)
    for assessment in certificate.assessments:
        say(f"- {assessment.adversary}: {assessment.sentence}", indent=2)
    if certificate.ledger is None:
        say("! parameters only: nobody saw a run, and the certificate says so", indent=2)
    for warning in certificate.warnings:
        say(f"! {warning.name}: {warning.text}", indent=2)
    typer.echo(f"\nopen {files.page}")
    typer.echo(f"complete, not for publication: {files.complete}")


@app.command("keygen")
def keygen_command(
    private: Annotated[Path, typer.Argument(metavar="KEY", help="The private key to write; keep it secret.")],
    public: Annotated[
        Path | None, typer.Option("--public", help="The public key to write; default: KEY with .pub added.")
    ] = None,
    encrypt: Annotated[
        bool,
        typer.Option(
            "--encrypt", help="Encrypt the private key: the passphrase is asked for, or in $RETICENT_PASSPHRASE."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make an Ed25519 key pair for signing certificates; nothing is overwritten."""
    from reticent.certificates.signature import write_key_pair

    if not private.name:
        raise ParameterError("KEY", str(private), "the name of a file to write")
    shown = public or private.with_name(private.name + ".pub")
    write_key_pair(private, shown, new_passphrase() if encrypt else None)
    if json:
        typer.echo(dumps({"private": str(private), "public": str(shown)}), nl=False)
        return
    typer.echo(f"private key, for you alone: {private}")
    typer.echo(f"public key, for everybody who checks: {shown}")


def _check_declaration(given: dict[str, str | None]) -> None:
    """What is typed must be fit to be declared, before anything is trained."""
    typed = {name: text for name, text in given.items() if text is not None}
    try:
        Declaration(**{"subject": "a run", "created": "0001-01-01", **typed})
    except ValidationError as error:
        raise ArtifactError(inert(f"--{first_problem(error)}")) from None


def _load(source: Path, out: Path | None) -> tuple[Run, Path]:
    require_torch()
    from reticent.training import load_run

    return load_run(source), out or source.resolve().with_name(f"{source.resolve().name}-certificate")


def _train(source: Path, out: Path | None, keys: list[Ed25519PrivateKey]) -> tuple[Run, Path]:
    """Train into ``out``/run and sign it there, or take the finished run of the same configuration that lies there."""
    settings = load_settings(source)
    folder = out or Path("runs") / source.stem
    target = folder / "run"
    if not target.exists():
        return train_with_bar(source, settings, target, sign=keys[0] if keys else None), folder
    run, _ = _load(target, folder)
    if run.config != settings:
        raise ArtifactError(f"{target} holds a run of another configuration; choose another --out")
    typer.echo(f"{target} is a finished run of this configuration: certifying it, not training again", err=True)
    return run, folder


def _mechanism(parameters: dict[str, Any]) -> DPSGD:
    """What the options say; one that is missing is named."""
    if "noise_multiplier" not in parameters:
        raise ParameterError("noise_multiplier", None, f"given with {PARAMETERS}")
    return dpsgd(**parameters)


def _of_document(
    what: DPSGD | Path, source: Path, declared: dict[str, Any], out: Path | None, consents: tuple[str, ...]
) -> tuple[Certificate, Path]:
    """The certificate of parameters, or of a file that says what was released."""
    folder = out or (Path(PARAMETERS) if what is not source else source.resolve()).with_suffix("")
    with waiting("assessing"):
        certificate = certify_anything(what, publish=consents, **declared).certificate
    return certificate, folder if out else folder.with_name(f"{folder.name}-certificate")


def _certify(run: Run, declared: dict[str, str | None], consents: tuple[str, ...]) -> Certificate:
    from reticent.training.rundir import WEIGHTS

    try:
        declaration = run_declaration(
            run.ledger, consents, weights_sha256=run.manifest.files[WEIGHTS].sha256, **declared
        )
    except ValidationError as error:
        raise ArtifactError(inert("--" + first_problem(error).removeprefix("document: "))) from None
    with waiting("assessing") as progress:
        return certify_run(run.ledger, run.sensitivity(), declaration, progress)
