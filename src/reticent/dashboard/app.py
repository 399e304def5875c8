"""A local page with the numbers and curves of ``reticent risk``, side by side and live."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import plotly.graph_objects as go
from dash import Dash, Input, Output, dcc, html

from reticent._registry import Parameter, parameters_of
from reticent.certificate.build import curve_points
from reticent.certificate.numbers import AssessmentRecord, Number, Questions, risk_document
from reticent.certificate.sentences import sentence
from reticent.errors import ReticentError
from reticent.mechanism import DPSGD, MECHANISMS, Mechanism, Neighbouring
from reticent.threat import ADVERSARIES, Adversary, Assessment, assess_answerable
from reticent.threat.registry import adversary_parameters

_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_EXAMPLES = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 1000, "flip_probability": 0.25}
_OWN = "as each attacker means it"
_ROW = {"display": "flex", "gap": "1rem", "flexWrap": "wrap"}
_WIDE = {"width": "11rem"}
_MARGIN = {"l": 60, "r": 10, "t": 40, "b": 50}


@dataclass(frozen=True, slots=True)
class Field:
    """One input of the page.

    Attributes:
        owner: name of the mechanism that it belongs to; empty for attackers.
        parameter: what it sets.
    """

    owner: str
    parameter: Parameter

    @property
    def key(self) -> str:
        """Its id in the page."""
        return f"{self.owner or 'attacker'}-{self.parameter.name}"

    @property
    def default(self) -> Any:
        """What stands there at first."""
        return _EXAMPLES.get(self.parameter.name) if self.parameter.required else self.parameter.default

    def read(self, value: Any) -> Any:
        """What was put in, as the library wants it."""
        kind = self.parameter.kind
        return kind(value) if issubclass(kind, StrEnum) and value is not None else value


def fields() -> list[Field]:
    """Every input of the page, in order."""
    own = [Field(name, p) for name, kind in MECHANISMS.items() for p in parameters_of(kind)]
    of_attackers = {p.name: Field("", p) for _, p in adversary_parameters()}
    return [*own, *of_attackers.values()]


def build_app() -> Dash:
    """The application, not yet serving. Assets are served from this machine; nothing is fetched."""
    app = Dash("reticent", title="reticent", serve_locally=True)
    app.layout = _layout()
    keys = ["mechanism", "neighbouring", *(field.key for field in fields())]
    app.callback(
        Output("message", "children"),
        Output("sentences", "children"),
        Output("table", "children"),
        Output("linear", "figure"),
        Output("logarithmic", "figure"),
        *(Input(key, "value") for key in keys),
    )(lambda *values: answer(dict(zip(keys, values, strict=True))))
    app.callback(*(Output(f"fields-{name}", "style") for name in MECHANISMS), Input("mechanism", "value"))(_shown)
    return app


def answer(given: dict[str, Any]) -> tuple[str, list[Any], list[Any], go.Figure, go.Figure]:
    """Everything that the page shows, from the values of its inputs by id; missing ones are empty."""
    try:
        mechanism = _mechanism(given)
        assessments, skipped = assess_answerable(mechanism, _adversaries(given), _relation(given["neighbouring"]))
    except (ReticentError, ArithmeticError, MemoryError) as error:
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
    groups = [
        html.Div([_input(f) for f in fields() if f.owner == name], id=f"fields-{name}", style=style)
        for name, style in zip(MECHANISMS, _shown(DPSGD.name), strict=True)
    ]
    of_attackers = html.Div([_input(field) for field in fields() if not field.owner], style=_ROW)
    kind = html.Label(
        ["mechanism", dcc.Dropdown(list(MECHANISMS), DPSGD.name, id="mechanism", clearable=False, style=_WIDE)],
        style={"fontSize": "0.85rem"},
    )
    relation = html.Label(
        [
            "neighbouring",
            dcc.Dropdown(
                [_OWN, *(n.value for n in Neighbouring)],
                _OWN,
                id="neighbouring",
                clearable=False,
                style=_WIDE,
            ),
        ],
        style={"fontSize": "0.85rem"},
    )
    return html.Div(
        [
            html.H1("How much can each attacker learn about one person?", style={"fontSize": "1.4rem"}),
            html.Div([kind, relation], style=_ROW),
            *groups,
            of_attackers,
            html.P(id="message", role="status", style={"color": "#8a3b00"}),
            dcc.Loading([html.Ul(id="sentences")]),
            html.Table(id="table", style={"borderSpacing": "1rem 0.2rem", "fontSize": "0.9rem"}),
            html.Div([dcc.Graph(id="linear"), dcc.Graph(id="logarithmic")], style=_ROW),
        ],
        style={
            "fontFamily": "system-ui, sans-serif",
            "maxWidth": "72rem",
            "margin": "1.5rem auto",
            "padding": "0 1rem",
        },
    )


def _shown(name: str) -> list[dict[str, str]]:
    """The style of each mechanism's inputs: those of the chosen one are seen."""
    return [_ROW if known == name else {"display": "none"} for known in MECHANISMS]


def _input(field: Field) -> html.Label:
    kind, choices = field.parameter.kind, issubclass(field.parameter.kind, StrEnum)
    box: Any = dcc.Input(id=field.key, type="number", value=field.default, debounce=True, style={"width": "9rem"})
    if issubclass(kind, StrEnum):
        box = dcc.Dropdown(list(kind), field.default, id=field.key, clearable=False, style=_WIDE)
    label = field.parameter.name.replace("_", " ") + ("" if field.parameter.required or choices else " (optional)")
    style = {"display": "flex", "flexDirection": "column", "fontSize": "0.85rem"}
    return html.Label([label, box], title=field.parameter.help, style=style)


def _mechanism(given: dict[str, Any]) -> Mechanism:
    name = given["mechanism"]
    own = [field for field in fields() if field.owner == name]
    stated = {f.parameter.name: f.read(given.get(f.key)) for f in own if f.parameter.required or given.get(f.key)}
    return MECHANISMS[name](**stated)


def _relation(text: str) -> Neighbouring | None:
    return None if text == _OWN else Neighbouring(text)


def _adversaries(given: dict[str, Any]) -> list[Adversary]:
    """All attackers, with what was put in for them; those that need a measurement only where there is one."""
    stated = {f.parameter.name: given.get(f.key) for f in fields() if not f.owner and given.get(f.key) is not None}
    found = []
    for kind in ADVERSARIES.values():
        own = {p.name: stated[p.name] for p in parameters_of(kind) if p.name in stated}
        if own or kind.unmeasured is None:
            found.append(kind(**own))
    return found


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
