"""Files that people open: runs, ledgers, certificates, audits, scores. Read by the library's strict readers only."""

from __future__ import annotations

import base64
import binascii
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dash import html

from reticent.auditing import audit, load_scores
from reticent.certificates.document.declared_text import inert
from reticent.certificates.document.ledger_rules import contradictions
from reticent.certificates.document.schema import Certificate
from reticent.certificates.page import page as certificate_page
from reticent.dashboard import opening_audit, words
from reticent.dashboard.asked import Asked, Shown, answer_to
from reticent.dashboard.catalogue import OF_SAMPLERS
from reticent.dashboard.checking import checked
from reticent.dashboard.comparing import two_certificates
from reticent.dashboard.figures import Figure, Line, picture, risk_figure
from reticent.dashboard.judging import requirements
from reticent.dashboard.readings import Points, answer, protected, told
from reticent.dashboard.requests import release_in
from reticent.dashboard.state import State
from reticent.dashboard.turns import Turns
from reticent.io.files import read_bytes
from reticent.io.strict import loads
from reticent.kernel.adversaries import style_of
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.proofs import Claim
from reticent.kernel.registry import flat
from reticent.mechanisms.codec import mechanism_of as mechanism_of_record
from reticent.mechanisms.codec import within_reach
from reticent.records.ledger import RunLedger, ledger_of
from reticent.verbs import Assess
from reticent.verbs.releases import Release

LARGEST = 8 << 20
"""Bytes of a file that a page may send or open."""
_SENTENCE = 2000
"""Letters of a sentence of a certificate: a number that is cut is another number."""
_SCORES = (".npz", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be opened: bytes with the name they came with, or a folder of this machine."""

    name: str
    content: bytes = b""
    folder: Path | None = None


def source_of(asked: Asked) -> Source:
    """What a browser asks to open; a chosen file goes first.

    Raises:
        ArtifactError: nothing was chosen; or it is too large, not encoded as browsers do, or a path where paths are
            not allowed.
    """
    if asked.files:
        return _sent(*asked.files[0])
    if not asked.path:
        raise ArtifactError("no file was chosen")
    if not asked.local:
        raise ArtifactError("paths can be opened only where the page is served to this machine alone: upload the file")
    return _at(asked.path)


def _sent(contents: str, name: str) -> Source:
    if len(contents) > LARGEST * 4 // 3 + 1000:
        raise ArtifactError(f"the file is larger than the {LARGEST >> 20} MiB that can be opened here")
    try:
        return Source(inert(name, 80), base64.b64decode(contents.partition(",")[2], validate=True))
    except (binascii.Error, ValueError):
        raise ArtifactError("the file did not arrive whole") from None


def shown(turns: Turns, asked: Asked) -> Shown:
    """An untrusted file, as curves and verdicts; an audit that runs is looked at again."""
    source = source_of(asked)
    with turns.turn(asked.page + "/open", asked.turn):
        return opened(source, asked.settings, asked.theme)


def two(turns: Turns, asked: Asked) -> Shown:
    """What differs between two certificates.

    Raises:
        ArtifactError: there are not two files.
    """
    if len(asked.files) != 2:
        raise ArtifactError("choose two certificates at once")
    one, other = (_sent(*file) for file in asked.files)
    return Shown({"certificates-compared": two_certificates((text_of(one), one.name), (text_of(other), other.name))})


def _at(path: str) -> Source:
    if len(path) > 1000 or "\0" in path:
        raise ArtifactError("this is not a path")
    place = Path(path).expanduser()
    if place.is_dir():
        return Source(inert(place.name, 80), folder=place)
    return Source(inert(place.name, 80), read_bytes(place, LARGEST))


def opened(source: Source, settings: State, theme: str) -> Shown:
    """Read it and show what it says.

    Raises:
        ArtifactError: it is nothing that is known, or damaged.
    """
    if source.folder is not None:
        from reticent.training import load_run  # brings torch

        return _ledger(load_run(source.folder).ledger, f"run {source.name}", theme)
    if Path(source.name).suffix in _SCORES:
        return _scores(source, settings, theme)
    text = text_of(source)
    if certificate_page.is_page(text):
        document = certificate_page.embedded(text, source.name)
        return _certificate(document, certificate_page.first_difference(text, document), theme)
    return _document(loads(text, source.name), source.name, settings, theme)


def release(source: Source) -> Mechanism:
    """What the file says was released.

    Raises:
        ArtifactError: it says nothing of the kind, or damaged.
        UnsupportedError: an event has no counterpart here.
    """
    text = text_of(source)
    if certificate_page.is_page(text):
        return mechanism_of_record(certificate_page.embedded(text, source.name).mechanism)
    return release_in(loads(text, source.name), source.name)


def _document(document: Any, name: str, settings: State, theme: str) -> Shown:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == "reticent.certificate/4":
        return _certificate(Certificate.parse(document, name), None, theme)
    if schema == "reticent.audit/1":
        return _audit(document, settings, theme)
    if isinstance(schema, str) and schema.startswith(("reticent.ledger/", "reticent.watch/")):
        return _ledger(ledger_of(document, name), name, theme)
    raise ArtifactError(f"{name}: its schema is none of a ledger, a certificate or an audit")


def text_of(source: Source) -> str:
    """The file as text.

    Raises:
        ArtifactError: it is none.
    """
    try:
        return source.content.decode("utf-8")
    except UnicodeDecodeError:
        raise ArtifactError(f"{source.name}: not UTF-8 text") from None


def _shown(page: list[Any], figure: Figure | None = None) -> Shown:
    return Shown({"opened": page, "message": ""}, {"open-figure": figure or {"data": []}})


def _ledger(ledger: RunLedger, title: str, theme: str) -> Shown:
    """What ran, what is wrong with it, and who learns what from it."""
    release = within_reach(ledger.mechanism())
    wrong = [f"{inert(where)} {inert(problem)}" for where, problem in contradictions(ledger)]
    found = answer(Assess(release=Release(release)))
    facts = [
        ("the ledger says", inert(" ".join(str(ledger).split()), _SENTENCE)),
        ("what counts", found.title()),
        ("records", "unknown" if ledger.dataset_size is None else f"{ledger.dataset_size:,}"),
        ("trained parameters", "unknown" if ledger.num_parameters is None else f"{ledger.num_parameters:,}"),
        ("random numbers", ledger.environment.randomness.value),
    ]
    asked: list[Any] = []
    if (run := release.training) is not None:
        explore: dict[str, Any] = {"data-settings": _settings(run)}
        asked = [html.Button("Explore these settings", className="primary", **explore)]
    page = [
        html.H2(title),
        *_faults(wrong, "This ledger contradicts itself", "The facts of this ledger agree with each other."),
        *[html.P(str(fact.text), className="warning") for fact in ledger.faults],
        html.P(told(found[0], protected(release))),
        *asked,
        words.pairs(facts),
    ]
    return _shown(page, risk_figure(found, "curves", theme))


def _settings(release: DPSGD) -> str:
    """The address of a page that is set to this release."""
    names = ["mechanism", "noise_multiplier", "sample_rate", "sampler", "steps", "dimension", "records_per_user"]
    names += ["dataset_size"] if release.sampler.counts_records else []
    known = {**flat(release), "mechanism": release.name, "dimension": release.num_parameters}
    shown = {name: known[name] for name in (*names, *OF_SAMPLERS[release.sampler.name])}
    settings = {name: "" if value is None else str(value) for name, value in shown.items()}
    return State.of(settings).address_of(*settings, "by", "panel")


def _certificate(certificate: Certificate, difference: str | None, theme: str) -> Shown:
    """What it states, whether everything in it follows, and its curves."""
    equal, refused = checked(certificate)
    wrong = [*refused]
    wrong += [] if difference is None else [f"the page is not what its document renders to: {inert(difference)}"]
    known, stated = certificate.signatures, certificate.requirements
    signed = "signed: check it with the issuer's key by reticent verify --key" if known else "not signed"
    declared = {k: inert(str(v)) for k, v in certificate.declared.model_dump(mode="json").items() if v}
    page = [
        html.H2(inert(certificate.headline, _SENTENCE)),
        *([] if certificate.ledger else [html.P("A plan: nobody saw a run.", className="warning")]),
        *_faults(wrong, "This certificate is refused", f"All {equal} numbers and texts that can be derived agree."),
        requirements(stated) if stated else html.P("No policy is part of this certificate.", className="quiet"),
        *[html.P(inert(one.text, _SENTENCE), className="warning") for one in certificate.warnings],
        html.Ul([html.Li([inert(a.sentence, _SENTENCE), " ", html.Em(a.claim)]) for a in certificate.assessments]),
        words.pairs([("edition", certificate.edition.value), ("signature", signed), *declared.items()]),
    ]
    usual = [record.neighbouring for record in certificate.assessments[:1]]
    lines = []
    for record in certificate.assessments:
        name = inert(record.adversary if record.neighbouring in usual else f"{record.adversary}, {record.neighbouring}")
        read = Points(np.array([0.0, *record.curve.fpr]), np.array([1.0, *record.curve.fnr]), None, None)
        lines.append(Line(read, name, style_of(record.adversary), Claim(record.claim)))
    return _shown(page, picture(lines, "curves", theme))


def _scores(source: Source, settings: State, theme: str) -> Shown:
    """Audit scores against the claims of the settings of this page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"scores{Path(source.name).suffix}"
        place.write_bytes(source.content)
        try:
            scores = load_scores(place)
        except ArtifactError as error:
            raise ArtifactError(str(error).replace(str(place), source.name)) from None
    found = answer_to(settings)
    claims = {one.adversary.name: one.curve for one in found}
    return _audit(audit(scores, claims).to_json(), settings, theme)


def _audit(document: Any, settings: State, theme: str) -> Shown:
    """The measured curve with its band, with the claims of the settings of this page, and the verdicts."""
    report = opening_audit.parsed(document)
    found = answer_to(settings)
    return _shown(opening_audit.page(report), opening_audit.figure(report, found, theme))


def _faults(wrong: list[str], bad: str, good: str) -> list[Any]:
    if not wrong:
        return [html.P(["✓ ", good], className="good")]
    more = [] if len(wrong) <= 20 else [html.Li(f"and {len(wrong) - 20} more")]
    return [html.Div([html.Strong(bad), html.Ul([*[html.Li(w) for w in wrong[:20]], *more])], className="warning")]
