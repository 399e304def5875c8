"""``certify``: certificates from whatever says what was run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reticent.certificates.build import CERTIFICATE_QUESTIONS, certify_run, run_declaration
from reticent.certificates.build import certify as certify_mechanism
from reticent.certificates.document.policy import Policy, load_policy
from reticent.certificates.document.schema import (
    CONSENTS,
    OF_PARAMETERS,
    OF_SEVERAL,
    OWN_WORDS,
    Certificate,
    CitedRelease,
    Declaration,
)
from reticent.certificates.page.facts import unsupported
from reticent.certificates.together import OneRelease, released_together
from reticent.io.models import first_problem
from reticent.kernel.adversaries.base import standard_adversaries
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.records.chain import chained
from reticent.records.ledger import RunLedger, held, watched
from reticent.verbs.names import ATTACKERS, BETWEEN, RELATION, Attackers, Who
from reticent.verbs.releases import WHOLE, Release
from reticent.verbs.request import NUMBER, NUMBERS, PATH, TEXT, Request, Spelling, asked, several, word
from reticent.verbs.risks import OF_BASELINES, OF_SECRETS
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from matplotlib.axes import Axes

    from reticent.certificates.store import CertificateFiles
    from reticent.verbs.verifying import Verified


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
            cells = [MEASURES[name].of(record, *at).most for name, at in self._stated()]
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

    def theorems(self) -> list[str]:
        return [key for record in self.certificate.assessments for key in record.theorems]

    def plot(self, ax: Sequence[Axes] | None = None, *, style: str = "attackers", legend: bool = True) -> list[Any]:
        """Draw the curves that the page shows; see ``reticent.verbs.plots.plot_certified``."""
        from reticent.verbs.plots import plot_certified

        return plot_certified(self.certificate.assessments, ax, style=style, legend=legend)

    def save(
        self,
        folder: Path | str,
        *,
        key: Ed25519PrivateKey | None = None,
        include_private: bool = False,
        languages: Sequence[str] = (),
        exports: Sequence[str] = (),
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
            exports=exports,
            overwrite=overwrite,
        )

    def verify(self) -> Verified:
        """Derive the whole document again and compare every number and sentence."""
        from reticent.certificates.check import check
        from reticent.verbs.verifying import Verified

        return Verified(check(self.certificate))


def _policy(name: str, said: Any) -> Policy | Path:
    return said if isinstance(said, Policy) else PATH.read(name, said)


def _policy_written(policy: Policy | Path) -> str:
    if isinstance(policy, Policy):
        raise UnsupportedError("a request names the file of a policy")
    return str(policy)


_CONSENTS = several(word(*CONSENTS))
PUBLISH = replace(_CONSENTS, read=lambda name, said: tuple(x for x in CONSENTS if x in _CONSENTS.read(name, said)))
CHECKED = replace(TEXT, schema=None, typed=None)
"""What a program says after it looked; a file cannot."""
POLICY: Spelling = Spelling(_policy, _policy_written, {"type": "string"}, Path)


@dataclass(frozen=True, kw_only=True)
class Certify(Request):
    """The certificate of a run, a ledger or a mechanism."""

    verb = "certify"
    release: Any = asked(WHOLE, "A run, a ledger, a mechanism or an event, or the path of one; or several of these.")
    subject: str | None = asked(TEXT, "What is certified; default: the data set.", None)
    issuer: str | None = asked(TEXT, "Who answers for the certificate.", None)
    purpose: str | None = asked(TEXT, "What the model is for.", None)
    recipients: str | None = asked(TEXT, "Who gets the model.", None)
    controls: str | None = asked(TEXT, "What keeps others from the model, and from using it otherwise.", None)
    means: str | None = asked(TEXT, "Means reasonably likely to be used to identify somebody (GDPR, recital 26).", None)
    expires: str | None = asked(TEXT, "Date from which it must not be relied on.", None)
    created: str | None = asked(TEXT, "Date of a certificate of parameters; default: today.", None)
    publish: tuple[str, ...] = asked(
        PUBLISH, "Show about your own records: names (of files and columns) or accuracy.", ()
    )
    run_signed_by: str | None = asked(CHECKED, "Id of the key that signed the run.", None)
    adversary: Attackers | None = asked(ATTACKERS, "Who attacks; default: all who need no measurement.", None)
    neighbouring: Neighbouring | None = asked(RELATION, BETWEEN, None)
    secret_bits: tuple[float, ...] = asked(NUMBERS, OF_SECRETS, ())
    guesses: tuple[float, ...] = asked(NUMBERS, "Guesses of that secret; default: 1.", (1,))
    baseline: tuple[float, ...] = asked(NUMBERS, OF_BASELINES, ())
    contraction: float | None = asked(
        NUMBER,
        "You declare: nobody sees but the last weights, and each update brings weights closer together by this factor.",
        None,
    )
    policy: Policy | Path | None = asked(
        POLICY, "Limits to judge the risks by: the certificate says which of them are met.", None
    )

    def __post_init__(self) -> None:
        _ = self.questions  # a number outside of its domain is refused

    @property
    def questions(self) -> Questions:
        """Where the curves are read."""
        asked = {"secret_bits": self.secret_bits, "guesses": self.guesses, "baselines": self.baseline}
        return replace(CERTIFICATE_QUESTIONS, **asked)

    def answer(self, progress: Callable[[str], None] | None = None) -> Certified:
        """The certificate.

        Args:
            progress: called with the name of each attacker before its numbers are computed.

        Raises:
            ArtifactError, ParameterError: the release is none, or a declaration is malformed.
            UnsupportedError: not even the worst case can be answered.
        """
        said: dict[str, Any] = {name: getattr(self, name) for name in _DECLARED}
        limits = load_policy(self.policy) if isinstance(self.policy, Path) else self.policy
        alone: list[str] = []
        cited: tuple[CitedRelease | None, ...] = ()
        if isinstance(self.release, tuple):
            loops = [loop for one in self.release if (loop := watched(one)) is not None]
            source: Any = chained(loops) if loops and len(loops) == len(self.release) else None
            if source is None:
                together = [_named(one, place) for place, one in enumerate(self.release, 1)]
                source, alone = released_together(together), [line for one in together for line in one.alone()]
                cited = tuple(one.cited() for one in together)
                said["subject"] = self.subject or OF_SEVERAL.format(len(self.release))
        else:
            source = _opened(self.release)
        if not isinstance(source, Mechanism):
            if self.adversary is not None or self.neighbouring is not None or self.created is not None:
                wanted = "a mechanism, if adversary, neighbouring or created is given"
                raise ParameterError("what", type(source).__name__, wanted)
            asked = {"questions": self.questions, "contraction": self.contraction, "policy": limits}
            where = str(self.release) if isinstance(self.release, (str, Path)) else "this"
            return Certified(_of_run(source, where, said, self.publish, {**asked, "progress": progress}))
        known = {"subject": OF_PARAMETERS, "created": self.created or datetime.now(UTC).date().isoformat()}
        known |= {name: text for name, text in said.items() if text is not None}
        chosen = usual = standard_adversaries(contraction=self.contraction)
        if self.adversary is not None:
            chosen = (*self.adversary.each, *(who for who in usual if who.needs))
        with _declaring():
            declared = Declaration(**known, releases=cited if any(cited) else ())
        found = certify_mechanism(
            source,
            declared,
            adversaries=chosen,
            neighbouring=self.neighbouring,
            questions=self.questions,
            policy=limits,
            progress=progress,
        )
        return Certified(found, alone)


_DECLARED = (*OWN_WORDS, "expires", "run_signed_by")


@hinting
def certify(
    what: Any,
    *,
    subject: str | None = None,
    issuer: str | None = None,
    purpose: str | None = None,
    recipients: str | None = None,
    controls: str | None = None,
    means: str | None = None,
    expires: str | None = None,
    created: str | None = None,
    publish: Sequence[str] = (),
    run_signed_by: str | None = None,
    adversary: Who | Sequence[Who] | None = None,
    neighbouring: Neighbouring | str | None = None,
    secret_bits: float | Sequence[float] | None = None,
    guesses: float | Sequence[float] | None = None,
    baseline: float | Sequence[float] | None = None,
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
        recipients, controls, means: what you declare too: who gets the model, what keeps others from it, and which
            means are reasonably likely to be used to identify somebody (recital 26 of the GDPR).
        created: date of a certificate of parameters; today by default. A run has its own.
        publish: what the public document may show of records of your own: ``names`` (of files and columns),
            ``accuracy`` (on test records, two digits).
        run_signed_by: id of the key that signed the run when it ended, if you checked it.
        adversary: who attacks, for a mechanism; by default everybody who needs no measurement.
        neighbouring: between which data sets, for a mechanism; None means each adversary's own ``relation``.
        secret_bits: the certificate then says how likely a secret of so many bits (min-entropy) is guessed that is in
            one person's records and nowhere else; a number or several.
        guesses: in how many guesses; a number or several.
        baseline: the certificate then says how likely something about one person is recovered that is guessed so well
            without the model (docs/theory/recovery.md); a number or several.
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
    given = dict(locals())
    progress, release = given.pop("progress"), WHOLE.read("what", given.pop("what"))
    return Certify.of(release=release, **given).answer(progress)


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
    found = Release.of(release, "what")
    name = str(release) if isinstance(release, (str, Path)) else f"release {place}"
    return OneRelease(name, found.mechanism, held(found.ledger))


def _of_run(
    source: Any,
    where: str,
    said: dict[str, Any],
    publish: tuple[str, ...],
    asked: dict[str, Any],
) -> Certificate:
    ledger: RunLedger | None = held(source)
    if ledger is not None and ledger.diagnostics is None:
        what = "has the public part of a ledger, without the diagnostics that a certificate is made from"
        raise ArtifactError(f"{where} {what}: certify the run, its ledger.json, or the complete certificate.json")
    if ledger is None:
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
