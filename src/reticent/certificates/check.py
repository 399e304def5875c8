"""What the receiver of a certificate checks: its numbers, its page, its date, its signature and its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.sentences import STOP, persons
from reticent.certificates.page.facts import unsupported
from reticent.certificates.page.words import denied
from reticent.certificates.verify import Verification, verify
from reticent.facts.checkpoints import kept
from reticent.io.files import read_text, sha256_file
from reticent.io.strict import LARGEST_FILE, loads
from reticent.io.times import moment
from reticent.kernel.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of all checks.

    Attributes:
        document: what was checked.
        verification: how each number and sentence agrees with what was derived again.
        problems: why it is refused besides.
        compared: what else was compared and agrees, as sentences.
        signed: whether a signature was asked for.
    """

    document: Certificate
    verification: Verification
    problems: tuple[str, ...]
    compared: tuple[str, ...]
    signed: bool

    @property
    def accepted(self) -> bool:
        """Every number and sentence agrees, and nothing else is wrong."""
        return self.verification.accepted and not self.problems

    def reservations(self) -> Iterator[str]:
        """What a reader must know about a document that agrees."""
        outcome = self.verification
        if not self.signed:
            has = ", ".join(f"one of the key {one.keyid[:16]}..." for one in self.document.signatures) or "none"
            yield f"No signature was checked: the document has {has}. Its author may have declared anything."
        created = self.document.declared.created
        if moment(created) > datetime.now(UTC) + timedelta(days=1):  # a day's grace: somewhere it is tomorrow
            yield f"It is dated {created}, which is in the future: its issuer declares what cannot be."
        if outcome.accepted and persons(self.document.mechanism) is None:
            yield " ".join(map(str, STOP))
        if (false := denied(self.document)) is not None:
            yield str(false)
        if self.document.ledger is None:
            yield unsupported(self.document)
        elif self.document.declared.run_signed_by is None:
            yield "Nobody signed the run when it ended: its files may have been edited before they were certified."
        if outcome.private:
            who = ", ".join(outcome.private)
            yield f"Resting on private measurements that nobody can check from here: {who}."
        if outcome.measured:
            who = ", ".join(outcome.measured)
            yield f"Resting on measurements of public records that the document states and nobody derived: {who}."
        agreed = [d for d in outcome.differences if not outcome.refuses(d)]
        if agreed:
            yield f"{len(agreed)} numbers agree only within --tolerance {outcome.tolerance:g}."


def check(
    certificate: Certificate | Path,
    *,
    key: Sequence[Path] = (),
    signature: Path | None = None,
    weights: Path | None = None,
    threshold: int | None = None,
    opening: Path | None = None,
    data: Path | None = None,
    tolerance: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> Checked:
    """Derive a certificate again, and compare what else is given.

    Args:
        certificate: the document, or the path of its JSON file or page.
        key: public keys that must have signed: that of the issuer, or several.
        signature: a detached envelope; None takes the embedded signatures.
        weights: the file of weights that the certificate must be about.
        threshold: how many of several keys are enough.
        opening: the file that opens the commitments to private data; see ``opening``.
        data: with an opening: the file of the table that was trained on.
        tolerance: relative difference of numbers to accept, at most 1e-5.
        progress: called with the name of each attacker before its numbers are computed.

    Raises:
        ArtifactError: a file cannot be read, the document cannot be derived, or a signature or threshold is given
            without a key.
    """
    document, problems = read_document(certificate) if isinstance(certificate, Path) else (certificate, [])
    refuse_without_key(signature, key, threshold)
    verification = verify(document, tolerance=tolerance, progress=progress)
    unsigned, signed = _told_of_keys(document, key, signature, threshold) if key else ([], [])
    other, same = ([], []) if weights is None else _told_of(document, weights)
    problems += [*_expired(document), *unsigned, *other]
    compared = [*(f"Signed with the key of {one}." for one in signed), *same]
    if opening is not None:
        from reticent.certificates.document.opening import check_opening

        unopened, opened = check_opening(document, opening, data)
        problems, compared = [*problems, *unopened], [*compared, *opened]
    elif data is not None:
        raise ArtifactError("--data needs --opening: the certificate itself holds nothing to compare data with")
    return Checked(document, verification, tuple(problems), tuple(compared), bool(key))


def refuse_without_key(signature: Path | None, key: Sequence[Path], threshold: int | None = None) -> None:
    """A signature says nothing without the issuer's key, and a number of keys nothing without keys.

    Raises:
        ArtifactError: a signature or a threshold is given without a key.
    """
    if threshold is not None and not key:
        raise ArtifactError("--threshold needs --key: it says how many of the keys must have signed")
    if signature is not None and not key:
        raise ArtifactError("--signature needs --key: a signature says nothing without the issuer's key")


def read_document(path: Path) -> tuple[Certificate, list[str]]:
    """The document of a JSON file, a page or an export, and where one of these shows something else than its document.

    Raises:
        ArtifactError: it is neither, or cannot be read.
    """
    text = read_text(path, LARGEST_FILE)
    if not text.strip():
        raise ArtifactError(f"{path} is empty")
    if path.suffix in (".yaml", ".md") or text.rstrip().endswith("-->"):
        from reticent.certificates import exports

        return exports.read(path, text)
    if text.lstrip()[0] not in "<{":
        raise ArtifactError(f"{path} is not a certificate: neither its page nor its JSON")
    if text.lstrip()[0] == "{":
        return Certificate.parse(loads(text, str(path)), str(path)), []
    from reticent.certificates.page import page

    document = page.embedded(text, str(path))
    difference = page.first_difference(text, document)
    return document, [] if difference is None else [f"the page is not what its document renders to, {difference}"]


def signature_problems(
    document: Certificate, key: Sequence[Path], detached: Path | None, threshold: int | None = None
) -> list[str]:
    """Why the document is not signed as it must be; empty where it is.

    Args:
        document: any; that embedded signatures are those of the keys that they name is ``verify``'s.
        key: public keys that must have signed.
        detached: an envelope instead of the embedded signatures; None takes those.
        threshold: how many of the keys are enough; by default all.

    Raises:
        ArtifactError: a file cannot be read, or the threshold fits no number of keys.
    """
    return _told_of_keys(document, key, detached, threshold)[0] if key else []


def _told_of_keys(
    document: Certificate, key: Sequence[Path], detached: Path | None, threshold: int | None
) -> tuple[list[str], list[Path]]:
    """Why too few of these keys signed, and the files of those that did; two files of one key count once."""
    from reticent.certificates.document.signature import check_threshold, load_envelope, signers
    from reticent.signing.keys import key_id, key_text, load_public_key

    keys = {path: load_public_key(path) for path in key}
    wanted = check_threshold(list(keys), threshold)
    if not document.signatures and detached is None:
        return ["the document is not signed"], []
    envelope = None if detached is None else load_envelope(detached)
    try:
        found = signers(document, keys.values(), envelope)
    except ArtifactError:  # the envelope is around another document
        found = []
    signed = [next(path for path in keys if key_text(keys[path]) == one) for one in found]
    if len(signed) >= wanted:
        return [], signed
    ids = {path: key_id(public) for path, public in keys.items() if path not in signed}
    missing = ", ".join(f"{path} ({one[:16]}...)" for path, one in ids.items())
    enough = "" if wanted == len(keys) else f" ({len(signed)} of {wanted} that are enough)"
    there = [one.keyid for one in (document.signatures if envelope is None else envelope.signatures)]
    if set(ids.values()) <= set(there):
        return [
            f"the signature of the key {missing} does not fit this document: one of both was changed{enough}"
        ], signed
    named = ", ".join(f"{one[:16]}..." for one in there)
    return [f"the document is not signed with the key {missing}{enough}; its signature names {named}"], signed


def _expired(document: Certificate) -> list[str]:
    expires = document.declared.expires
    return [f"expired on {expires}"] if expires is not None and moment(expires) <= datetime.now(UTC) else []


def weights_problems(document: Certificate, weights: Path | None) -> list[str]:
    """Why ``weights`` is not the model that the document names; empty where it is, or where none is given.

    Weights of an earlier step, which the watched loop kept, are covered, too.

    Raises:
        ArtifactError: it is not a file.
    """
    return [] if weights is None else _told_of(document, weights)[0]


def _told_of(document: Certificate, weights: Path) -> tuple[list[str], list[str]]:
    """Why these weights are not those of the document, or what they are."""
    if not weights.is_file():
        raise ArtifactError(f"{weights} is not a file")
    if document.declared.weights_sha256 is None:
        return ["the certificate names no model"], []
    found = sha256_file(weights)
    if found == document.declared.weights_sha256:
        return [], [f"{weights} is the model that it is about."]
    if document.ledger is not None and found in kept(document.ledger):
        return [], [f"{weights} holds weights that an earlier step of its run left: its numbers cover them, too."]
    return [f"{weights} is another model: SHA-256 {found}"], []
