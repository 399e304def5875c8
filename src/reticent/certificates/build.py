"""From a mechanism, or a run's ledger, to a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from reticent.certificates.document.derive import PRIVATE, Inputs, assemble, assessed, derive
from reticent.certificates.document.inputs import inputs_of
from reticent.certificates.document.ledger_rules import refuse_contradictions
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import NOT_NAMED, OF_A_LOOP, OF_A_RUN, Certificate, Declaration, Edition
from reticent.certificates.page.page import paged
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.adversaries.base import standard_adversaries
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from reticent.mechanisms.sensitivity import SensitivityRecord
from reticent.records.ledger import RunLedger
from reticent.records.publication import published

CERTIFICATE_QUESTIONS = Questions(
    fprs=(0.001, 0.01, 0.1), deltas=(1e-6, 1e-5), epsilons=(0.5, 1.0, 2.0), priors=(0.5, 0.1)
)


def certify(
    mechanism: Mechanism,
    declared: Declaration,
    *,
    adversaries: Sequence[Adversary] | None = None,
    neighbouring: Neighbouring | None = None,
    questions: Questions = CERTIFICATE_QUESTIONS,
    ledger: RunLedger | None = None,
    policy: Policy | None = None,
    progress: Callable[[str], None] | None = None,
) -> Certificate:
    """Assess ``mechanism`` under each adversary and bundle the answers.

    Args:
        declared: subject, date, issuer and whatever else cannot be derived.
        adversaries: who attacks, None for all that need no measurement; one that cannot be answered is listed
            under ``skipped`` with its reason.
        neighbouring: between which data sets; None means each adversary's own ``relation``.
        ledger: what really ran, if a run is certified.
        policy: which risks are acceptable: the document says what became of each requirement.
        progress: called with the name of each attacker before it is assessed.

    Raises:
        ParameterError: no prior is asked for.
        UnsupportedError: not even the worst case can be answered.
        ArtifactError: the ledger contradicts itself.
    """
    if not questions.priors:
        raise ParameterError("priors", questions.priors, "at least one number")
    if ledger is not None:
        refuse_contradictions(ledger, declared)
    asked, found, skipped = [], [], {}
    dropped: dict[Neighbouring, None] = {}
    for adversary in standard_adversaries() if adversaries is None else adversaries:
        relation = neighbouring or adversary.relation
        if progress is not None:
            progress(adversary.name)
        try:
            found.append(assessed(adversary, mechanism, relation, ledger))
        except (UnsupportedError, ParameterError) as error:
            skipped[adversary.name] = error.reason
            dropped[relation] = None
        else:
            asked.append((adversary, relation))
    if not asked:
        raise UnsupportedError("; ".join(f"{name}: {reason}" for name, reason in skipped.items()))
    for relation in dropped:  # the question stays, answered by the worst case alone, or named as not answered
        if relation not in {other for _, other in asked}:
            with suppress(UnsupportedError, ParameterError):
                found.append(assessed(WorstCase(), mechanism, relation, ledger))
                asked.append((WorstCase(), relation))
    inputs = Inputs(declared, mechanism, tuple(asked), questions, skipped, ledger=ledger, policy=policy)
    return derive(inputs, progress=progress, found=found).sealed()


def certify_run(
    ledger: RunLedger,
    sensitivity: SensitivityRecord | None = None,
    declared: Declaration | None = None,
    progress: Callable[[str], None] | None = None,
    questions: Questions = CERTIFICATE_QUESTIONS,
    contraction: float | None = None,
    policy: Policy | None = None,
) -> Certificate:
    """The certificate of a run of ``reticent train`` or of a watched loop; the same ledger gives the same document.

    Args:
        ledger: with its diagnostics.
        sensitivity: what a recorder measured about one attribute: adds the attribute adversary, marked as
            depending on private data. By default what the ledger holds.
        declared: what the issuer says; by default ``run_declaration``.
        progress, questions, policy: as for ``certify``.
        contraction: by which factor each update brings weights closer together, as the issuer declares, where nobody
            sees but the last ones: adds the attacker who sees the final model only. Of no account where the ledger
            itself establishes one.
    """
    measured = None if ledger.diagnostics is None else ledger.diagnostics.sensitivity
    return certify(
        ledger.mechanism(),
        declared or run_declaration(ledger),
        adversaries=standard_adversaries(
            gradient_change=sensitivity or measured,
            contraction=ledger.contraction or contraction,
            **({} if ledger.spread is None else ledger.spread._asdict()),
        ),
        questions=questions,
        ledger=ledger,
        policy=policy,
        progress=progress,
    )


def run_declaration(ledger: RunLedger, publishes: Sequence[str] = (), **more: str | None) -> Declaration:
    """What can be declared about a run without asking anybody; ``more`` adds fields or replaces them.

    Args:
        publishes: what the issuer consents to publish; see ``Declaration``.
    """
    data = published(ledger, publishes).data
    known: dict[str, str | None] = {
        "subject": OF_A_LOOP if data is None else OF_A_RUN.format(NOT_NAMED if data.name is None else data.name),
        "created": ledger.created,
        "weights_sha256": ledger.weights_sha256,
    }
    given = {name: value for name, value in more.items() if value is not None}
    return Declaration(**{**known, **given}, publishes=() if data is None else tuple(publishes))


def public(certificate: Certificate) -> Certificate:
    """The certificate without anything that depends on private data, sealed anew and not signed."""
    if certificate.edition is Edition.PUBLIC:
        return certificate.model_copy(update={"signatures": ()})
    inputs = inputs_of(certificate)
    ledger = None if inputs.ledger is None else published(inputs.ledger, inputs.declared.publishes)
    mechanism = inputs.mechanism if ledger is None else ledger.mechanism()
    seen = None if ledger is None else ledger.gradients
    same = ledger is None or (mechanism, seen) == (inputs.mechanism, inputs.ledger and inputs.ledger.gradients)
    kept, hidden = [], {}
    for record, (adversary, relation) in zip(certificate.assessments, inputs.asked, strict=True):
        if record.do_not_publish:
            hidden[record.adversary] = PRIVATE
            continue
        try:
            if not same:
                assessed(adversary, mechanism, relation, ledger)
        except (UnsupportedError, ParameterError) as error:  # it needs what the public edition leaves out
            hidden[record.adversary] = error.reason
        else:
            kept.append(record)
    skipped = {**inputs.skipped, **hidden}
    shown = replace(inputs, mechanism=mechanism, skipped=skipped, edition=Edition.PUBLIC, ledger=ledger)
    return paged(assemble(shown, kept))
