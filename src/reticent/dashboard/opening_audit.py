"""The document of an audit, read strictly, and shown against what is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from dash import html
from pydantic import BaseModel, ConfigDict, Field

from reticent.auditing.curve import EmpiricalTradeOff
from reticent.certificates.document.declared_text import inert
from reticent.dashboard import words
from reticent.dashboard.figures import GROUNDS, Figure, band_between, line_through, risk_figure
from reticent.io.models import Count, NonNegative, Share, validated
from reticent.kernel.adversaries import Assessment
from reticent.kernel.errors import ArtifactError

_Shares = Annotated[list[Share], Field(min_length=1, max_length=1000)]
_Text = Annotated[str, Field(max_length=1000)]
_MOST = 50


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Curve(_Read):
    alpha: _Shares
    beta: _Shares
    alpha_radius: NonNegative
    beta_radius: NonNegative
    confidence: Share


class _Verdict(_Read):
    finding: Literal["consistent", "inconsistent", "no power"]
    p_value: Share
    reason: _Text


class Report(_Read):
    """What the page shows of ``reticent.audit/1``."""

    design: _Text
    members: Count
    non_members: Count
    confidence: Share
    curve: _Curve
    meta: dict[_Text, str | int | float | bool | None]
    notes: Annotated[list[_Text], Field(max_length=_MOST)]
    verdicts: Annotated[dict[_Text, _Verdict], Field(max_length=_MOST)]


def parsed(document: Any) -> Report:
    """The document, if it is one.

    Raises:
        ArtifactError: it is not; the text names the first key that is wrong.
    """
    report = validated(Report, document, "audit")
    if len(report.curve.alpha) != len(report.curve.beta) or np.any(np.diff(report.curve.alpha) < 0):
        raise ArtifactError("audit: the curve must have as many alphas as betas, in increasing order")
    return report


def page(report: Report) -> list[Any]:
    """Verdicts first, then what was measured."""
    looks = {"consistent": "good", "inconsistent": "warning", "no power": "quiet"}
    verdicts = [
        html.P([html.Strong(f"{inert(name, 60)}: {v.finding}. "), inert(v.reason)], className=looks[v.finding])
        for name, v in report.verdicts.items()
    ]
    facts = [
        ("attack", inert(str(report.meta.get("attack", "not stated")), 80)),
        ("scores", f"{report.members:,} members, {report.non_members:,} non-members"),
        ("design", inert(report.design, 80)),
        ("confidence", f"{report.confidence:g} for each statement"),
    ]
    return [
        html.H2("What the attack achieved"),
        *(verdicts or [html.P("No claim was tested.", className="quiet")]),
        words.pairs(facts),
        html.P(
            "With the measured curve: the claims of the settings of this page. They are those of the audited model "
            "only if you set them so.",
            className="quiet",
        ),
        *[html.P(inert(note), className="quiet") for note in report.notes],
    ]


def figure(report: Report, claims: Sequence[Assessment], theme: str) -> Figure:
    """The measured curve with its band over the claims."""
    c = report.curve
    measured = EmpiricalTradeOff(np.array(c.alpha), np.array(c.beta), c.alpha_radius, c.beta_radius, c.confidence)
    drawn, x = risk_figure(claims, "curves", theme), np.linspace(0.0, 1.0, 401)
    ends = measured.lower(x).tolist(), measured.upper(x).tolist()
    band = band_between(x.tolist(), *ends, f"band at confidence {c.confidence:g}", "rgba(90,150,200,0.22)")
    line = line_through(
        x.tolist(),
        measured.estimate(x).tolist(),
        "measured (empirical)",
        line={"color": GROUNDS[theme].accent, "width": 2.4},
        hovertemplate="<b>measured</b><br>%{x:.1%} false alarms:<br>missed %{y:.1%}<br>of members"
        " (empirical).<extra></extra>",
    )
    drawn["data"] += [*band, line]
    return drawn
