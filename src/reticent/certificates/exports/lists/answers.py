"""What a certificate can say where a list asks: by name, lines of the document alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reticent.certificates.document.numbers import further, plain, repeats
from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.certificates.document.sentences import answers, found_at, percent, persons, resting
from reticent.certificates.exports.wording import asked, unit_in_words
from reticent.certificates.page import facts, words
from reticent.certificates.page.answers import surest
from reticent.kernel.adversaries import ADVERSARIES, WorstCase
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim, Status
from reticent.kernel.text import digits

Lines = Iterator[str]


def _worst(certificate: Certificate) -> list[CertifiedAssessment]:
    return [one for one in certificate.assessments if one.adversary == WorstCase.name]


def _question(one: CertifiedAssessment) -> str:
    return f"Asked {Message(f'short.{one.neighbouring}')}"


def _answered(certificate: Certificate) -> Lines:
    """The worst case, what it rests on, and how sure somebody is who accuses few."""
    worst, records = _worst(certificate), persons(certificate.mechanism)
    yield from map(str, answers(worst, records))
    for question, alarms, right, *_ in surest(certificate):
        few = f"whoever accuses only a few can be surer, and the fewer, the surer: with {alarms} false alarms, {right}"
        yield f"Asked {question}: {few} of the accusations are right (half without the model)"
    yield from _terms(certificate)
    yield _OF_MANY


def _epsilon(certificate: Certificate) -> Lines:
    for one in _worst(certificate):
        for delta, number in one.epsilon_at_delta.items():
            value = "not limited" if number.value is None else f"at most {digits(number.value, up=True)}"
            yield f"{_question(one)}: epsilon {value} at delta {plain(float(delta))}, in the worst case"


def _found(certificate: Certificate) -> Lines:
    """Members among others; under replacement everybody is a member."""
    for one in _worst(certificate):
        for fpr in () if one.neighbouring == Neighbouring.REPLACE else certificate.questions.fprs:
            found = f"of those who were in the data, {found_at(one, fpr)} are found"
            alarms = f"if {percent(fpr)} of all others may be accused wrongly"
            yield f"{_question(one)}: {found}, {alarms} ({percent(fpr)} without the model)"
    yield from _terms(certificate)
    yield _OF_MANY


def _terms(certificate: Certificate) -> Lines:
    """What must hold for each number of the worst case, and whom it is about."""
    yield from map(str, resting(_worst(certificate), persons(certificate.mechanism)))
    yield from _people(certificate)


def _people(certificate: Certificate) -> Lines:
    declared = isinstance(persons(certificate.mechanism), int)
    yield f"{words.people(certificate)}{' Nobody checked that.' if declared else ''}"


_OF_MANY = (
    "Shares of accusations, and of people found, hold where people are in the data (or have the diagnosis) "
    "independently of each other, and nobody is known to be likelier."
)


def _queries(certificate: Certificate) -> Lines:
    yield (
        "The limits hold for any number of queries, where each answer is computed from the certified model and from "
        "nothing else that was learnt from these records."
    )


def _content(certificate: Certificate) -> Lines:
    yield "The limits of the worst case on whether, and which, record was used hold whatever records hold."
    yield from _terms(certificate)
    yield "No limit weighs harm."


def _most(certificate: Certificate) -> Lines:
    yield "The worst case is the maximum over persons and over data sets."


_AVERAGE = " It is an average: no limit for a record of which more can be guessed."


def _sentences(certificate: Certificate, wanted: Callable[[CertifiedAssessment], bool]) -> Lines:
    """A sentence for each attacker, what is proven first; who repeats another has none."""
    every = certificate.assessments
    own = [one for place, one in enumerate(every) if not any(repeats(one, other) for other in every[:place])]
    for one in sorted(filter(wanted, own), key=lambda one: one.claim != Claim.BOUND):
        mean = _AVERAGE if ADVERSARIES[one.adversary].averaged else ""
        yield f"{words.claim(one)}: {one.sentence or 'no sentence'}{mean} ({one.label})"
    if any(map(wanted, own)):
        yield from _people(certificate)


def _averaged(certificate: Certificate) -> Lines:
    return _sentences(certificate, lambda one: ADVERSARIES[one.adversary].averaged)


def _of_fields(certificate: Certificate) -> Lines:
    """Attackers who know all but a field; where there is none, why."""
    names = {name for name, kind in ADVERSARIES.items() if kind.needs == "gradient_change"}
    yield from _sentences(certificate, lambda one: one.adversary in names)
    for kind in names & certificate.skipped.keys():
        yield f"{kind} is not answered: {certificate.skipped[kind]}"


_VOUCHES = {
    Status.CHECKED: "checked by the issuer's own program, by nobody else",
    Status.DECLARED: "declared",
    Status.ASSUMED: "assumed, nobody checked it",
}


def _resting_on(status: Status) -> Callable[[Certificate], Lines]:
    def said(certificate: Certificate) -> Lines:
        needed = (words.needed(certificate, measure) for measure in further(certificate))
        for found in (words.every_condition(certificate), *needed):
            for line, who in found.get(status, ()):
                names = ", ".join(map(str, who))
                yield f"{_VOUCHES[status]}: {line}{f' ({names})' if names else ''}"

    return said


_OF_NOISE = ("condition.unpredictable-noise", "condition.real-numbers")


def _noise(certificate: Certificate) -> Lines:
    """What is said of the noise as numbers of a computer."""
    for status, lines in words.conditions(certificate).items():
        yield from (f"{_VOUCHES[status]}: {line}" for line, _ in lines if line.key.startswith(_OF_NOISE))


def _released(certificate: Certificate) -> Lines:
    seen = "recorded by the issuer's own program" if certificate.ledger else "declared"
    yield f"What was run, {seen}:"
    yield from (f"{before}{label}: {value}" for before, (label, value) in facts.facts(certificate))
    if certificate.ledger is not None and certificate.ledger.utility.test_accuracy is not None:
        yield str(Message("page.accuracy"))
    yield from (f"{word} means: {means}" for word, means in words.glossary(certificate) if isinstance(word, str))


def _subject(certificate: Certificate) -> Lines:
    said = certificate.declared
    for name, text in (("subject", said.subject), ("issuer", said.issuer), ("purpose", said.purpose)):
        if name != "subject" or certificate.subject_given:
            yield from _stated(name, text)


def _stated(name: str, text: str | None) -> Lines:
    if text:
        yield f"{name}, as the issuer says: {text}"


def _protected(certificate: Certificate) -> Lines:
    questions = " and ".join(
        dict.fromkeys(f"“{Message(f'short.{one.neighbouring}')}”" for one in certificate.assessments)
    )
    yield f"Protected, each by itself: {unit_in_words(persons(certificate.mechanism))}. Asked: {questions}."
    yield from _people(certificate)


def _policy(certificate: Certificate) -> Lines:
    yield from (f"{'met' if one.passed else 'not met'}: {one.name}: {one.detail}" for one in certificate.requirements)


def _dates(certificate: Certificate) -> Lines:
    yield f"created: {certificate.declared.created}"
    yield f"expires: {certificate.declared.expires or 'no date was set'}"


def _proof(certificate: Certificate) -> Lines:
    if certificate.declared.weights_sha256:
        yield f"as the issuer says, of the weights with SHA-256 {certificate.declared.weights_sha256}"
    yield f"SHA-256 of what its document says, not of a file: {certificate.content_sha256}"
    yield f"made by reticent {certificate.reticent_version}"
    yield "anybody can derive every limit again: reticent verify certificate.public.json"
    yield "nobody can check from here that the training happened so, nor what the issuer declares"
    yield from (f"signed with the key {one.keyid}" for one in certificate.signatures)


def _accuracy(certificate: Certificate) -> Lines:
    if certificate.ledger is not None and certificate.ledger.utility.test_accuracy is not None:
        yield f"accuracy on test records: {certificate.ledger.utility.test_accuracy:.0%}"
        if certificate.ledger.utility.largest_class is not None:
            yield f"whoever always says the most frequent class: {certificate.ledger.utility.largest_class:.0%}"
        yield str(Message("page.accuracy"))


def _whole_curve(certificate: Certificate) -> Lines:
    for one in _worst(certificate):
        yield f"{_question(one)}: an epsilon for every delta, not one pair alone; the document has points of this curve"


def _theorems(certificate: Certificate) -> Lines:
    yield from (f"{one.says} ({key})" for key, one in certificate.theorems.items())
    if any(key.startswith("RETICENT:") for key in certificate.theorems):
        yield "The authors of the program wrote the proofs under RETICENT, in its documentation. No reviewer is named."


ANSWERS: Mapping[str, Callable[[Certificate], Lines]] = {
    "accuracy": _accuracy,
    "asked": asked,
    "assumed": _resting_on(Status.ASSUMED),
    "attackers": lambda certificate: _sentences(certificate, lambda one: True),
    "attribute": _of_fields,
    "averaged": _averaged,
    "checked": _resting_on(Status.CHECKED),
    "content": _content,
    "controls": lambda certificate: _stated("controls", certificate.declared.controls),
    "curve": _whole_curve,
    "dates": _dates,
    "declared": _resting_on(Status.DECLARED),
    "epsilon": _epsilon,
    "found": _found,
    "means": lambda certificate: _stated("means", certificate.declared.means),
    "most": _most,
    "noise": _noise,
    "policy": _policy,
    "proof": _proof,
    "protected": _protected,
    "queries": _queries,
    "recipients": lambda certificate: _stated("recipients", certificate.declared.recipients),
    "released": _released,
    "subject": _subject,
    "theorems": _theorems,
    "uncovered": lambda certificate: (f"not covered: {one}" for one in words.not_covered(certificate)),
    "worst": _answered,
}
"""By the name that a list says."""
