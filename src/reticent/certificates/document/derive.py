"""From what was run, who attacks and what is asked, to the whole certificate: the one place that derives it.

``certify`` writes what comes out here; ``verify`` reads the inputs back from a document, derives it again and
compares every leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from reticent import __version__
from reticent import records as ledgers
from reticent.adversaries.codec import parameters
from reticent.adversaries.report import assessment_record, condition_texts
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.rounding import COMPUTED, Path, Settle, leaves, settled, stated
from reticent.certificates.document.schema import (
    Certificate,
    CertifiedAssessment,
    CurvePoints,
    Declaration,
    Edition,
    QuestionRecord,
    RequirementRecord,
    TheoremRecord,
    WarningRecord,
)
from reticent.certificates.document.sentences import Protected, headline, persons, sentence
from reticent.io.strict import canonical
from reticent.kernel.adversaries import ADVERSARIES, Adversary, Assessment, WorstCase, check_dominance, everybody
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.curves import TradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.proofs.references import PAPERS, THEOREMS
from reticent.kernel.risk.questions import Questions
from reticent.mechanisms.codec import mechanism_record

NOT_ASKED, PRIVATE = Message("refused.not-asked"), Message("refused.private")


@dataclass(frozen=True)
class Inputs:
    """Everything that a certificate follows from.

    Attributes:
        declared: what the issuer says.
        mechanism: what was run; that of the ledger, if there is one.
        asked: each attacker with its relation.
        questions: where the curves are read.
        skipped: attackers that are left out, with the reason.
        edition: complete or public.
        ledger: what really ran, if a run is certified; without diagnostics in the public edition.
        policy: which risks the issuer calls acceptable.
    """

    declared: Declaration
    mechanism: Mechanism
    asked: tuple[tuple[Adversary, Neighbouring], ...]
    questions: Questions
    skipped: Mapping[str, Message] = field(default_factory=dict)
    edition: Edition = Edition.COMPLETE
    ledger: ledgers.RunLedger | None = None
    policy: Policy | None = None


def derive(
    inputs: Inputs,
    settle: Settle | None = None,
    progress: Callable[[str], None] | None = None,
    found: Sequence[Assessment] | None = None,
) -> Certificate:
    """The certificate that follows from ``inputs``, not sealed.

    Args:
        inputs: what it follows from; the worst case of each relation is added where it is missing.
        settle: which numbers to state; rounded to the safe side by default.
        progress: called with the name of each attacker before it is assessed.
        found: the attackers of ``inputs.asked``, where they are assessed already.

    Raises:
        UnsupportedError, ParameterError: an attacker cannot be answered.
        DominanceError: a curve came out stronger than the worst case: a bug.
    """
    how = inputs.questions, settle or _rounded, persons(mechanism_record(inputs.mechanism))
    assessments = enumerate(_assessments(inputs, found, progress))
    return assemble(inputs, [_read(assessment, index, *how) for index, assessment in assessments])


def assemble(inputs: Inputs, records: Sequence[CertifiedAssessment]) -> Certificate:
    """The document around finished assessments, not sealed."""
    worst = [record for record in records if record.adversary == WorstCase.name]
    warned = () if inputs.ledger is None else inputs.ledger.faults
    fields: dict[str, Any] = {
        "edition": inputs.edition,
        "declared": inputs.declared,
        "reticent_version": __version__,
        "headline_": headline(worst, persons(mechanism_record(inputs.mechanism))),
        "mechanism": mechanism_record(inputs.mechanism),
        "questions": QuestionRecord(**asdict(inputs.questions)),
        "assessments": list(records),
        "skipped": _left_out(inputs, records),
        "warnings": [WarningRecord(name=fact.key, text=fact.text) for fact in warned],
        "theorems": _theorems(records),
        "conditions": condition_texts(records),
        "ledger": inputs.ledger,
        "do_not_publish": _private_paths(inputs, records),
    }
    if inputs.policy is None:
        return Certificate.draft(**fields)
    from reticent.certificates.document.requirements import judged

    checks = judged(Certificate(content_sha256="", **fields), inputs.policy)
    met = [RequirementRecord(name=said(one.name), passed=one.passed, detail=said(one.detail)) for one in checks]
    return Certificate.draft(**fields, policy=inputs.policy, requirements=met)


def curve_points(curve: TradeOff) -> CurvePoints:
    """The curve at 81 false positive rates from 1e-5 to 0.1 (even in the logarithm) and on to 1 (even)."""
    grid = np.concatenate([np.geomspace(1e-5, 0.1, 49), np.linspace(0.1, 1.0, 33)[1:]])
    fpr = np.array([float(f"{x:.6g}") for x in grid])
    fnr, tpr = curve.rates(fpr)
    return CurvePoints(fpr=fpr.tolist(), fnr=np.clip(fnr, 0, 1).tolist(), tpr=np.clip(tpr, 0, 1).tolist())


def _read(
    assessment: Assessment, index: int, questions: Questions, settle: Settle, records: Protected
) -> CertifiedAssessment:
    """Every number of an assessment, as the document states it at its place among the others."""
    record, curve = assessment_record(assessment, questions), curve_points(assessment.curve)
    fields = {**record.model_dump(), "curve": curve.model_dump()}
    place = ("assessments", str(index))
    fields |= {name: stated(fields[name], settle, (*place, name)) for name in COMPUTED}
    draft = CertifiedAssessment(**fields, sentence=None, do_not_publish=assessment.data_dependent)
    return draft.model_copy(update={"sentence": sentence(draft, records)})


def _rounded(path: Path, computed: float) -> float:
    return settled(path[2:], computed)


def assessed(
    adversary: Adversary, mechanism: Mechanism, relation: Neighbouring, witness: Witness | None = None
) -> Assessment:
    """One attacker by its own method, the only one that a certificate allows."""
    return assess_seen(adversary, mechanism, relation, adversary.methods[0], witness)


def _assessments(
    inputs: Inputs, found: Sequence[Assessment] | None, progress: Callable[[str], None] | None
) -> list[Assessment]:
    """Each attacker and the worst case of each relation, once, in the order of a certificate."""

    def one(adversary: Adversary, relation: Neighbouring) -> Assessment:
        if progress is not None:
            progress(adversary.name)
        return assessed(adversary, inputs.mechanism, relation, inputs.ledger)

    results = [one(*asked) for asked in inputs.asked] if found is None else list(found)
    known = {result.neighbouring for result in results if isinstance(result.adversary, WorstCase)}
    missing = {result.neighbouring for result in results} - known
    results += [one(WorstCase(), relation) for relation in Neighbouring if relation in missing]
    unsaid = dict.fromkeys(inputs.declared.silent, Status.ASSUMED)
    by_place = {_place(result): result.vouched(unsaid) if unsaid else result for result in results}
    ordered = [by_place[place] for place in sorted(by_place)]
    worst = {r.neighbouring: r for r in ordered if isinstance(r.adversary, WorstCase)}
    for result in ordered:
        check_dominance(result, worst[result.neighbouring])
    return [r for r in ordered if inputs.edition is Edition.COMPLETE or not r.data_dependent]


def _place(result: Assessment) -> tuple[int, int, bytes]:
    who = result.adversary
    return (
        list(Neighbouring).index(result.neighbouring),
        list(ADVERSARIES).index(who.name),
        canonical(parameters(who)),
    )


def _left_out(inputs: Inputs, records: Sequence[CertifiedAssessment]) -> dict[str, Message]:
    shown = {record.adversary for record in records}
    unasked = {name: said(kind.unmeasured or NOT_ASKED) for name, kind in everybody().items()}
    refused = {name: reason for name, reason in inputs.skipped.items() if name in unasked or reason != NOT_ASKED}
    found = {name: reason for name, reason in {**unasked, **refused}.items() if name not in shown}
    return {**found, **{question(one): reason for one, reason in _unanswered(inputs, records)}}


def question(relation: Neighbouring) -> str:
    """How ``skipped`` names the question of a relation that not even the worst case can answer."""
    return f"{WorstCase.name} ({relation.value})"


def _unanswered(inputs: Inputs, records: Sequence[CertifiedAssessment]) -> Iterator[tuple[Neighbouring, Message]]:
    """The relations of attackers that were refused, where nobody answers: nothing is proven for the release."""
    kinds = ((everybody().get(name), reason) for name, reason in inputs.skipped.items())
    refused = (
        kind for kind, reason in kinds if kind and reason not in (NOT_ASKED, PRIVATE, said(kind.unmeasured or ""))
    )
    for relation in dict.fromkeys(kind.relation for kind in refused):
        if relation not in {record.neighbouring for record in records}:
            try:
                inputs.mechanism.parts_under(relation)
            except (UnsupportedError, ParameterError) as error:
                yield relation, error.reason


def _theorems(records: Sequence[CertifiedAssessment]) -> dict[str, TheoremRecord]:
    used = sorted({key for record in records for key in record.theorems})
    known = {key: THEOREMS[key] for key in used}
    return {
        key: TheoremRecord(says=one.says, conditions=one.conditions, holds=one.holds, source=_source(key))
        for key, one in known.items()
    }


def _source(key: str) -> str:
    paper = PAPERS[key.partition(":")[0]]
    return f"{paper.authors}, {paper.title} ({paper.year}), {paper.version}"


def _private_paths(inputs: Inputs, records: Sequence[CertifiedAssessment]) -> list[str]:
    if inputs.edition is Edition.PUBLIC:
        return []
    paths = [f"assessments[{i}]" for i, record in enumerate(records) if record.do_not_publish]
    return paths if inputs.ledger is None else [*paths, *_withheld(inputs.ledger, inputs.declared)]


def _withheld(ledger: ledgers.RunLedger, declared: Declaration) -> list[str]:
    """What the public edition leaves out of the ledger or states otherwise, by path."""
    shown = ledgers.published(ledger, declared.publishes)
    whole, kept = (leaves(one.model_dump(mode="json")) for one in (ledger, shown))
    paths = {path for path in whole if whole[path] is not None and kept.get(path) != whole[path]}
    return sorted({".".join(("ledger", *_named(path))) for path in paths})


def _named(path: Path) -> Path:
    """Up to the first index of a list; diagnostics as one."""
    end = next((i for i, part in enumerate(path) if part.isdigit()), len(path))
    return path[:1] if path[0] == "diagnostics" else path[:end]
