"""From a mechanism, or a run's ledger, to a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reticent import __version__
from reticent.certificate.numbers import Questions, assessment_record, mechanism_record
from reticent.certificate.schema import Certificate, CertifiedAssessment, CurvePoints, TheoremRecord, WarningRecord
from reticent.certificate.sentences import sentence
from reticent.mechanism import Mechanism, Neighbouring
from reticent.mechanism.run_ledger import RunLedger
from reticent.references import PAPERS, THEOREMS
from reticent.threat import (
    Adversary,
    Assessment,
    Attribute,
    Membership,
    MembershipGame,
    Mixed,
    Relaxed,
    WorstCase,
    assess_answerable,
)
from reticent.threat.attribute import SensitivityRecord
from reticent.tradeoff import TradeOff

STANDARD_ADVERSARIES: tuple[Adversary, ...] = (
    WorstCase(),
    Relaxed(),
    Mixed(),
    Membership(),
    MembershipGame(),
)
"""Who is assessed when nothing else is asked for; attribute inference needs a recorded sensitivity."""

CERTIFICATE_QUESTIONS = Questions(
    fprs=(0.001, 0.01, 0.1), deltas=(1e-6, 1e-5), epsilons=(0.5, 1.0, 2.0), priors=(0.5, 0.1)
)


def certify(
    mechanism: Mechanism,
    *,
    subject: str,
    created: str,
    adversaries: Sequence[Adversary] = STANDARD_ADVERSARIES,
    neighbouring: Neighbouring | None = None,
    questions: Questions = CERTIFICATE_QUESTIONS,
    ledger: RunLedger | None = None,
    progress: Callable[[str], None] | None = None,
) -> Certificate:
    """Assess ``mechanism`` under each adversary and bundle the answers.

    Args:
        mechanism: what was run.
        subject: what is certified, in a few words.
        created: ISO 8601 time to state.
        adversaries: who attacks; one that cannot be answered is listed under ``skipped`` with its reason.
        neighbouring: between which data sets; None means each adversary's own ``relation``.
        questions: where the curves are read.
        ledger: what really ran, if a run is certified.
        progress: called with the name of each adversary before its numbers are read.
    """
    assessments, skipped = assess_answerable(mechanism, adversaries, neighbouring)
    records = []
    for assessment in assessments:
        if progress is not None:
            progress(assessment.adversary.name)
        records.append(_certified(assessment, questions))
    return Certificate.sealed(
        subject=subject,
        created=created,
        reticent_version=__version__,
        mechanism=mechanism_record(mechanism),
        assessments=records,
        skipped=skipped,
        warnings=[WarningRecord(name=w.value, text=w.text) for w in (ledger.warnings if ledger else ())],
        theorems=_theorems(records),
        ledger=ledger.model_dump(mode="json", by_alias=True) if ledger else None,
        do_not_publish=_private_paths(records, ledger),
    )


def certify_run(
    ledger: RunLedger,
    sensitivity: SensitivityRecord | None = None,
    progress: Callable[[str], None] | None = None,
) -> Certificate:
    """The certificate of a finished run; the same ledger always gives the same document.

    Args:
        ledger: what really ran.
        sensitivity: what a recorder measured about one attribute: adds the attribute adversary, marked as
            depending on private data.
        progress: as for ``certify``.
    """
    attribute = (Attribute(gradient_change=sensitivity),) if sensitivity is not None else ()
    return certify(
        ledger.mechanism(),
        subject=f"DP-SGD run on {ledger.data.name}",
        created=ledger.created,
        adversaries=(*STANDARD_ADVERSARIES, *attribute),
        ledger=ledger,
        progress=progress,
    )


def public(certificate: Certificate) -> Certificate:
    """The certificate without anything that depends on private data, sealed anew."""
    fields = {name: getattr(certificate, name) for name in type(certificate).model_fields}
    ledger = certificate.ledger
    fields["ledger"] = RunLedger.model_validate(ledger).public() if ledger and "diagnostics" in ledger else ledger
    fields["assessments"] = [a for a in certificate.assessments if not a.do_not_publish]
    fields["theorems"] = _theorems(fields["assessments"])
    fields["do_not_publish"] = []
    del fields["schema_"], fields["content_sha256"]
    return Certificate.sealed(**fields)


def _certified(assessment: Assessment, questions: Questions) -> CertifiedAssessment:
    record = assessment_record(assessment, questions)
    return CertifiedAssessment(
        **dict(record),
        sentence=sentence(record),
        curve=curve_points(assessment.curve),
        do_not_publish=assessment.data_dependent,
    )


def curve_points(curve: TradeOff) -> CurvePoints:
    """The curve at 81 false positive rates from 1e-5 to 0.1 (even in the logarithm) and on to 1 (even)."""
    fpr = np.concatenate([np.geomspace(1e-5, 0.1, 49), np.linspace(0.1, 1.0, 33)[1:]])
    fnr, tpr = curve.beta(fpr), curve.power(fpr)
    return CurvePoints(fpr=fpr.tolist(), fnr=np.clip(fnr, 0, 1).tolist(), tpr=np.clip(tpr, 0, 1).tolist())


def _theorems(records: Sequence[CertifiedAssessment]) -> dict[str, TheoremRecord]:
    used = sorted({key for record in records for key in record.theorems})
    return {
        key: TheoremRecord(
            says=THEOREMS[key].says,
            conditions=THEOREMS[key].conditions,
            holds=THEOREMS[key].holds,
            source=_source(key),
        )
        for key in used
    }


def _source(key: str) -> str:
    paper = PAPERS[key.partition(":")[0]]
    return f"{paper.authors}, {paper.title} ({paper.year}), {paper.version}"


def _private_paths(records: Sequence[CertifiedAssessment], ledger: RunLedger | None) -> list[str]:
    paths = [f"assessments[{i}]" for i, record in enumerate(records) if record.do_not_publish]
    return paths + (["ledger.diagnostics", "ledger.seeds"] if ledger else [])
