"""Pieces of the page that every panel is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from reticent.dashboard.state import SETTINGS
from reticent.verbs.table import Table, shown

_LONGEST = 600
"""Letters of a cell."""
_NUMBER: dict[str, Any] = {"type": "text", "inputMode": "decimal", "debounce": 0.5, "maxLength": 40}


def choice(name: str, label: Any, look: str, *, legend: str = "unseen") -> html.Fieldset:
    """One of several; the label is for screen readers unless the legend has another class."""
    chosen = dcc.RadioItems(
        [{"label": text, "value": key} for key, text in SETTINGS[name].choices.items()],
        SETTINGS[name].start,
        id=name,
        inline=True,
    )
    return html.Fieldset([html.Legend(label, className=legend), chosen], className=look)


def text_field(name: str, label: str, value: str) -> html.Div:
    """A field with its label beside it."""
    field = dcc.Input(id=name, **_NUMBER, value=value)
    return html.Div(
        [html.Label(label, htmlFor=name, id=f"{name}-label"), field], className="inline-field", id=f"box-{name}"
    )


def upload(name: str, what: str = "", *, many: bool = False) -> dcc.Upload:
    """Where a file is chosen or dropped."""
    small = [html.Small(what)] if what else []
    asks = ("Choose files", " or drop them here") if many else ("Choose a file", " or drop it here")
    shown = html.Div([html.Strong(asks[0]), asks[1], *small], className="drop")
    return dcc.Upload(shown, id=name, max_size=8 << 20, multiple=many)


def graph(name: str, label: str) -> html.Div:
    """The place of a picture, with what a screen reader calls it."""
    return html.Div(html.Div(id=name, className="graph"), role="img", className="frame", **named(label))


def table(titles: Sequence[str], rows: Sequence[tuple[Any, Sequence[html.Td]]]) -> html.Table:
    """Rows under a head, each what it is about and its cells."""
    head = html.Tr([html.Th(title, scope="col") for title in titles])
    body = [html.Tr([html.Th(about, scope="row"), *cells]) for about, cells in rows]
    return html.Table([html.Thead(head), html.Tbody(body)])


def answer_table(found: Table) -> html.Table:
    """The table that a verb answers with, as it prints it."""
    body = []
    for row in found.rows():
        first, *rest = zip(row, found.ways(row), strict=True)
        looks = ["n" if isinstance(cell, float) else "" for cell, _ in rest]
        cells = [html.Td(shown(*cell, _LONGEST), className=look) for cell, look in zip(rest, looks, strict=True)]
        body.append((shown(*first, _LONGEST), cells))
    return table(found.columns(), body)


def named(label: str) -> dict[str, Any]:
    """What a screen reader calls it."""
    return {"aria-label": label}
