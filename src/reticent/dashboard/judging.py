"""A policy laid over the numbers of the page: the verdicts of ``reticent certify --policy``, for a plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from reticent.adversaries.report import AssessmentRecord, assessment_record
from reticent.certificates.document.declared_text import inert
from reticent.certificates.document.policy import Limit, Policy
from reticent.certificates.document.requirements import Check, judged, within
from reticent.dashboard import words
from reticent.io import yaml
from reticent.io.models import validated
from reticent.io.strict import loads
from reticent.kernel.risk.questions import MEASURES, Questions
from reticent.mechanisms.codec import mechanism_record
from reticent.verbs import Assessments

_LONGEST = 2000
"""Letters of a sentence of a certificate: a number that is cut is another number."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy is asked of where nobody saw a run."""

    assessments: Sequence[AssessmentRecord]
    mechanism: Mapping[str, Any]
    ledger: None = None
    warned: tuple[()] = ()
    silent: tuple[()] = ()


def policy_text(content: str, name: str) -> str:
    """The policy in a file, as the settings keep it.

    Raises:
        ArtifactError: it is no policy; the text names the first key that is wrong.
    """
    policy = validated(Policy, yaml.loads(content, name), name)
    stated: dict[str, Any] = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps(stated, separators=(",", ":"))


def policy_of(text: str) -> Policy | None:
    """The policy of the settings; None where there is none.

    Raises:
        ArtifactError: the text is no policy.
    """
    return validated(Policy, loads(text, "the policy"), "the policy") if text else None


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of each requirement.

    Attributes:
        checks: all of them.
        rows: those about one attacker's numbers, for people, by name and relation of the attacker.
        marks: the same in short, for a cell of a table, by name, relation, and title of the number.
    """

    checks: Sequence[Check]
    rows: Mapping[tuple[str, str], html.Ul]
    marks: Mapping[tuple[str, str, str], html.Small]

    def line(self) -> html.Strong:
        """The verdict in one line."""
        failed, all_of = sum(not check.passed for check in self.checks), len(self.checks)
        if not failed:
            return html.Strong("The policy: all is met, if the plan is followed. Nobody saw a run.", className="good")
        says = f"{failed} of {all_of} requirements {'is' if failed == 1 else 'are'} not met"
        return html.Strong(f"The policy: {says}. Each verdict is at its number.", className="bad")

    def others(self) -> list[Any]:
        """What is about no number that is shown."""
        found = [one for one in self.checks if one.record is None]
        return [requirements(found)] if found else []


def judge(policy: Policy, found: Assessments) -> Judged:
    """What became of each requirement, if these attackers were all."""
    records = [assessment_record(one, _asked(policy)) for one in found]
    checks = judged(Plan(records, mechanism_record(found.mechanism)), policy)
    about: dict[tuple[str, str], list[Check]] = {}
    marks: dict[tuple[str, str, str], html.Small] = {}
    for one in checks:
        if one.record is not None and one.limit is not None:
            place = one.record.adversary, one.record.neighbouring
            about.setdefault(place, []).append(one)
            marks[(*place, words.title_of(one.limit.measure, one.limit.places))] = _mark(one, one.limit)
    return Judged(checks, {place: requirements(each) for place, each in about.items()}, marks)


def _mark(check: Check, limit: Limit) -> html.Small:
    """The verdict at its number: where that is low enough, its card says what is wrong."""
    kept = check.value is not None and within(limit, check.value)
    allowed = f"at most {limit.at_most:g}" if limit.at_least is None else f"at least {limit.at_least:g}"
    more = "; see its card" if kept and not check.passed else ""
    sign, _, look = _SAID[check.passed]
    return html.Small(f"{sign}allowed: {allowed}{more}", className=look)


def _asked(policy: Policy) -> Questions:
    """Where the curves are read for the limits of a policy."""
    places: dict[str, set[float]] = {}
    for limit in policy.limits:
        for (_, field), place in zip(MEASURES[limit.measure].places, limit.places, strict=True):
            places.setdefault(field, set()).add(place)
    return Questions(**{field: tuple(sorted(found)) for field, found in places.items()})


_SAID = {True: ("\u2713 ", "met: ", "good"), False: ("\u2717 ", "not met: ", "bad")}
"""Sign, words and look of what is met and what is not."""


def requirements(checks: Iterable[Any]) -> html.Ul:
    """Requirements, of a plan or of a certificate, and what became of them: what is not met first."""
    rows = []
    for one in sorted(checks, key=lambda check: bool(check.passed)):
        sign, word, look = _SAID[one.passed]
        says = inert(f"{one.name}: {one.detail}", _LONGEST)
        rows.append(html.Li([sign, html.Span(word, className="unseen"), says], className=look))
    return html.Ul(rows, className="verdicts")
