"""``reticent certify``: certificates from whatever says what was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from reticent.certificates.document.policy import load_policy
from reticent.certificates.document.schema import OWN_WORDS, Certificate, Declaration
from reticent.certificates.exports import EVERY, EXPORTS, LISTS
from reticent.certificates.page.facts import unsupported
from reticent.cli._app import argument, option
from reticent.cli._asking import asking, made
from reticent.cli._keys import private_key
from reticent.cli._options import mechanism_options, selected
from reticent.cli._tables import print_assessments, print_further, say
from reticent.cli.progress import waiting
from reticent.cli.train import train_with_bar
from reticent.io.models import first_problem
from reticent.io.times import moment
from reticent.kernel import checks
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.registry import gathered
from reticent.kernel.samplers import INDEPENDENT
from reticent.kernel.text import did_you_mean, one_of
from reticent.languages import languages
from reticent.training.rundir import check_run_folder, signer_of
from reticent.verbs.documents import Certify
from reticent.verbs.releases import dpsgd
from reticent.verbs.request import leave_out

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from reticent.training import Run


PARAMETERS = "dpsgd"
"""Instead of a run: the options are all that is known, and the certificate says so."""


_DECLARED = (*OWN_WORDS, "expires", "created")
_PARAMETERS = [one for one in mechanism_options(DPSGD, f"With {PARAMETERS}: ") if one.name != "batches_per_epoch"]
SHOWN_BY = (
    option("out", Path, "Folder for the certificate; default: next to the run."),
    option("sign", Path, "Private key of reticent keygen: sign with it; may be repeated.", many=True),
    option("run_key", Path, "Public key that signed the run; default: that of --sign."),
    option("language", str, "A page in this language beside the English one: de or fr; may be repeated.", many=True),
    option("export", str, f"Write {' or '.join(EXPORTS)} beside the page; may be repeated.", many=True),
    option("for", str, f"Fill the list of {', '.join(LISTS)} beside the page; may be repeated.", many=True),
    option("include_private", bool, "Show numbers that depend on private data in the page."),
)


def _ask(given: dict[str, Any]) -> Certify:
    """The request, with everything checked that can be before a configuration is trained."""
    source, more = given["source"], given["more"]
    parameters = {name: given[name] for one in _PARAMETERS if given[name := str(one.name)] is not None}
    if more:
        _no_options_of_one(parameters, given["publish"], given["run_key"])
    alone = str(source) == PARAMETERS and not source.exists()
    _check_source(source, alone, more, parameters, given["run_key"])
    _check_declaration({name: given[name] for name in _DECLARED})
    if given["contraction"] is not None:
        checks.rate(contraction=given["contraction"])
    release = (source, *more) if more else _mechanism(parameters) if alone else source
    return made(Certify, given, release=release)


def _do(request: Certify, given: Mapping[str, Any], json: bool) -> None:
    """Train a configuration, certify, write the files and say what they say."""
    from reticent.certificates.document.signature import signed
    from reticent.certificates.store import write_certificate

    keys, spoken = [private_key(path) for path in given["sign"]], given["language"]
    for code in spoken:
        if code not in languages():
            raise ParameterError("language", code, one_of(code, languages()))
    exports: dict[str, None] = {}
    for asked, known in (("export", EXPORTS), ("for", LISTS)):
        for name in given[asked]:
            if name not in known:
                raise ParameterError(asked, name, one_of(name, known))
            exports[name] = None
    policy = None if request.policy is None else load_policy(Path(str(request.policy)))
    parameters = isinstance(request.release, Mechanism)
    if isinstance(request.release, (str, Path)) and Path(request.release).suffix != ".json":  # a run, or one to train
        leave_out(
            {"neighbouring": request.neighbouring, "created": request.created},
            ": a run is certified under every relation, with its own date",
        )
    request, folder = _opened(replace(request, policy=policy), given["out"], keys, given["run_key"])
    with waiting("assessing") as progress:
        certified = request.answer(progress)
    certificate = certified.certificate
    private = given["include_private"]
    files = write_certificate(
        certificate, folder, include_private=private, languages=spoken, exports=tuple(exports), key=keys
    )
    if json:
        click.echo(signed(certificate, *keys).to_json(), nl=False)
        return
    _print_certificate(certificate, certified.alone)
    rests_on = {one.key for assessment in certificate.assessments for one in assessment.conditions}
    if parameters and given.get("sampler") is None and INDEPENDENT.condition.key in rests_on:
        say(f"! without --sampler you declare: {INDEPENDENT.condition.says}", indent=2)
    click.echo(f"\nopen {files.page}")
    for code in spoken:
        if code != "en":
            click.echo(f"open {files.page.with_suffix(f'.{code}.html')}")
    for name in exports:
        click.echo(f"{name}: {', '.join(str(folder / file) for file in EVERY[name])}")
    click.echo(f"complete, not for publication: {files.complete}")


ASKED = {Certify: _do}
certify = asking(
    "certify",
    Certify,
    _do,
    argument(
        "source",
        Path,
        "RUN|CONFIG|FILE.json|dpsgd",
        "A finished run, a configuration to train, a ledger or event in JSON, or the word dpsgd for parameters alone.",
    ),
    argument(
        "more",
        Path,
        "[MORE ...]",
        "More releases from the same records: all together are certified, each alone beside it.",
        required=False,
        many=True,
    ),
    ask=_ask,
    after=(*SHOWN_BY, *_PARAMETERS),
    help="Certify a run, a ledger, or parameters under every attacker; a configuration is trained first.",
)


def _opened(
    request: Certify, out: Path | None, keys: list[Ed25519PrivateKey], run_key: Path | None
) -> tuple[Certify, Path]:
    """The request about a run that is there and who signed it, and the folder of its certificate."""
    what = request.release
    if isinstance(what, tuple):
        return request, out or Path("together-certificate")
    if not isinstance(what, (str, Path)):
        return request, out or Path(f"{PARAMETERS}-certificate")
    source = Path(what)
    if source.suffix == ".json":
        signer = signer_of(source, keys, run_key)
        return replace(request, run_signed_by=signer), out or _beside(source.resolve().with_suffix(""))
    run, folder = _run(source, out, keys)
    return replace(request, release=run, run_signed_by=signer_of(run.path, keys, run_key)), folder


def _check_source(
    source: Path, alone: bool, more: tuple[Path, ...], parameters: dict[str, Any], run_key: Path | None
) -> None:
    """What is certified must be there, or be the word for parameters ``alone``, and go with the other options."""
    if alone and more:
        raise ArtifactError(f"the word {PARAMETERS} is for parameters alone: leave it out where files are certified")
    if not alone and not source.exists():
        known = f"give a run directory, a configuration, a ledger or event in JSON, or the word {PARAMETERS}"
        raise ArtifactError(f"{source} does not exist: {known}{did_you_mean(source, [PARAMETERS])}")
    check_run_folder(source)
    if alone:
        leave_out({"run_key": run_key}, ": there is no run that could have been signed")
    else:
        leave_out(parameters, f": {source} says it. It goes with the word {PARAMETERS} only")


def _print_certificate(certificate: Certificate, alone: Sequence[str]) -> None:
    """Its numbers and sentences, those of each release ``alone``, and what a reader must know."""
    say(certificate.headline)
    print_assessments(certificate.assessments, usual=True)
    print_further(certificate.assessments)
    for assessment in certificate.assessments:
        private = " This number rests on private data: do not publish it." if assessment.do_not_publish else ""
        say(f"- {assessment.adversary}: {assessment.sentence}{private}", indent=2)
    say(*alone, indent=2)
    if certificate.ledger is None:
        cited = certificate.declared.releases
        alone_says = "parameters only: nobody saw a run, and the certificate says so"
        say(f"! {unsupported(certificate) if cited else alone_says}", indent=2)
    for one in certificate.requirements:
        say(f"{'passed' if one.passed else 'FAILED'}  {one.name}: {one.detail}", indent=8)
    for warning in certificate.warnings:
        say(f"! {warning.name}: {warning.text}", indent=2)


def _check_declaration(given: dict[str, str | None]) -> None:
    """What is typed must be fit to be declared, before anything is trained."""
    typed = {name: text for name, text in given.items() if text is not None}
    try:
        found = Declaration(**{"subject": "a run", "created": "0001-01-01", **typed})
    except ValidationError as error:
        raise ArtifactError(f"--{first_problem(error)}") from None
    if found.expires is not None and moment(found.expires) <= datetime.now(UTC):
        raise ParameterError("expires", found.expires, "a date in the future")


def _beside(source: Path) -> Path:
    return source.with_name(f"{source.name}-certificate")


def _run(source: Path, out: Path | None, keys: list[Ed25519PrivateKey]) -> tuple[Run, Path]:
    """The run in a folder, or that of a configuration, and where its certificate goes.

    A configuration is trained into ``out``/run and signed there; a finished run of it that lies there is taken.
    """
    from reticent.training import load_config, load_run

    if source.is_dir():
        return load_run(source), out or _beside(source.resolve())
    settings = load_config(source)
    folder = out or Path("runs") / source.stem
    target = folder / "run"
    if not target.exists():
        return train_with_bar(source, settings, target, sign=keys[0] if keys else None), folder
    run = load_run(target)
    if run.config != settings:
        raise ArtifactError(f"{target} holds a run of another configuration; choose another --out")
    click.echo(f"{target} is a finished run of this configuration: certifying it, not training again", err=True)
    return run, folder


def _no_options_of_one(parameters: dict[str, Any], publish: tuple[str, ...], run_key: Path | None) -> None:
    """What goes with one release only is refused for several."""
    given = {**parameters, "publish": publish or None, "run_key": run_key}
    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, str(value), "left out where several releases are certified together")


def _mechanism(parameters: dict[str, Any]) -> Mechanism:
    """What the options say; one that is missing is named."""
    if "noise_multiplier" not in parameters:
        raise ParameterError("noise_multiplier", None, f"given with {PARAMETERS}", shown=False)
    chosen = {name: parameters.pop(name, None) for name in ("selection", "mean_runs", "shape")}
    return selected(dpsgd(**gathered(DPSGD, parameters)), chosen)
