"""The layout of the page; every control that holds a part of the state has its name as its id."""

from __future__ import annotations

from itertools import chain
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from reticent.calibration.targets import TARGETS as KINDS
from reticent.dashboard.catalogue import (
    ASKED,
    ATTACKERS,
    CHOICES,
    HELP,
    OF_RUNS,
    OF_SAMPLERS,
    PARAMETERS,
    PLACES,
    RELEASED,
    TARGETS,
    Parameter,
)
from reticent.dashboard.figures import COMPARED
from reticent.dashboard.pieces import choice, graph, named, text_field, upload
from reticent.dashboard.state import DEFAULTS, SETTINGS
from reticent.kernel.adversaries import style_of
from reticent.kernel.samplers import SAMPLERS

SLIDER_STEPS = 400
CONTROLS = tuple(name for name, setting in SETTINGS.items() if setting.control)
"""Settings that a control of Dash holds."""
READS = {"ledger-file": "ledger", "policy-file": "policy", "certificates": "certificates"}
"""What is asked of a file that is chosen here; what is chosen on *Open* is opened."""

_LIVE: dict[str, Any] = {"aria-live": "polite"}


def page(local: bool) -> html.Div:
    """The whole page; paths can be opened only where the server is ``local``."""
    main = [html.P(id="asked"), _message("message"), _explore(), _calibrate(), _compare(), _open(local), _take_away()]
    return html.Div(
        [
            dcc.Store(id="shared"),
            dcc.Store(id="facts", data=_facts()),
            _header(),
            _side_by_side(
                html.Main(main, id="main", tabIndex=-1),
                html.Aside(_settings(), id="settings", tabIndex=-1, **named("Settings")),
                look="columns",
            ),
        ],
        id="page",
    )


def connect(app: Dash) -> None:
    """Tie the controls to the page's script, which asks for everything else."""
    values, clicks = [(name, "value") for name in CONTROLS], [(name, "n_clicks") for name in ("undo", "pin", "swap")]
    heard = [Input(*place) for place in (*values, *clicks, ("shared", "data"))]
    keep, chosen = (ClientsideFunction("reticent", name) for name in ("keep", "chosen"))
    app.clientside_callback(keep, [Output(*place) for place in values], heard, State("facts", "data"))
    for name in ("upload", *READS):
        app.clientside_callback(chosen, Input(name, "contents"), State(name, "filename"), prevent_initial_call=True)


def _side_by_side(*pieces: Any, look: str = "row") -> html.Div:
    return html.Div(list(pieces), className=look)


def _panel(name: str, *pieces: Any) -> html.Section:
    """What the choice at the top of the page shows, or hides."""
    return html.Section(list(pieces), className=f"panel p-{name}", **named(name.capitalize()))


def _group(title: str, *pieces: Any, **more: Any) -> html.Section:
    """Settings under a title."""
    return html.Section([html.H2(title), *pieces], **more)


def _answer(name: str) -> html.H1:
    """The sentence that a panel answers with."""
    return html.H1(id=name, className="answer", **_LIVE)


def _message(name: str) -> html.P:
    """The line that says what is wrong."""
    return html.P(id=name, className="message", role="alert")


def _table(name: str) -> html.Div:
    """The place of a table, which is moved by keys where it is too wide."""
    return html.Div(id=name, className="scroll", tabIndex=0)


def _header() -> html.Header:
    closed: dict[str, Any] = {"aria-expanded": "false"}
    return html.Header(
        [
            html.A("Skip to the answer", href="#main", className="skip"),
            html.Div([html.Span("reticent", className="word"), html.Span("privacy risk", className="sub")]),
            choice("panel", "Panel", "tabs"),
            _side_by_side(
                html.Button("Settings", id="to-settings", className="of-drawer", **closed),
                html.Button("Undo", id="undo", title="Undo the last change (Ctrl+Z)"),
                html.Button("Copy link", id="link", title="Copy an address that holds all settings"),
                look="buttons",
            ),
        ]
    )


def _settings() -> list[Any]:
    used = {name for each in RELEASED.values() for name in each.parameters}
    of_mechanisms = [name for name in PARAMETERS if name in used]
    of_runs = [PARAMETERS[name] for name in PARAMETERS if any(name in own for own in OF_RUNS.values())]
    of_attackers = [
        html.Div(_asked(name), className="for-attacker", id=f"for-{name}")
        for name in dict.fromkeys(p.name for a in ATTACKERS.values() for p in a.fields)
        if name not in used  # a field of the release serves the attacker too
    ]
    nothing: dict[str, Any] = {"data-settings": "policy="}
    return [
        html.Button("Close the settings", id="close-settings", className="of-drawer"),
        _group("Who attacks", _chips(), *of_attackers),
        _group(
            "What was released",
            choice("mechanism", "Mechanism", "segments"),
            html.Div(choice("by", "Sampling", "segments"), className="for-dpsgd"),
            html.Div(upload("ledger-file", "Ledger, certificate or DpEvent (JSON)"), className="for-ledger"),
            _message("ledger-said"),
            *[_field(PARAMETERS[name]) for name in of_mechanisms if not PARAMETERS[name].folded],
            html.P(id="derived", className="derived"),
            html.Div(choice("sampler", "Sampler", "options", legend="small-label"), className="for-dpsgd"),
            html.Details(
                [
                    html.Summary("More settings"),
                    *[_field(PARAMETERS[name]) for name in of_mechanisms if PARAMETERS[name].folded],
                    choice("selection", "Tuned: the best of several runs", "options", legend="small-label"),
                    *map(_field, of_runs),
                    *map(_asked, ASKED),
                ],
                id="more",
            ),
        ),
        _group(
            "What is allowed",
            upload("policy-file", "A policy of reticent gate (YAML)"),
            _message("policy-said"),
            html.Button("Without a policy", id="no-policy", **nothing),
        ),
        _shelf(),
    ]


def _shelf() -> html.Section:
    """Named settings; the page's script keeps them in the browser."""
    name = dcc.Input(id="shelf-name", type="text", maxLength=40, placeholder="name")
    return _group(
        "Shelf",
        html.Label("Keep these settings as", htmlFor="shelf-name", className="small-label"),
        _side_by_side(name, html.Button("Keep", id="shelf-keep"), look="row keep"),
        html.Ul(id="shelf", className="shelf"),
        id="shelves",
    )


def _field(p: Parameter) -> html.Div:
    """The place of a field and its slider, which the page's script makes; both carry the label."""
    uses = [f"in-{kind}" for kind, each in RELEASED.items() if p.name in each.parameters or p.name in ASKED]
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


def _asked(name: str) -> Any:
    """A choice where few words can be said, else a field."""
    if name in CHOICES:
        help = html.Span(HELP[name], className="hint")
        return choice(name, [name.replace("_", " ").capitalize(), " ", help], "options", legend="small-label")
    return _field(PARAMETERS[name])


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
    asking = [(who, p.name) for who, each in ATTACKERS.items() for p in each.fields]
    rules += [f"body[data-attackers~={who}] #for-{name}{{display:block}}" for who, name in asking]
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
    return _panel(
        "explore",
        html.P(id="number", className="number"),
        _answer("headline"),
        html.P(id="accuracy", className="quiet"),
        html.P(id="verdict", **_LIVE),
        choice("view", "View", "segments views"),
        html.Div(graph("figure", "Risk curves"), id="picture"),
        html.Div(id="remarks", className="quiet"),
        _table("table"),
        html.Div(id="policy"),
        html.Div(id="cards", className="cards"),
        html.Div(id="left-out", className="quiet"),
        html.Details([html.Summary("Where these numbers come from"), html.Div(id="conditions")], id="why"),
    )


def _calibrate() -> html.Section:
    asked = _side_by_side(
        text_field("goal", "at most", DEFAULTS["goal"]),
        text_field("place", "at", ""),
        html.Span("by changing", className="quiet"),
        choice("unknown", "What is searched", "segments"),
    )
    budget = [
        html.H2("The budget in epochs"),
        html.P(id="planned", **_LIVE),
        graph("plan-figure", "The risk over epochs, with the target and what is planned"),
    ]
    return _panel(
        "calibrate",
        _side_by_side(choice("target", "Target", "segments"), asked, look="question"),
        _answer("calibrated"),
        graph("calibrate-figure", "Worst-case curves at what each attacker would allow, with the target"),
        html.P("Each line is the worst case at what that attacker would allow.", className="quiet"),
        _table("calibrate-table"),
        html.Div(id="calibrate-left-out", className="quiet"),
        html.Div(budget, id="plan"),
    )


def _compare() -> html.Section:
    curves = graph("compare-figure", "Worst-case curves of A and B")
    advantages = graph("map", "Worst-case advantage over sample rate and noise, with A and B marked")
    return _panel(
        "compare",
        _side_by_side(
            html.Button("Keep these settings as A", id="pin", className="primary"),
            html.Button("Swap A and B", id="swap"),
            html.Span("B is what the settings say now.", className="quiet"),
            look="row buttons",
        ),
        _answer("compared"),
        _table("compare-table"),
        _side_by_side(
            html.Figure([curves, html.Figcaption("Errors of the worst case.")]),
            html.Figure([advantages, html.Figcaption(id="map-caption")]),
            look="two",
        ),
        html.H2("Two certificates"),
        upload("certificates", "two at once: JSON or pages; every changed fact, number and sentence", many=True),
        _table("certificates-compared"),
    )


def _open(local: bool) -> html.Section:
    path = _side_by_side(
        html.Label("Path on this machine", htmlFor="path"),
        _side_by_side(dcc.Input(id="path", type="text", maxLength=1000), html.Button("Open", id="open-path")),
        look="path" if local else "unseen",
    )
    return _panel(
        "open",
        html.H1("Open a run, a ledger, a certificate or an audit", className="answer"),
        html.P(
            "A run folder, ledger.json, certificate.json or its page, the JSON of an audit, a score file "
            "(.npz, .csv), or the folder of an audit that is running. Files stay on the machine that serves "
            "this page.",
            className="quiet",
        ),
        _side_by_side(path, upload("upload"), look="open"),
        html.Div(id="opened"),
        graph("open-figure", "What the file says, as curves"),
    )


def _take_away() -> html.Section:
    buttons = [
        html.Button(label, id=name, title=what, className="" if name in ("png", "svg") else "of-numbers")
        for label, name, what in (
            ("Copy as Python", "copy-python", "A program that asks the same"),
            ("Copy as command", "copy-command", "A line for a shell that asks the same"),
            ("PNG", "png", "Download the picture as PNG"),
            ("SVG", "svg", "Download the picture as SVG"),
            ("CSV", "csv", "Download the shown curves as CSV"),
            ("Certificate", "certificate", "Download a certificate of these settings"),
            ("Page to send", "sheet", "Download these numbers as one page"),
        )
    ]
    code = [html.Pre(id=name, tabIndex=0, **named(name.capitalize())) for name in ("python", "command")]
    return html.Section(
        [
            _side_by_side(*buttons, html.Span(id="told", role="status"), look="buttons"),
            html.Details([html.Summary("The same numbers without this page"), *code]),
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
    folded = [p.name for p in PARAMETERS.values() if p.folded]
    return {
        "fields": fields,
        "controls": CONTROLS,
        "sliders": tuple(PARAMETERS),
        "defaults": DEFAULTS,
        "pinned": [name for name, setting in SETTINGS.items() if setting.compared],
        "reads": READS,
        "folded": [*folded, "selection", *(name for name in CHOICES if name in ASKED)],
        "goals": {name: goal for name, (_, goal, _) in TARGETS.items()},
        "places": PLACES,
        "at": {name: " and ".join(place for place, _ in KINDS[name].places).replace("_", " ") for name in PLACES},
    }
