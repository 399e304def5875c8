"""The layout of the page; every control that holds a part of the state has its name as its id."""

from __future__ import annotations

from itertools import chain
from typing import Any

from dash import dcc, html

from reticent.adversaries import style_of
from reticent.dashboard.catalogue import (
    ATTACKERS,
    OF_RUNS,
    OF_SAMPLERS,
    PARAMETERS,
    PLACES,
    RELEASED,
    TARGETS,
    Parameter,
)
from reticent.dashboard.looks import SETTINGS as COMPARED
from reticent.dashboard.pieces import GRAPH, choice, graph, named, text_field, upload
from reticent.dashboard.state import DEFAULTS, PINNED
from reticent.samplers import SAMPLERS

SLIDER_STEPS = 400
CONTROLS = tuple(name for name in DEFAULTS if name not in ("pinned", "ledger", "policy", *PARAMETERS))
"""The state in the order of the callback that keeps it, less what the script keeps: parameters, A, and files."""
SLIDERS = tuple(PARAMETERS)
ASKING = ("calibrate", "compare")
"""Panels that a callback answers; each hears only of the changes that it shows."""

_LIVE: dict[str, Any] = {"aria-live": "polite"}

_DRAGGED: Any = {**GRAPH, "edits": {"shapePosition": True}}


def page(local: bool) -> html.Div:
    """The whole page; paths can be opened only where the server is ``local``."""
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="state"),
            *[dcc.Store(id=f"ask-{panel}") for panel in ASKING],
            dcc.Store(id="rest-calibrate"),
            dcc.Store(id="theme"),
            dcc.Store(id="shared"),
            dcc.Store(id="ledger-read"),
            dcc.Store(id="placed"),
            dcc.Store(id="answered"),
            dcc.Interval(id="again", interval=4000, disabled=True),
            dcc.Store(id="facts", data=_facts()),
            dcc.Download(id="download"),
            _header(),
            html.Div(
                [
                    html.Main(
                        [_explore(), _calibrate(), _compare(), _open(local), _take_away()], id="main", tabIndex=-1
                    ),
                    html.Aside(_settings(), id="settings", tabIndex=-1, **named("Settings")),
                ],
                className="columns",
            ),
        ],
        id="page",
    )


def _header() -> html.Header:
    return html.Header(
        [
            html.A("Skip to the answer", href="#main", className="skip"),
            html.Div([html.Span("reticent", className="word"), html.Span("privacy risk", className="sub")]),
            choice("panel", "Panel", "tabs"),
            html.Div(
                [
                    html.A("Settings", href="#settings", className="to-settings"),
                    html.Button("Undo", id="undo", title="Undo the last change (Ctrl+Z)", disabled=True),
                    html.Button("Copy link", id="link", title="Copy an address that holds all settings"),
                ],
                className="buttons",
            ),
        ]
    )


def _settings() -> list[Any]:
    return [
        html.Section(
            [
                html.H2("Who attacks"),
                _chips(),
                *[
                    html.Div(_field_of_attacker(a.parameter), className="for-attacker", id=f"for-{name}")
                    for name, a in ATTACKERS.items()
                    if a.parameter
                ],
            ]
        ),
        html.Section(
            [
                html.H2("What was released"),
                choice("mechanism", "Mechanism", "segments"),
                html.Div(
                    choice("by", "Sampling", "segments"),
                    className="for-dpsgd",
                ),
                html.Div(upload("ledger-file", "Ledger, certificate or DpEvent (JSON)"), className="for-ledger"),
                html.P(id="ledger-said", className="message", role="alert"),
                *[_field(PARAMETERS[name]) for name in _parameters_of_mechanisms()],
                html.P(id="derived", className="derived"),
                html.Div(choice("sampler", "Sampler", "options", legend="small-label"), className="for-dpsgd"),
                choice("selection", "Tuned: the best of several runs", "options", legend="small-label"),
                *[_field(PARAMETERS[name]) for name in PARAMETERS if any(name in own for own in OF_RUNS.values())],
                choice("relation", "Neighbouring data sets", "options", legend="small-label"),
            ]
        ),
        _policy(),
        _shelf(),
    ]


def _policy() -> html.Section:
    nothing: dict[str, Any] = {"data-settings": "policy="}
    return html.Section(
        [
            html.H2("What is allowed"),
            upload("policy-file", "A policy of reticent gate (YAML)"),
            html.P(id="policy-said", className="message", role="alert"),
            html.Button("Without a policy", id="no-policy", **nothing),
        ]
    )


def _shelf() -> html.Section:
    """Named settings; the page's script keeps them in the browser."""
    name = dcc.Input(id="shelf-name", type="text", maxLength=40, placeholder="name")
    return html.Section(
        [
            html.H2("Shelf"),
            html.Label("Keep these settings as", htmlFor="shelf-name", className="small-label"),
            html.Div([name, html.Button("Keep", id="shelf-keep")], className="row keep"),
            html.Ul(id="shelf", className="shelf"),
        ],
        id="shelves",
    )


def _field_of_attacker(name: str) -> list[html.Div]:
    """A field of the release serves the attacker too: it is shown once."""
    return [] if name in _parameters_of_mechanisms() else [_field(PARAMETERS[name])]


def _parameters_of_mechanisms() -> list[str]:
    used = {name for each in RELEASED.values() for name in each.parameters}
    return [name for name in PARAMETERS if name in used]


def _field(p: Parameter) -> html.Div:
    """The place of a field and its slider, which the page's script makes; both carry the label."""
    uses = [f"in-{kind}" for kind, each in RELEASED.items() if p.name in each.parameters]
    hint: list[Any] = [" ", html.Span(p.hint, className="hint", id=f"{p.name}-hint")] if p.hint else []
    return html.Div(
        [
            html.Label([p.label, *hint], htmlFor=p.name),
            *([] if p.text else [html.Label(f"{p.label}, slider", htmlFor=f"{p.name}-slider", className="unseen")]),
            html.Div(className="place", **{"data-name": p.name}),  # type: ignore[arg-type]
        ],
        className=" ".join(["field", f"f-{p.name}", *uses]),
        id=f"field-{p.name}",
    )


def _chips() -> html.Fieldset:
    options = [
        {
            "label": html.Span([swatch(name), html.Span([name, html.Small(a.short)])], title=a.label),
            "value": name,
            "disabled": name == "worst-case",
        }
        for name, a in ATTACKERS.items()
    ]
    chosen = dcc.Checklist(options, ["worst-case"], id="attackers", inline=True)
    return html.Fieldset([html.Legend("Attackers", className="unseen"), chosen], className="chips")


def swatch(name: str) -> html.Span:
    """A short piece of an attacker's line, drawn by the style sheet."""
    return html.Span(className=f"swatch s-{name}", **{"aria-hidden": "true"})  # type: ignore[arg-type]


def made_styles() -> str:
    """The part of the style sheet that follows from the lists: which field is seen where, and lines as in pictures."""
    rules = [f"body[data-mechanism={name}] .in-{name}{{display:grid}}" for name in RELEASED]
    for name in dict.fromkeys(chain(*OF_SAMPLERS.values())):
        takers = [each for each, own in OF_SAMPLERS.items() if name in own]
        rules.append(f"body{_unless(takers)} .f-{name}{{display:none!important}}")
    counting = [name for name, kind in SAMPLERS.items() if kind.counts_records]
    rules.append(f"body[data-by=rate][data-mechanism=dpsgd]{_unless(counting)} .f-dataset_size{{display:none}}")
    rules += [f"body[data-selection={law}] .f-{name}{{display:grid}}" for law, own in OF_RUNS.items() for name in own]
    rules += [f"body[data-attackers~={name}] #for-{name}{{display:block}}" for name in ATTACKERS]
    for name, look in {**{name: style_of(name) for name in ATTACKERS}, **COMPARED}.items():
        stops, at = [], 0
        for k, length in enumerate(look.dashes):
            colour = "var(--c)" if k % 2 == 0 else "transparent"
            stops.append(f"{colour} {at}px {at + length}px")
            at += length
        line = f"repeating-linear-gradient(90deg,{','.join(stops)})" if stops else "var(--c)"
        rules.append(f".s-{name}{{--c:{look.light};--swatch:{line}}}")
        rules.append(f"@media(prefers-color-scheme:dark){{.s-{name}{{--c:{look.dark}}}}}")
    return "".join(rules)


def _unless(samplers: list[str]) -> str:
    """Where none of these is chosen."""
    return "".join(f":not([data-sampler={name}])" for name in samplers)


def _explore() -> html.Section:
    return html.Section(
        [
            html.H1(id="headline", className="answer", **_LIVE),
            html.P(id="accuracy", className="quiet"),
            html.P(id="verdict", **_LIVE),
            html.P(id="message", className="message", role="alert"),
            choice("view", "View", "segments views"),
            html.Div(
                html.Div(
                    html.Div(id="figure", className="graph"), role="img", className="frame", **named("Risk curves")
                ),
                id="picture",
            ),
            html.Div(id="remarks", className="quiet"),
            html.Div(id="table", className="scroll", tabIndex=0),
            html.Div(id="policy"),
            html.Div(id="cards", className="cards"),
            html.Div(id="left-out", className="quiet"),
            html.Details([html.Summary("Where these numbers come from"), html.Div(id="conditions")], id="why"),
        ],
        className="panel p-explore",
        **named("Explore"),
    )


def _calibrate() -> html.Section:
    return html.Section(
        [
            html.Div(
                [
                    choice("target", "Target", "segments"),
                    html.Div(
                        [
                            text_field("goal", "at most", DEFAULTS["goal"]),
                            text_field("place", "at", ""),
                            html.Span("by changing", className="quiet"),
                            choice("unknown", "What is searched", "segments"),
                        ],
                        className="row",
                    ),
                ],
                className="question",
            ),
            html.H1(id="calibrated", className="answer", **_LIVE),
            html.P(id="calibrate-message", className="message", role="alert"),
            graph("calibrate-figure", "Worst-case curves at what each attacker would allow, with the target", _DRAGGED),
            html.P("Each line is the worst case at what that attacker would allow.", className="quiet"),
            html.Div(id="calibrate-table", className="scroll", tabIndex=0),
            html.Div(id="calibrate-left-out", className="quiet"),
            html.Div(
                [
                    html.H2("The budget in epochs"),
                    html.P(id="planned", **_LIVE),
                    graph("plan-figure", "The risk over epochs, with the target and what is planned"),
                ],
                id="plan",
                className="unseen",
            ),
        ],
        className="panel p-calibrate",
        **named("Calibrate"),
    )


def _compare() -> html.Section:
    return html.Section(
        [
            html.Div(
                [
                    html.Button("Keep these settings as A", id="pin", className="primary"),
                    html.Button("Swap A and B", id="swap"),
                    html.Span("B is what the settings say now.", className="quiet"),
                ],
                className="row buttons",
            ),
            html.H1(id="compared", className="answer", **_LIVE),
            html.P(id="compare-message", className="message", role="alert"),
            html.Div(id="compare-table", className="scroll", tabIndex=0),
            html.Div(
                [
                    html.Figure(
                        [
                            graph("compare-figure", "Worst-case curves of A and B"),
                            html.Figcaption([swatch("A"), "A, ", swatch("B"), "B: errors of the worst case"]),
                        ]
                    ),
                    html.Figure(
                        [
                            graph("map", "Worst-case advantage over sample rate and noise, with A and B marked"),
                            html.Figcaption(id="map-caption"),
                        ]
                    ),
                ],
                className="two",
            ),
            html.H2("Two certificates"),
            upload("certificates", "two at once: JSON or pages; every changed fact, number and sentence", many=True),
            html.Div(id="certificates-compared", className="scroll", tabIndex=0),
        ],
        className="panel p-compare",
        **named("Compare"),
    )


def _open(local: bool) -> html.Section:
    path = html.Div(
        [
            html.Label("Path on this machine", htmlFor="path"),
            html.Div(
                [dcc.Input(id="path", type="text", maxLength=1000), html.Button("Open", id="open-path")],
                className="row",
            ),
        ],
        className="path" if local else "unseen",
    )
    chosen = upload("upload")
    return html.Section(
        [
            html.H1("Open a run, a ledger, a certificate or an audit", className="answer"),
            html.P(
                "A run folder, ledger.json, certificate.json or its page, the JSON of an audit, a score file "
                "(.npz, .csv), or the folder of an audit that is running. Files stay on the machine that serves "
                "this page.",
                className="quiet",
            ),
            html.Div([path, chosen], className="open"),
            html.P(id="open-message", className="message", role="alert"),
            html.Div(id="opened"),
            html.Div(graph("open-figure", "What the file says, as curves"), id="open-picture", className="unseen"),
        ],
        className="panel p-open",
        **named("Open"),
    )


def _take_away() -> html.Section:
    return html.Section(
        [
            html.Div(
                [
                    html.Button("Copy as Python", id="copy-python", className="of-numbers"),
                    html.Button("Copy as command", id="copy-command", className="of-numbers"),
                    html.Button("PNG", id="png", title="Download the picture as PNG"),
                    html.Button("SVG", id="svg", title="Download the picture as SVG"),
                    html.Button("CSV", id="csv", className="of-numbers", title="Download the shown curves as CSV"),
                    html.Button(
                        "Certificate",
                        id="certificate",
                        className="of-numbers",
                        title="Download a certificate of these settings",
                    ),
                    html.Button(
                        "Page to send", id="sheet", className="of-numbers", title="Download these numbers as one page"
                    ),
                    html.Span(id="told", role="status"),
                    html.Span(id="sheet-said", role="status"),
                    html.Span(id="certificate-said", role="status"),
                ],
                className="buttons",
            ),
            html.Details(
                [
                    html.Summary("The same numbers without this page"),
                    *[
                        html.Pre(
                            id=f"{panel}{name}", tabIndex=0, className=f"of-{panel}code", **named(name.capitalize())
                        )
                        for panel in ("", "calibrate-")
                        for name in ("python", "command")
                    ],
                ]
            ),
        ],
        className="take-away",
        **named("Take away"),
    )


def _facts() -> dict[str, Any]:
    """What the browser must know to keep fields, sliders and address in step."""
    fields = {
        p.name: {"low": p.low, "high": p.high, "log": p.log, "whole": p.whole, "text": p.text, "steps": SLIDER_STEPS}
        for p in PARAMETERS.values()
    }
    goals = {name: goal for name, (_, _, goal, _) in TARGETS.items()}
    return {
        "fields": fields,
        "controls": CONTROLS,
        "sliders": SLIDERS,
        "defaults": DEFAULTS,
        "pinned": PINNED,
        "goals": goals,
        "places": PLACES,
    }
