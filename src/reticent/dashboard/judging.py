"""A policy laid over the numbers of the page: the verdicts of ``reticent certify --policy``, for a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from reticent.adversaries import Assessment
from reticent.adversaries.report import AssessmentRecord, assessment_record
from reticent.certificates.policy import Limit, Policy
from reticent.certificates.requirements import Check, judged, within
from reticent.dashboard import words
from reticent.dashboard.readings import QUESTIONS
from reticent.io import yaml
from reticent.io.models import validated
from reticent.io.strict import loads
from reticent.mechanisms import Mechanism
from reticent.mechanisms.codec import mechanism_record
from reticent.risk.questions import MEASURES, Questions
from reticent.text import digits


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy is asked of where nobody saw a run."""

    assessments: Sequence[AssessmentRecord]
    mechanism: Mapping[str, Any]
    ledger: None = None
    warnings: tuple[()] = ()
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
        """What is about no number that is shown, what failed first."""
        found = sorted((one for one in self.checks if one.record is None), key=lambda check: check.passed)
        return [requirements([requirement(one.passed, _about_no_number(one)) for one in found])] if found else []


def judge(policy: Policy, mechanism: Mechanism, assessments: Sequence[Assessment]) -> Judged:
    """What became of each requirement, if these attackers were all."""
    plan = Plan([assessment_record(one, _asked(policy)) for one in assessments], mechanism_record(mechanism))
    checks = judged(plan, policy)
    found: dict[tuple[str, str], list[html.Li]] = {}
    marks: dict[tuple[str, str, str], html.Small] = {}
    for one in checks:
        if one.record is not None and one.limit is not None:
            place = one.record.adversary, one.record.neighbouring
            found.setdefault(place, []).append(requirement(one.passed, _about_a_number(one, one.limit)))
            kept = one.value is not None and within(one.limit, one.value)
            sign = "\u2713" if one.passed else "\u2717"
            short = f"{sign} allowed: {_allowed(one.limit)}{'; see its card' if kept and not one.passed else ''}"
            name = words.title_of(one.limit.measure, one.limit.places)
            marks[(*place, name)] = html.Small(short, className=_look(one.passed))
    return Judged(checks, {place: requirements(rows) for place, rows in found.items()}, marks)


def _asked(policy: Policy) -> Questions:
    """Where the curves are read for the limits of a policy."""
    places: dict[str, set[float]] = {"priors": set(QUESTIONS.priors)}
    for limit in policy.limits:
        for (_, field), place in zip(MEASURES[limit.measure].places, limit.places, strict=True):
            places.setdefault(field, set()).add(place)
    return Questions(**{field: tuple(sorted(found)) for field, found in places.items()})


def requirement(passed: bool, says: str) -> html.Li:
    """One requirement, and what became of it."""
    sign, word = ("\u2713 ", "met: ") if passed else ("\u2717 ", "not met: ")
    return html.Li([sign, html.Span(word, className="unseen"), says], className=_look(passed))


def requirements(rows: list[html.Li]) -> html.Ul:
    """All of them."""
    return html.Ul(rows, className="verdicts")


def _look(passed: bool) -> str:
    return "good" if passed else "bad"


def _allowed(limit: Limit) -> str:
    return f"at most {limit.at_most:g}" if limit.at_least is None else f"at least {limit.at_least:g}"


def _about_no_number(check: Check) -> str:
    if check.limit is not None:
        return f"{check.name}: this attacker is not shown with these parameters; choose it under Who attacks."
    return f"{check.name}." if check.passed else f"{check.name}: {check.detail}."


def _about_a_number(check: Check, limit: Limit) -> str:
    """The number, the limit, and what else is in the way."""
    name = words.title_of(limit.measure, limit.places)
    if check.value is None:
        return f"{name}: allowed is {_allowed(limit)}; {check.detail}."
    low_enough = within(limit, check.value)
    says = f"{name} is {_agreeing(check.value, limit)}, allowed is {_allowed(limit)}"
    others = ", ".join(f"{one.key} ({one.status})" for one in check.unchecked)
    wrong = f"it rests on {others}: the policy does not accept that" if others else str(check.detail)
    if check.passed or wrong.startswith("is "):
        return f"{says}."
    return f"{says}.{' The number is met, but' if low_enough else ' And'} {wrong}."


def _agreeing(value: float, limit: Limit) -> str:
    """As many digits as it takes to see whether the limit is kept."""
    shown = (digits(value, count, up=limit.at_least is None) for count in (4, 6, 8, 11))
    return next((text for text in shown if within(limit, float(text)) == within(limit, value)), repr(value))
