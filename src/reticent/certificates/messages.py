"""Every sentence of the page in English, for translators: what ``translations/messages.pot`` is made from.

Sentences of registries (attackers, conditions, warnings, parameters) are taken from there, those of the page
from its template. Sentences that the code composes are listed here with placeholders; a test finds one that is missing
or that no code composes any more. Statements of theorems stay in English.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment
from jinja2.ext import extract_from_ast

from reticent.adversaries import ADVERSARIES
from reticent.adversaries.relaxed import fixed_length
from reticent.certificates import answers, facts, numbers, verdicts, words
from reticent.certificates.catalogue import Message, written
from reticent.certificates.derive import NOT_ASKED, PRIVATE
from reticent.certificates.language import DAY
from reticent.certificates.sentences import HIDDEN_DRAWS, Protected, about, asked_about, known, wanted
from reticent.mechanisms import MECHANISMS, Neighbouring
from reticent.mechanisms.gradients import Obstacle
from reticent.mechanisms.sampling import ALLOCATED_NOTE, EVERY_STEP, FIXED_SIZE_NOTE, MU_NOTE, ONE_STEP, TRUNCATED_NOTE
from reticent.mechanisms.units import CLIENT_NOTE
from reticent.proofs import CONDITIONS
from reticent.records.run_warnings import RunWarning
from reticent.records.watch_faults import Fault
from reticent.registry import parameters_of

_PEOPLE: tuple[Protected, ...] = (None, 1, 2)

ANSWERS = (
    "Asked {question}, an attacker is right at most {share} of the time, if both answers are equally likely "
    "beforehand. Without the model: {blind}.",
    "An attacker can become all but certain {question}. This release hides next to nothing.",
    "Nothing is proven that keeps an attacker from being all but certain {question}.",
    HIDDEN_DRAWS,
)
"""What stands at the top; a checker in the browser compares it too."""
STRENGTHS = ("at most {share}", "about {share}", "measured {share}")
_ROWS = (
    "(as measured) {share}",
    "Right guess",
    "both answers equally likely; without the model {share}",
    "Accused, {share} false alarms",
    "accusations that are right, if 1 in {n} is in the data and nobody is known to be likelier; without the model "
    "{share}",
    "accusations that are right, if 1 in {n} has the diagnosis and nobody is known to be likelier; without the model "
    "{share}",
    "Found, {share} false alarms",
    "share of insiders found; without the model {share}",
    "share of those with it who are found; without the model {share}",
    answers.INSTEAD,
    "Has the same numbers as {name}",
    "If it is not, another one stands in its place: this is replacement. No limit of its own is proven; that of "
    "{name}, who knows more, holds",
    *verdicts.SHORT.values(),
    *verdicts.TRUST.values(),
    "Lies between relaxed and worst-case",
    "all attackers",
    "bits",
    "guesses",
    "without the model",
    "with the model",
    "1 in {n}",
    "advantage",
    "Bayes security",
    "μ",
    "no finite value",
    "{value} (no enclosure)",
    "{value} [{lower}, {upper}]",
    "{date}; do not rely on it from {expires} on",
    "{date}; no date of expiry was set",
)
_LACKS = (
    "which way this record moves the result in a space of {dimension} dimensions",
    "which way this record moves the result (with probability {share})",
    "which way this person's record moves the result in a space of {dimension} dimensions",
    "which way this person's record moves the result (with probability {share})",
    "which way this person's records move the result in a space of {dimension} dimensions",
    "which way this person's records move the result (with probability {share})",
    "the noise",
    "which records each step drew",
    "which records each step drew or the noise",
    "{what} or the noise",
    "{what} or which records each step drew",
    "{what}, which records each step drew or the noise",
)
_PERSONS = (
    "Subject",
    "Issuer",
    "Purpose",
    "All numbers are about one client with all its records.",
    "Nothing is stated about how many records a person contributed: all numbers are about one record.",
    "people with several clients",
    "people who contributed several records together",
)
_COUNTED = (
    (
        "The issuer declares: each person contributed one record.",
        "The issuer declares: each person contributed at most {n} records.",
    ),
    ("people who contributed more than 1 record", "people who contributed more than {n} records"),
    (
        "Stated: each person contributed one record.",
        "Stated: each person contributed at most {n} records. The numbers are about all of these together.",
    ),
)
_FACTS = (
    "released",
    "data set",
    "source of randomness",
    "versions",
    "accuracy on test records",
    "batches",
    "clipping",
    "planned steps",
    "divisor of the noisy sum",
    "optimizer",
    "device",
    "unknown",
    "not named",
    "the best of several runs: {law}, {mean} on average",
    "settings",
    "drawn from a list of {count}; of {kinds} kinds, which follow",
    "release {place}",
    "stated: no ledger of a run was read",
    "declared to have the ledger with the public digest {digest}",
    "declared to have the ledger with the public digest {digest}; warnings: {names}",
    "at most {steps}, where the watch stops at {target}",
    "at most {steps}",
)
_POLICY = (
    "The worst case was computed (question: {question})",
    "The worst case was not computed (question: {question})",
    "The training was recorded",
    "No training was recorded",
    "Right guess at most {share} ({question})",
    "Epsilon at most {limit} at delta {delta} ({question})",
    "Reached: {value}, low enough",
    "Reached: {value}, too high",
    "Reached: {value}, high enough",
    "Reached: {value}, too low",
    "Found with {alarms} false alarms: at most {share} ({question})",
    "The number alone is not enough: what is named below must be checked",
    "The number alone is not enough: the claim is {claim}, the policy wants {wanted}",
    "no warning {name}",
    "{who}: {measure} at most {limit} ({relation})",
    "{who}: {measure} at least {limit} ({relation})",
    "{who}: {measure} at {place} at most {limit} ({relation})",
    "prior {prior}",
    "fpr {fpr}",
    "delta {delta}",
    "epsilon {epsilon}",
    "prior {prior}, fpr {fpr}",
    "secret_bits {bits}, guesses {guesses}",
    "found",
    "none",
    "is {value}",
    "the claim is {claim}, the policy wants {wanted}",
    "it rests on {conditions}: the policy does not accept that",
    "the certificate has no such assessment of {name}",
    "the certificate has no such assessment of {name}, only with other parameters",
    "the certificate does not state it at {place}",
    "there is no finite value",
)
_REASONS = (
    "no dominating pair is proven for sampled Laplace releases under replace.",
    f"{NOT_ASKED}.",
    f"{PRIVATE}.",
    "the membership game is known for one record per person only.",
    "the membership game is known for one release only.",
    "not stated: the (expected) records per batch.",
    "not stated: the number of trained parameters.",
    "the effect of hidden steps is known for noisy gradient descent on whole batches (sample rate 1), or on fixed "
    "batches in a fixed order (sampler cyclic) only: use worst-case.",
    "attribute inference: nothing is proven for truncated batches.",
    "attribute inference is proven for Gaussian noise only.",
)
_NOTES = (
    *(MU_NOTE.format(where) for where in (EVERY_STEP, ONE_STEP)),
    FIXED_SIZE_NOTE,
    TRUNCATED_NOTE.format("{size}"),
    ALLOCATED_NOTE.format("{steps}"),
    "Shuffled batches: no amplification by sampling is claimed; each started epoch counts as one release that contains "
    "the target: {epochs} counted ({steps} steps, {batches} per epoch). Batch boundaries must not depend on the "
    "target.",
    "Shuffled batches: no amplification by sampling is claimed; each started epoch counts as one release that contains "
    "the target: {epochs} counted ({steps} steps, {batches} per epoch, as the loader may drop an incomplete batch). "
    "Batch boundaries must not depend on the target.",
    CLIENT_NOTE,
    "Block sampling: the data are cut into {blocks} blocks, without looking at them; step t draws from block t modulo "
    "{modulus}, each record independently, with probability sample_rate.",
    "It is assumed that each record is used in at most {steps} steps, any two of them at least {apart} apart.",
    "It is assumed that each record is used in at most one step.",
    "The sensitivity of this strategy is known between {lower} and {upper}; the larger is used.",
    "The numerical error of the worst case is large here: its advantage is known within {width} only ({reasons}).",
    "The unknown sign could not be followed here ({reason}): the bound may be up to log 2 too large in epsilon.",
    "The attacker does not know in which direction this record moves the result; it is the same direction in all "
    "releases. The number is an average over directions: a record whose direction can be guessed gets no relief. "
    "Features whose sign or pattern is known to everybody (counts, pixels, categories) can be guessed from.",
    "The form of the model was looked at, and ensures nothing about how gradients react. {obstacle}",
    *fixed_length.NOTES,
    "No relaxed curve is proven for {release}: the answer is the worst case with its own enclosure, which is always "
    "safe. How much less this attacker reaches is not known.",
    "With probability {share} the attacker does not know the direction; otherwise they are the worst case. They know "
    "which of the two they are.",
    "The {steps} steps use the same records again. Their randomness may be counted once and not in each step, so only "
    "the added noise counts. The answer is the worst case of the same release: a bound, with no assumption about the "
    "data.",
    "No rule is known for the sampler {sampler}, so only the added noise counts. The answer is the worst case of the "
    "same release: a bound, with no assumption about the data.",
    "The harmonic rule is known for DP-SGD only. The answer is the worst case of the same release: a bound, with no "
    "assumption about the data.",
    "An attacker who cannot tell any two neighbouring data sets apart cannot win this game either. The "
    "susceptibility K (K = d is a typical record, not the worst) plays no part in this answer. How much less this "
    "attacker reaches is not known.",
    "For networks no such bound exists: some losses that are not convex gain nothing from hidden steps (Annamalai "
    "2024; Cebere 2024). Softmax with three or more classes is no convex problem once its gradients are clipped.",
    "This number depends on private data: do not publish it, or anything it was computed from.",
    "Compares two values of one field of one record (a replacement), whatever relation was asked for.",
    "Holds if no step of this run changes the target's clipped gradient by more than the stated gradient change; a "
    "change measured on the run itself, with no budget fixed in advance, is a diagnostic and no guarantee.",
    "Measured after the fact, with no budget fixed in advance: a diagnostic, no guarantee.",
    "Measured on the drawn batches, given which records were drawn: a diagnostic, no guarantee.",
    "A filter kept the mask term below {budget}, fixed in advance; holds for {people}.",
    "every training record",
    "the audited records only",
    "The Gaussian limit for small sample rates, with the worst mask term for this change; an estimate.",
    "a ledger of several mechanisms",
    "this release and relation",
    "Gradients that react in any way may show their direction: the answer is the worst case.",
    "Dimension {dimension}: setting it states that the attacker knows nothing about the direction of this record's "
    "gradient within a space of this many dimensions. What records share (a mean gradient, related records) makes that "
    "space smaller.",
    "{dimension} was given as the number of trained parameters, too. Gradients of records share directions, so the "
    "dimension that can be defended is mostly far smaller; docs/theory/relaxed/dimension.md says how to look at it.",
    "How far the record moves a step may react to everything that was released before, and to its direction.",
    "Everybody may know up to {share} of the squared length of each gradient (a bias); the rest has the direction.",
    "Batches of fixed size, batches that are cut and random allocation: nothing below the worst case is proven.",
    "Something else than DP-SGD was released as well: its direction may be known.",
)

COMPOSED = (*ANSWERS, *STRENGTHS, *_ROWS, *_LACKS, *_PERSONS, *_FACTS, *_REASONS, *_NOTES)
"""Sentences that the code composes, with placeholders."""


def messages() -> list[Message]:
    """Every message once, in an order that does not change by itself."""
    found = [*_of_the_page(), *(Message(text, ()) for text in (*questions(), *_of_registries(), *COMPOSED))]
    found += [Message(one, (), plural=several) for one, several in _COUNTED]
    found += [Message(text, (), context="requirement") for text in _POLICY]
    found.append(Message("record", (), context="client"))
    found.append(Message(DAY[1], (), context=DAY[0]))
    counted = {form for pair in _COUNTED for form in pair}
    unique = {(one.context, one.english): one for one in found if one.plural or one.english not in counted}
    return [one for one in unique.values() if one.english]


def template() -> str:
    """The text of ``messages.pot``."""
    return written([Message("", (HEADER.format("", "nplurals=2; plural=n != 1;"),)), *messages()], _ABOUT)


HEADER = "Language: {}\nContent-Type: text/plain; charset=UTF-8\nPlural-Forms: {}\n"
_ABOUT = """Every sentence of the certificate's page. Made by docs/pages.py from the code; change that.
A translation is a copy called LANGUAGE.po with every msgstr filled in; docs/development/translating.md says how."""


def questions() -> list[str]:
    """What the worst case is asked, in the words of a headline."""
    return [asked_about(one, people) for one in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE) for people in _PEOPLE]


def composed() -> list[str]:
    """All sentences with or without placeholders that are listed here, and so must be somewhere in the code."""
    return [*COMPOSED, *(form for pair in _COUNTED for form in pair), *_POLICY]


def _of_the_page() -> Iterator[Message]:
    source = (files("reticent.certificates") / "templates" / "certificate.html.j2").read_text(encoding="utf-8")
    for _, function, found in extract_from_ast(Environment(autoescape=True).parse(source)):
        given = found if isinstance(found, tuple) else (found,)
        texts = [one for one in given if one is not None]
        if function == "_" and texts:
            yield Message(str(texts[0]), (), context=str(texts[1]) if len(texts) > 1 else "")


def _of_registries() -> Iterator[str]:
    kinds: list[Any] = list(ADVERSARIES.values())
    for kind in kinds:
        yield kind.title
        for people in _PEOPLE:
            if isinstance(kind.lacks, str):
                yield about(kind.lacks.rstrip(","), people)
            yield from _asked_of(kind, people)
        if kind.unmeasured:
            yield f"{kind.unmeasured}."
    for relation, people in product(Neighbouring, _PEOPLE):
        yield words.relation(relation, people)
    yield from words.sentences()
    yield from numbers.TITLES
    yield from facts.LABELS.values()
    for mechanism in MECHANISMS.values():
        yield from (p.help.rstrip(".") for p in parameters_of(mechanism) if p.name not in facts.LABELS)
    yield from (kind.says for kind in CONDITIONS.values())
    yield from (obstacle.text for obstacle in Obstacle)
    yield from (warning.text for warning in (*RunWarning, *Fault))


def _asked_of(kind: Any, people: Protected) -> Iterator[str]:
    """What an attacker knows and wants to know, by relation."""
    for relation in Neighbouring:
        record: Any = SimpleNamespace(infers=kind.infers, knows=kind.knows, neighbouring=relation.value)
        yield known(record, people)
        yield wanted(record, people).rstrip(",")
