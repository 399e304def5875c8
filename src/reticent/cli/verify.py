"""``reticent verify``: derive a certificate again and compare every number and sentence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from reticent.certificate.schema import Certificate, moment, read_text
from reticent.certificate.text import inert
from reticent.certificate.verify import ROUNDING, State, Verification, verify
from reticent.cli._app import app
from reticent.cli._progress import waiting
from reticent.cli._tables import say
from reticent.errors import ArtifactError

_MOST_LINES = 20
SIGNATURE_WITHOUT_KEY = "--signature needs --key: a signature says nothing without the issuer's key"


@app.command("verify")
def verify_command(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="A certificate.json, certificate.public.json or page.")
    ],
    key: Annotated[Path | None, typer.Option("--key", help="Public key of the issuer: require its signature.")] = None,
    signature: Annotated[
        Path | None, typer.Option("--signature", help="A detached signature; default: the embedded one.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", help="The file of weights: compare its fingerprint.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help=f"Accept numbers that differ by this factor, at most {ROUNDING:g}.")
    ] = 0.0,
) -> None:
    """Derive the whole certificate again; exit code 1 when something does not agree, 2 when it cannot be checked."""
    document, page_problem = read_document(certificate)
    if signature is not None and key is None:
        raise ArtifactError(SIGNATURE_WITHOUT_KEY)
    with waiting("deriving") as progress:
        outcome = verify(document, tolerance=tolerance, progress=progress)
    problems = [
        *page_problem,
        *_expiry_problems(document),
        *signature_problems(document, key, signature),
        *_weights_problems(document, weights),
    ]
    accepted = outcome.accepted and not problems
    say(_verdict(certificate, document, outcome) if accepted else f"{certificate}: REFUSED")
    told = [*_checked(key, weights), *_reservations(document, outcome, key)]
    for line in told if accepted else _reasons(outcome, problems):
        say(line, indent=2)
    for line in _declared(document, outcome):
        say(line, indent=2)
    if not accepted:
        raise typer.Exit(1)


def _verdict(path: Path, document: Certificate, outcome: Verification) -> str:
    what = "the mechanism that it declares" if document.ledger is None else "the ledger in it"
    return f"{path}: ACCEPTED. All {outcome.equal} numbers and sentences that follow from {what} were derived again."


def read_document(path: Path) -> tuple[Certificate, list[str]]:
    """The document in a JSON file or a page, and where a page shows something else than its document."""
    from reticent.certificate import page

    text = read_text(path)
    if not text.strip():
        raise ArtifactError(f"{path} is empty")
    if not page.is_page(text):
        if text.lstrip()[0] != "{":
            raise ArtifactError(f"{path} is no certificate: neither its page nor its JSON")
        return Certificate.load(path), []
    document = page.embedded(text, str(path))
    difference = page.first_difference(text, document)
    return document, [] if difference is None else [f"the page is not what its document renders to, {difference}"]


def _expiry_problems(document: Certificate) -> list[str]:
    expires = document.declared.expires
    return [f"expired on {expires}"] if expires is not None and moment(expires) <= datetime.now(UTC) else []


def signature_problems(document: Certificate, key: Path | None, detached: Path | None) -> list[str]:
    """Why the document does not carry the signature of ``key``; empty where it does, or where no key is given."""
    if key is None:
        return []
    from reticent.certificate.signature import is_signed_by, load_public_key, load_signature

    public = load_public_key(key)
    signature = document.signature if detached is None else load_signature(detached)
    if signature is None:
        return ["the document is not signed"]
    if not is_signed_by(document, signature, public):
        return [f"the signature is not that of {key} for this document"]
    return []


def _weights_problems(document: Certificate, weights: Path | None) -> list[str]:
    if weights is None:
        return []
    if not weights.is_file():
        raise ArtifactError(f"{weights} is not a file")
    from reticent._strict import sha256_file

    if document.declared.weights_sha256 is None:
        return ["the certificate names no model"]
    found = sha256_file(weights)
    return [] if found == document.declared.weights_sha256 else [f"{weights} is another model: SHA-256 {found}"]


def _reasons(outcome: Verification, problems: list[str]) -> Iterator[str]:
    """Why a document is refused."""
    yield from (f"refused: {inert(problem)}" for problem in problems)
    refused = [difference for difference in outcome.differences if outcome.refuses(difference)]
    rounded = [difference for difference in refused if difference.state is State.ROUNDED]
    for difference in [d for d in refused if d not in rounded][:_MOST_LINES]:
        line = f"{difference.leaf} is {difference.stated}, derived {difference.found}"
        yield f"{difference.state.value}: {inert(line)}{f' ({difference.why})' if difference.why else ''}"
    if len(refused) - len(rounded) > _MOST_LINES:
        yield f"... and {len(refused) - len(rounded) - _MOST_LINES} more"
    if rounded:
        yield (
            f"rounded: {len(rounded)} numbers differ in their last digits, such as {rounded[0].leaf}. Another kind of "
            f"processor rounds that way. If that is acceptable, say --tolerance {ROUNDING:g}"
        )


def _checked(key: Path | None, weights: Path | None) -> Iterator[str]:
    """What else was compared with an accepted document."""
    if key is not None:
        yield f"Signed with the key of {inert(str(key))}."
    if weights is not None:
        yield f"{inert(str(weights))} is the model that it speaks about."


def _reservations(document: Certificate, outcome: Verification, key: Path | None) -> Iterator[str]:
    """What a reader must know about a document that agrees."""
    if key is None:
        yield "! No signature was checked: whoever wrote the document may have declared anything."
    if document.ledger is None:
        yield "! The mechanism is declared: no ledger of a run stands behind it."
    if outcome.private:
        who = ", ".join(outcome.private)
        yield f"! Resting on private measurements that nobody can check from here: {who}."
    if outcome.measured:
        who = ", ".join(outcome.measured)
        yield f"! Resting on measurements of public records that the document states and nobody derived: {who}."
    accepted = [d for d in outcome.differences if not outcome.refuses(d)]
    changed = sum(d.state is State.CHANGED for d in accepted)
    if len(accepted) > changed:
        yield f"! {len(accepted) - changed} numbers agree only within --tolerance {outcome.tolerance:g}."
    if changed:
        yield f"! {changed} differ as the changelog of a newer version explains: certify again."


def _declared(document: Certificate, outcome: Verification) -> Iterator[str]:
    """What nobody can derive."""
    for name, value in sorted(document.declared.model_dump(mode="json").items()):
        if value is not None:
            yield f"declared: {name} = {inert(str(value))}"
    facts = sum(not leaf.startswith("declared.") for leaf in outcome.declared)
    if facts:
        where = "ledger of the run" if document.ledger is not None else "mechanism"
        yield f"declared: {facts} facts of the {where}"
