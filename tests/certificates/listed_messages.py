"""Sentences of the page that can be listed: those of its template and of the registries. A catalogue has them all."""

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
from reticent.certificates.derive import NOT_ASKED, PRIVATE
from reticent.certificates.language import DAY
from reticent.certificates.sentences import RESTING, STOP, Protected, about, asked_about, known, wanted
from reticent.facts import all_facts
from reticent.mechanisms import MECHANISMS, Neighbouring
from reticent.mechanisms.gradients import Obstacle
from reticent.mechanisms.units import CLIENT_NOTE
from reticent.proofs import CONDITIONS
from reticent.registry import parameters_of
from reticent.samplers import SAMPLERS
from reticent.samplers.base import MU_NOTE

PEOPLE: tuple[Protected, ...] = (None, 1, 2)
"""Who may be protected: one record, or one or several records of a person."""
ANSWERS = (
    "Asked {question}, an attacker is right at most {share} of the time, if both answers are equally likely "
    "beforehand. Without the model: {blind}.",
    "Nothing is proven that keeps an attacker from being all but certain {question}.",
    *RESTING.values(),
)
"""What stands at the top of a page."""
STRENGTHS = ("at most {share}", "about {share}", "measured {share}")
NAMED = (
    *ANSWERS,
    *STRENGTHS,
    *verdicts.SHORT.values(),
    *verdicts.TRUST.values(),
    answers.INSTEAD,
    *STOP,
    answers.NO_LIMIT,
    f"{NOT_ASKED}.",
    f"{PRIVATE}.",
    MU_NOTE,
    *dict.fromkeys(kind.exposed for kind in SAMPLERS.values()),
    *dict.fromkeys(kind.note for kind in SAMPLERS.values() if kind.note),
    CLIENT_NOTE,
    *fixed_length.NOTES,
)
OF_OUR_TRAINER = ("schema-from-records", "reproducible-noise", "stopped-early")
"""What no loop of somebody else can show."""


def questions() -> list[str]:
    """What the worst case is asked, in the words of a headline."""
    return [asked_about(one, people) for one in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE) for people in PEOPLE]


def listed() -> set[tuple[str, str]]:
    """Context and text of each."""
    texts = (*questions(), *_of_registries(), *NAMED)
    return {*_of_the_page(), *(("", text) for text in texts if text), ("client", "record"), DAY}


def _of_the_page() -> Iterator[tuple[str, str]]:
    templates = files("reticent.certificates") / "templates"
    source = "".join((templates / f"{one}.html.j2").read_text(encoding="utf-8") for one in ("certificate", "signed"))
    for _, function, found in extract_from_ast(Environment(autoescape=True).parse(source)):
        given = found if isinstance(found, tuple) else (found,)
        texts = [one for one in given if one is not None]
        if function == "_" and texts:
            yield str(texts[1]) if len(texts) > 1 else "", str(texts[0])


def _of_registries() -> Iterator[str]:
    kinds: list[Any] = list(ADVERSARIES.values())
    for kind in kinds:
        yield kind.title
        for people in PEOPLE:
            if isinstance(kind.lacks, str):
                yield about(kind.lacks.rstrip(","), people)
            yield from _asked_of(kind, people)
        if kind.unmeasured:
            yield f"{kind.unmeasured}."
    for relation, people in product(Neighbouring, PEOPLE):
        yield words.relation(relation, people)
    yield from words.sentences()
    yield from numbers.TITLES
    yield from facts.LABELS.values()
    for mechanism in MECHANISMS.values():
        yield from (p.help.rstrip(".") for p in parameters_of(mechanism) if p.name not in facts.LABELS)
    yield from (kind.says for kind in CONDITIONS.values())
    yield from (obstacle.text for obstacle in Obstacle)
    for fact in (one for one in all_facts().values() if one.said):
        yield from () if fact.key in OF_OUR_TRAINER else (fact.text,)
        yield from (fact.of_ours().text,) if fact.ours else ()


def _asked_of(kind: Any, people: Protected) -> Iterator[str]:
    """What an attacker knows and wants to know, by relation."""
    for relation in Neighbouring:
        record: Any = SimpleNamespace(infers=kind.infers, knows=kind.knows, neighbouring=relation.value)
        yield known(record, people)
        yield wanted(record, people).rstrip(",")
