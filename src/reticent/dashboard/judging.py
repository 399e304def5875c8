"""A policy laid over the numbers of the page: the verdicts of ``reticent certify --policy``, for a plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from reticent.adversaries import Assessment
from reticent.adversaries.report import assessment_record
from reticent.certificates.policy import Policy
from reticent.certificates.requirements import Check, judged
from reticent.dashboard.readings import QUESTIONS
from reticent.io import yaml
from reticent.io.models import validated
from reticent.io.strict import loads
from reticent.risk.report import MEASURES, AssessmentRecord, Questions


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy is asked of where nobody saw a run."""

    assessments: Sequence[AssessmentRecord]
    ledger: None = None
    warnings: tuple[()] = ()


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


def verdicts(policy: Policy, assessments: Sequence[Assessment]) -> list[Check]:
    """What became of each requirement, if these attackers were all."""
    records = [assessment_record(one, _asked(policy)) for one in assessments]
    return judged(Plan(records), policy)


def _asked(policy: Policy) -> Questions:
    """Where the curves are read for the limits of a policy."""
    places: dict[str, set[float]] = {"priors": set(QUESTIONS.priors)}
    for limit in policy.limits:
        for (_, field), place in zip(MEASURES[limit.measure].places, limit.places, strict=True):
            places.setdefault(field, set()).add(place)
    return Questions(**{field: tuple(sorted(found)) for field, found in places.items()})


def as_list(checks: Sequence[Check]) -> list[Any]:
    """The verdicts for people: what failed comes first."""
    failed = sum(not check.passed for check in checks)
    line = f"The policy: {failed} of {len(checks)} requirements fail." if failed else "The policy: all is met."
    rows = [html.Li(_row(check), className="good" if check.passed else "bad") for check in _worst_first(checks)]
    return [html.H2(line), html.Ul(rows, className="verdicts"), html.P("Nobody saw a run: a plan.", className="quiet")]


def _worst_first(checks: Sequence[Check]) -> list[Check]:
    return sorted(checks, key=lambda check: check.passed)


def _row(check: Check) -> list[Any]:
    return [html.Strong("passed: " if check.passed else "failed: "), f"{check.name}; {check.detail}."]
