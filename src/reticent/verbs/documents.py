"""``certify`` and ``verify``: certificates from whatever says what was run, and whether one agrees with itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reticent.adversaries.base import standard_adversaries
from reticent.adversaries.from_ledger import witness_of
from reticent.adversaries.witness import Witness
from reticent.certificates.build import CERTIFICATE_QUESTIONS, certify_run, run_declaration
from reticent.certificates.build import certify as certify_mechanism
from reticent.certificates.facts import unsupported
from reticent.certificates.policy import Policy, load_policy
from reticent.certificates.schema import OF_PARAMETERS, OF_SEVERAL, Certificate, CitedRelease, Declaration
from reticent.errors import ArtifactError, ParameterError
from reticent.io.models import first_problem
from reticent.keywords import hinting
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.pairs.neighbouring import relation_of
from reticent.records.chain import chained
from reticent.records.ledger import RunLedger, held, watched
from reticent.risk.report import MEASURES
from reticent.verbs.names import Who, adversaries, path_given, several
from reticent.verbs.table import Cell, Table
from reticent.verbs.together import OneRelease, released_together

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from matplotlib.axes import Axes

    from reticent.certificates.check import Checked
    from reticent.certificates.store import CertificateFiles
    from reticent.certificates.verify import Verification


class Certified(Table):
    """A certificate as a table, with the verbs that one needs next.

    Attributes:
        certificate: the document.
        alone: where it is about several releases, a line about each.
    """

    _leading, _claim = 2, 2

    def __init__(self, certificate: Certificate, alone: Sequence[str] = ()) -> None:
        self.certificate, self.alone = certificate, tuple(alone)

    def title(self) -> str:
        return self.certificate.headline

    def columns(self) -> tuple[str, ...]:
        """Who attacks under which relation, how strong the claim is, and the numbers."""
        return ("attacker", "neighbouring", "claim", *(MEASURES[name].at(*at) for name, at in self._stated()))

    def rows(self) -> list[tuple[Cell, ...]]:
        found: list[tuple[Cell, ...]] = []
        for record in self.certificate.assessments:
            numbers = [MEASURES[name].of(record, *at).value for name, at in self._stated()]
            cells = [math.inf if number is None else number for number in numbers]
            found.append((record.label, record.neighbouring, record.claim, *cells))
        return found

    def _stated(self) -> list[tuple[str, tuple[str, ...]]]:
        first = self.certificate.assessments[0]
        return [(name, at) for name in ("advantage", "tpr", "epsilon") for at in MEASURES[name].stated(first)]

    def notes(self) -> list[str]:
        """The warnings, and whether a ledger of a run supports the document."""
        named = [f"! {warning.name}: {warning.text}" for warning in self.certificate.warnings]
        if self.certificate.ledger is None:
            named.append(unsupported(self.certificate))
        return [*self.alone, *named]

    def to_json(self) -> str:
        """The complete document as strict JSON text; it is not for publication where it has private parts."""
        return self.certificate.to_json()

    def plot(self, axes: Sequence[Axes] | None = None) -> list[Any]:
        """Draw the curves that the page shows; see ``reticent.verbs.plots.plot_certified``."""
        from reticent.verbs.plots import plot_certified

        return plot_certified(self.certificate.assessments, axes)

    def save(
        self,
        folder: Path | str,
        *,
        key: Ed25519PrivateKey | None = None,
        include_private: bool = False,
        languages: Sequence[str] = (),
        overwrite: bool = False,
    ) -> CertificateFiles:
        """Write the complete document, the public one and the pages; see ``write_certificate``.

        Raises:
            ArtifactError: another certificate lies there, and ``overwrite`` is not said; or it cannot be written.
        """
        from reticent.certificates.store import write_certificate

        return write_certificate(
            self.certificate,
            Path(folder),
            key=key,
            include_private=include_private,
            languages=languages,
            overwrite=overwrite,
        )

    def verify(self) -> Verified:
        """Derive the whole document again and compare every number and sentence."""
        return verify(self.certificate)


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

    def __bool__(self) -> bool:
        return self.accepted

    def title(self) -> str:
        verdict = "accepted" if self.accepted else "REFUSED"
        return f"{verdict}: {self.verification.equal} numbers and sentences derived again and equal"

    def columns(self) -> tuple[str, ...]:
        return ("where", "state", "stated", "derived")

    def rows(self) -> list[tuple[Cell, ...]]:
        return [(d.leaf, d.state.value, d.stated, d.found) for d in self.verification.differences]

    def to_json(self) -> str:
        """What ``reticent verify --json`` prints."""
        return self.checked.to_json()

    def notes(self) -> list[str]:
        """Why it is refused, what else was compared, and what a reader must know."""
        declared = f"{len(self.verification.declared)} facts are declared: only a signature vouches for them."
        return [*self.checked.problems, *self.checked.compared, *self.checked.reservations(), declared]


@hinting
def certify(
    what: Any,
    *,
    subject: str | None = None,
    issuer: str | None = None,
    purpose: str | None = None,
    expires: str | None = None,
    created: str | None = None,
    publish: Sequence[str] = (),
    run_signed_by: str | None = None,
    adversary: Who | Sequence[Who] | None = None,
    neighbouring: Neighbouring | str | None = None,
    secret_bits: float | Sequence[float] = (),
    guesses: float | Sequence[float] = 1,
    contraction: float | None = None,
    policy: Policy | Path | str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Certified:
    """The certificate of a run, a ledger or a mechanism.

    Args:
        what: what ``rt.watch`` gave, a ledger, a finished run, or a mechanism; or a path: of a run, of a file with
            a ledger, or of a DpEvent in JSON. A mechanism alone is a claim about parameters: the certificate says
            that no run supports it. A list of watches or their ledgers, of loops that trained one model one after
            the other, is one chain. Any other list is releases from the same records, composed: who has all of them is
            the attacker, and ``alone`` has a line about each. So are loops between which the weights were averaged.
        subject, issuer, purpose, expires: what you declare; the subject of a run defaults to its data set.
        created: date of a certificate of parameters; today by default. A run has its own.
        publish: what the public document may show of records of your own: ``names`` (of files and columns),
            ``accuracy`` (on test records, two digits).
        run_signed_by: id of the key that signed the run when it ended, if you checked it.
        adversary: who attacks, for a mechanism; by default everybody who needs no measurement.
        neighbouring: between which data sets, for a mechanism; None means each adversary's own ``relation``.
        secret_bits: the certificate then says how likely a secret of so many bits (min-entropy) is guessed that is in
            one person's records and nowhere else; a number or several.
        guesses: in how many guesses; a number or several.
        contraction: you declare that nobody sees but the last weights, and that each update brings any two weight
            vectors closer together by this factor: the certificate then has the attacker who sees the final model only.
        policy: path of a policy (see ``reticent gate``): the certificate says of each limit whether it is met.
        progress: called with the name of each attacker before its numbers are computed.

    Raises:
        ArtifactError, ParameterError: it is none of these, or a declaration is malformed.
        UnsupportedError: not even the worst case can be answered.

    Example:
        >>> import reticent as rt
        >>> certificate = rt.certify(rt.Gaussian(2.0), subject="a table of means", created="2026-01-01")
        >>> certificate.verify().accepted
        True
    """
    said = {"subject": subject, "issuer": issuer, "purpose": purpose, "expires": expires}
    said["run_signed_by"] = run_signed_by
    questions = replace(
        CERTIFICATE_QUESTIONS, secret_bits=several(secret_bits=secret_bits), guesses=several(guesses=guesses)
    )
    for name, text in {**said, "created": created}.items():
        if text is not None and not isinstance(text, str):
            raise ParameterError(name, text, "a text")
    limits = policy if isinstance(policy, Policy) else None
    if limits is None and (file := path_given(policy=policy)) is not None:
        limits = load_policy(file)
    alone: list[str] = []
    cited: tuple[CitedRelease | None, ...] = ()
    if isinstance(what, (list, tuple)):
        loops = [loop for one in what if (loop := watched(one)) is not None]
        source: Any = chained(loops) if loops and len(loops) == len(what) else None
        if source is None:
            together = [_named(one, place) for place, one in enumerate(what, 1)]
            source, alone = released_together(together), [line for one in together for line in one.alone()]
            cited = tuple(one.cited() for one in together)
            said["subject"] = subject or OF_SEVERAL.format(len(what))
    else:
        source = _opened(what)
    if isinstance(source, Mechanism):
        today = created or datetime.now(UTC).date().isoformat()
        known = {"subject": OF_PARAMETERS, "created": today}
        known |= {name: text for name, text in said.items() if text is not None}
        chosen = usual = standard_adversaries(contraction=contraction)
        if adversary is not None:
            chosen = (*adversaries(adversary), *(who for who in usual if who.needs))
        with _declaring():
            declared = Declaration(**known, releases=cited if any(cited) else ())
        between = relation_of(neighbouring)
        found = certify_mechanism(
            source,
            declared,
            adversaries=chosen,
            neighbouring=between,
            questions=questions,
            policy=limits,
            progress=progress,
        )
        return Certified(found, alone)
    if adversary is not None or neighbouring is not None or created is not None:
        raise ParameterError("what", type(what).__name__, "a mechanism, if adversary, neighbouring or created is given")
    asked = {"questions": questions, "contraction": contraction, "policy": limits, "progress": progress}
    return Certified(_of_run(source, said, tuple(publish), asked))


@hinting
def verify(
    certificate: Certified | Certificate | Path | str,
    *,
    key: Path | str | Sequence[Path | str] | None = None,
    signature: Path | str | None = None,
    weights: Path | str | None = None,
    threshold: int | None = None,
    opening: Path | str | None = None,
    data: Path | str | None = None,
    tolerance: float = 0.0,
) -> Verified:
    """Derive a certificate again and compare every number and sentence.

    Args:
        certificate: the document, or the path of its JSON file or page.
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
    from reticent.certificates.check import check

    what: Certificate | Path
    if isinstance(certificate, (str, Path)):
        what = Path(certificate)
    else:
        what = certificate.certificate if isinstance(certificate, Certified) else certificate
        if not isinstance(what, Certificate):
            known = "a certificate, or the path of its file or page"
            raise ParameterError("certificate", type(what).__name__, known)
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    return Verified(
        check(
            what,
            key=[one for one in (path_given(key=each) for each in keys) if one is not None],
            signature=path_given(signature=signature),
            weights=path_given(weights=weights),
            threshold=threshold,
            opening=path_given(opening=opening),
            data=path_given(data=data),
            tolerance=tolerance,
        )
    )


@dataclass(frozen=True)
class Release:
    """What a file says was released.

    Attributes:
        mechanism: the release; of a ledger, the safe reading of what ran.
        warnings: what a reader of the ledger must know, as its certificate lists it; text by name.
        ledger: that the file holds, if it is one.
    """

    mechanism: Mechanism
    warnings: dict[str, str]
    ledger: Witness | None = None


def release_in(path: Path | str) -> Release:
    """What the file at ``path`` says was released, read as ``certify`` reads it; of a folder, its ``ledger.json``.

    Raises:
        ArtifactError: it is no ledger, certificate, mechanism or DpEvent, or its ledger cannot be accounted.
        UnsupportedError: the event has no counterpart.
    """
    from reticent.interop.documents import read_release

    path = Path(path)
    found = read_release(path / "ledger.json" if path.is_dir() else path)
    if isinstance(found, Mechanism):
        return Release(found, {})
    try:
        mechanism = found.mechanism()
    except ParameterError as error:
        raise ArtifactError(f"{path}: {error}") from None
    return Release(mechanism, {fact.key: str(fact.text) for fact in found.faults}, witness_of(found))


def _opened(what: Any) -> Any:
    """What lies at a path; everything else stays."""
    if not isinstance(what, (str, Path)):
        return what
    if not Path(what).is_dir():
        from reticent.interop.documents import read_release

        return read_release(Path(what))
    from reticent.training import load_run

    return load_run(what)


def _named(release: Any, place: int) -> OneRelease:
    """What was released, what to call it, and the ledger that says so."""
    if isinstance(release, (str, Path)):
        found = release_in(release)
        return OneRelease(str(release), found.mechanism, found.ledger)
    ledger = witness_of(release)
    stated = getattr(ledger, "mechanism", lambda: release)()
    if not isinstance(stated, Mechanism):
        raise ParameterError("what", type(release).__name__, "releases: mechanisms, ledgers, runs or files of these")
    return OneRelease(f"release {place}", stated, ledger)


def _of_run(
    source: Any,
    said: dict[str, Any],
    publish: tuple[str, ...],
    asked: dict[str, Any],
) -> Certificate:
    ledger: RunLedger | None = held(source)
    if ledger is None or ledger.diagnostics is None:
        raise ParameterError("what", type(source).__name__, "a mechanism, a ledger with its diagnostics, or a run")
    of_run = source is not ledger and ledger.config is not None
    more: dict[str, str | None] = {"weights_sha256": _weights_of(source)} if of_run else {}
    with _declaring():
        declared = run_declaration(ledger, publish, **more, **said)
    return certify_run(ledger, source.sensitivity() if of_run else None, declared, **asked)


@contextmanager
def _declaring() -> Iterator[None]:
    """What cannot be declared ends in one line."""
    try:
        yield
    except ValidationError as error:
        raise ArtifactError(first_problem(error)) from None


def _weights_of(run: Any) -> str:
    from reticent.training.rundir import WEIGHTS

    return str(run.manifest.files[WEIGHTS].sha256)
