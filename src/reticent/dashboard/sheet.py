"""The panel that explores as one file to send to somebody: no script, no network, nothing to set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from typing import Any

import numpy as np
from dash import html as parts

from reticent import __version__
from reticent.certificates.page.drawing import HEIGHT, WIDTH, across, down
from reticent.dashboard import words
from reticent.dashboard.explaining import explanation
from reticent.dashboard.figures import called
from reticent.dashboard.judging import judge, policy_of
from reticent.dashboard.layout import made_styles, swatch
from reticent.dashboard.readings import points, protected
from reticent.dashboard.state import State
from reticent.kernel.adversaries import Assessment, style_of
from reticent.verbs import Assessments

_ATTRIBUTES = {"className": "class", **{name: name.lower() for name in ("title", "scope", "id", "href", "tabIndex")}}
_HEAD = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Privacy risk of a plan</title><style>'
)
_MORE = (
    "#page{max-width:60rem;padding-top:1.5rem}svg{width:100%;max-width:38rem;height:auto}"
    "svg text{fill:var(--ink);font-size:14px}svg .axis{stroke:var(--line)}"
)


def sheet(settings: State, found: Assessments) -> str:
    """The page: what was asked, the answer, the picture, every number, the reasons."""
    policy, records = policy_of(settings["policy"]), protected(found.mechanism)
    judged = judge(policy, found) if policy else None
    pieces = [
        parts.P("A plan: nobody saw a run. These numbers are of settings, not of a model.", className="message"),
        parts.P(words.number_line(found), className="number"),
        parts.H1(words.answer_line(found, records), className="answer"),
        parts.P(f"Released: {found.title()}."),
        parts.P(words.accuracy(found), className="quiet"),
        *([parts.P(judged.line()), *judged.others()] if judged else []),
    ]
    usual, key = found[0].neighbouring, list[Any]()
    for one in found:
        key += [swatch(one.adversary.name), called(one, usual), " "]
    after = [
        parts.P(key),
        parts.H2("Every number"),
        parts.Div(words.number_table(found, judged.marks if judged else {}), className="scroll", tabIndex=0),
        parts.Div(words.cards(found, (), judged.rows if judged else {}, records), className="cards"),
        *words.left_out(found.skipped),
        parts.H2("Where the numbers come from"),
        *explanation(found),
        parts.P(
            ["The same page with sliders: reticent dashboard, with the address ", parts.Code(f"?{settings.address()}")]
        ),
        parts.P(f"Made by reticent {__version__} on {datetime.now(UTC).date().isoformat()}.", className="quiet"),
    ]
    css = resources.files("reticent.dashboard").joinpath("assets", "page.css").read_text(encoding="utf-8")
    style = f"{css}{made_styles()}{_MORE}".replace("</", "<\\/")
    body = "".join([as_html(pieces), drawing(found), as_html(after)])
    return f'{_HEAD}{style}</style></head><body><div id="page"><main id="sent">{body}</main></div></body></html>\n'


def as_html(piece: Any) -> str:
    """Components as markup; texts are escaped, and so is every attribute."""
    if piece is None:
        return ""
    if isinstance(piece, (list, tuple)):
        return "".join(map(as_html, piece))
    if not hasattr(piece, "to_plotly_json"):
        return escape(str(piece))
    known = piece.to_plotly_json()
    name, stated = known["type"].lower(), dict(known["props"])
    inner = as_html(stated.pop("children", None))
    given = [f' {_ATTRIBUTES[key]}="{escape(str(value))}"' for key, value in stated.items() if key in _ATTRIBUTES]
    return f"<{name}{''.join(given)}>{inner}</{name}>"


def drawing(assessments: Sequence[Assessment]) -> str:
    """The trade-off curves as SVG; colours are those of the ground that the reader has."""
    lines = [_line(a) for a in sorted(assessments, key=lambda a: not a.adversary.strongest)]
    ticks = [
        f'<line class="axis" x1="{across(t)}" x2="{across(t)}" y1="{down(0)}" y2="{down(1)}"/>'
        f'<line class="axis" x1="{across(0)}" x2="{across(1)}" y1="{down(t)}" y2="{down(t)}"/>'
        f'<text x="{across(t)}" y="{down(0) + 18}" text-anchor="middle">{t:.0%}</text>'
        f'<text x="{across(0) - 6}" y="{down(t) + 4}" text-anchor="end">{t:.0%}</text>'
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    named = (
        f'<text x="{across(0.5)}" y="{HEIGHT - 4}" text-anchor="middle">'
        "false alarms (across), members missed (up)</text>"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Trade-off curves of all attackers">'
        f"{''.join(ticks + lines)}{named}</svg>"
    )


def _line(assessment: Assessment) -> str:
    read = points(assessment, "curves")
    path = " ".join(f"{across(x)},{down(y)}" for x, y in zip(read.x, np.clip(read.claimed, 0.0, 1.0), strict=True))
    return f'<polyline class="s-{assessment.adversary.name}" fill="none" style="{_look(assessment)}" points="{path}"/>'


def _look(assessment: Assessment) -> str:
    dashes, wide = style_of(assessment.adversary.name).dashes, 3.5 if assessment.adversary.strongest else 2
    return f"stroke:var(--c);stroke-width:{wide};stroke-dasharray:{' '.join(map(str, dashes)) or 'none'}"
