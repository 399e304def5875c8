"""A local page with the numbers and curves of ``reticent risk``, side by side and live."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
from dash import Dash, Input, Output, dcc, html

from reticent.certificate.build import curve_points
from reticent.certificate.numbers import AssessmentRecord, Number, Questions, risk_document
from reticent.certificate.sentences import sentence
from reticent.errors import ReticentError
from reticent.mechanism import DPSGD, Mechanism, Neighbouring
from reticent.threat import (
    Adversary,
    Assessment,
    Attribute,
    Membership,
    MembershipGame,
    Mixed,
    Relaxed,
    WorstCase,
    assess_answerable,
)

_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_FIELDS: dict[str, tuple[str, float | int | None]] = {
    "noise_multiplier": ("noise multiplier", 1.1),
    "sample_rate": ("sample rate", 0.01),
    "steps": ("steps", 1000),
    "num_parameters": ("trained parameters (optional)", None),
    "batch_size": ("expected batch size (optional)", None),
    "gradient_change": ("gradient change R (optional)", None),
}
_OWN = "as each attacker means it"
_MARGIN = {"l": 60, "r": 10, "t": 40, "b": 50}


def build_app() -> Dash:
    """The application, not yet serving. Assets are served from this machine; nothing is fetched."""
    app = Dash("reticent", title="reticent", serve_locally=True)
    app.layout = _layout()
    inputs = [Input(name, "value") for name in (*_FIELDS, "neighbouring")]
    app.callback(
        Output("message", "children"),
        Output("sentences", "children"),
        Output("table", "children"),
        Output("linear", "figure"),
        Output("logarithmic", "figure"),
        *inputs,
    )(answer)
    return app


def answer(*values: Any) -> tuple[str, list[Any], list[Any], go.Figure, go.Figure]:
    """Everything the page shows, from the values of its fields (in the order of the fields)."""
    given = dict(zip((*_FIELDS, "neighbouring"), values, strict=True))
    try:
        mechanism = _mechanism(given)
        assessments, skipped = assess_answerable(mechanism, _adversaries(given), _relation(given["neighbouring"]))
    except ReticentError as error:
        return str(error), [], [], _figure([], log=False), _figure([], log=True)
    records = risk_document(mechanism, assessments, Questions(), skipped).assessments
    message = "; ".join(f"{name} left out: {reason}" for name, reason in skipped.items())
    sentences = [html.Li([sentence(r), " ", html.Em(r.claim)]) for r in records]
    return (
        message,
        sentences,
        _table([_row(record) for record in records]),
        _figure(assessments, log=False),
        _figure(assessments, log=True),
    )


def _layout() -> html.Div:
    fields = [
        html.Label(
            [label, dcc.Input(id=name, type="number", value=default, debounce=True, style={"width": "9rem"})],
            style={"display": "flex", "flexDirection": "column", "fontSize": "0.85rem"},
        )
        for name, (label, default) in _FIELDS.items()
    ]
    relation = html.Label(
        [
            "neighbouring",
            dcc.Dropdown(
                [_OWN, *(n.value for n in Neighbouring)],
                _OWN,
                id="neighbouring",
                clearable=False,
                style={"width": "11rem"},
            ),
        ],
        style={"fontSize": "0.85rem"},
    )
    row = {"display": "flex", "gap": "1rem", "flexWrap": "wrap"}
    return html.Div(
        [
            html.H1("How much can each attacker learn about one person?", style={"fontSize": "1.4rem"}),
            html.Div([*fields, relation], style=row),
            html.P(id="message", role="status", style={"color": "#8a3b00"}),
            dcc.Loading([html.Ul(id="sentences")]),
            html.Table(id="table", style={"borderSpacing": "1rem 0.2rem", "fontSize": "0.9rem"}),
            html.Div([dcc.Graph(id="linear"), dcc.Graph(id="logarithmic")], style=row),
        ],
        style={
            "fontFamily": "system-ui, sans-serif",
            "maxWidth": "72rem",
            "margin": "1.5rem auto",
            "padding": "0 1rem",
        },
    )


def _mechanism(given: dict[str, Any]) -> Mechanism:
    return DPSGD(
        given["noise_multiplier"],
        given["sample_rate"],
        given["steps"],
        num_parameters=given["num_parameters"],
        batch_size=given["batch_size"],
    )


def _relation(text: str) -> Neighbouring | None:
    return None if text == _OWN else Neighbouring(text)


def _adversaries(given: dict[str, Any]) -> list[Adversary]:
    change = given["gradient_change"]
    known = [Attribute(gradient_change=change)] if change is not None else []
    return [WorstCase(), Relaxed(), Mixed(), Membership(), MembershipGame(), *known]


def _row(record: AssessmentRecord) -> dict[str, str]:
    def shown(number: Number) -> str:
        return "no finite value" if number.value is None else f"{number.value:.4g}"

    return {
        "attacker": record.adversary,
        "neighbouring": record.neighbouring,
        "claim": record.claim,
        "advantage": shown(record.advantage),
        "Bayes security": shown(record.bayes_security),
        **{f"TPR at FPR {key}": shown(number) for key, number in record.tpr_at_fpr.items()},
        **{f"epsilon at delta {key}": shown(number) for key, number in record.epsilon_at_delta.items()},
        "mu": shown(record.mu),
    }


def _table(rows: list[dict[str, str]]) -> list[Any]:
    head = html.Thead(html.Tr([html.Th(name, style={"textAlign": "left"}) for name in rows[0]]))
    return [head, html.Tbody([html.Tr([html.Td(cell) for cell in row.values()]) for row in rows])]


def _figure(assessments: list[Assessment] | tuple[Assessment, ...], *, log: bool) -> go.Figure:
    figure = go.Figure(layout={"template": "plotly_white", "width": 600, "height": 420, "margin": _MARGIN})
    for index, assessment in enumerate(assessments):
        points = curve_points(assessment.curve)
        figure.add_scatter(
            x=points.fpr,
            y=points.tpr if log else points.fnr,
            mode="lines",
            name=f"{assessment.adversary.name} ({assessment.claim.value})",
            line={"color": _COLOURS[index % len(_COLOURS)], "dash": _DASHES[index % len(_DASHES)]},
        )
    kind = "log" if log else "linear"
    figure.update_layout(title="confident accusations" if log else "errors the attacker cannot escape")
    ticks = {"dtick": 1, "exponentformat": "power"} if log else {}
    figure.update_xaxes(type=kind, title="false positive rate", **ticks)
    figure.update_yaxes(type=kind, title="true positive rate" if log else "false negative rate", **ticks)
    return figure
