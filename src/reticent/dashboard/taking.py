"""What happens with a policy, two certificates, the budget of a training, and a page to send to somebody."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from dash import Dash, no_update
from dash.dcc.express import send_string

from reticent.dashboard import opening, words
from reticent.dashboard.asked import FAILURES, Asked, answer_to
from reticent.dashboard.figures import blank
from reticent.dashboard.judging import policy_text
from reticent.dashboard.pieces import tied
from reticent.dashboard.planning import budget_figure, budget_of
from reticent.dashboard.sheet import sheet
from reticent.dashboard.state import mechanism_of, relation_of, target_of
from reticent.dashboard.turns import SupersededError, Turns
from reticent.dashboard.two_certificates import compared
from reticent.errors import ArtifactError


def said(work: Callable[..., tuple[Any, str]]) -> Callable[..., tuple[Any, str]]:
    """A callback that answers with something and a line; whatever goes wrong is that line."""

    @wraps(work)
    def answered(*given: Any) -> tuple[Any, str]:
        try:
            return work(*given)
        except SupersededError:
            return no_update, "the settings changed meanwhile: ask again"
        except FAILURES as error:
            return no_update, words.one_line(error)

    return answered


class Taking:
    """The callbacks of one server; they share the turns with all others."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def connect(self, app: Dash) -> None:
        """Tie every callback to its controls."""
        state, file, address = "state.data", "download.data", "ledger-read.data"
        tied(app, self.sheet, [file, "sheet-said.children"], ["sheet.n_clicks"], [state], again=[file])
        read = address, "policy-said.children"
        tied(app, self.policy, read, ["policy-file.contents"], ["policy-file.filename"], again=[address])
        pair, shown = ["certificates.contents"], ["certificates-compared.children"]
        tied(app, self.certificates, shown, pair, ["certificates.filename"])
        planned = "planned.children", "plan-figure.figure", "plan.className"
        tied(app, self.plan, planned, ["calibrated.children", "theme.data"], [state])
        tied(app, "placed", ["placed.data"], ["map.clickData"])

    @said
    def sheet(self, clicks: Any, sent: Any) -> tuple[Any, str]:
        """The panel that explores as a page of its own."""
        asked = Asked.of(sent, None)
        with self.turns.turn(asked.page, asked.turn):
            page = sheet(asked.settings, answer_to(asked.settings))
        return send_string(page, "reticent-plan.html"), "page written"

    @said
    def policy(self, contents: Any, name: Any) -> tuple[Any, str]:
        """A policy as the address that lays it over everything, or one line that says why not."""
        return urlencode({"policy": policy_text(*_text(contents, name))}), ""

    def certificates(self, contents: Any, names: Any) -> list[Any] | str:
        """What differs between two certificates."""
        try:
            if not (isinstance(contents, list) and isinstance(names, list) and len(contents) == len(names) == 2):
                raise ArtifactError("choose two certificates at once")
            return compared(*(_text(content, name) for content, name in zip(contents, names, strict=True)))
        except FAILURES as error:
            return words.one_line(error)

    def plan(self, answered: Any, theme: Any, sent: Any) -> tuple[Any, ...]:
        """How many epochs the target still allows; after the answer of the panel, which must not wait for it."""
        hidden = "", blank("light"), "unseen"
        try:
            asked = Asked.of(sent, theme)
            release = mechanism_of(asked.settings)
            if asked.settings["panel"] != "calibrate" or release.training is None:
                return hidden
            target, relation = target_of(asked.settings), relation_of(asked.settings)
            with self.turns.turn(asked.page, asked.turn):
                budget = budget_of(release, target, relation)
                figure = budget_figure(release, budget, target, relation, asked.theme)
            return budget.sentence(words.goal(target)), figure, ""
        except SupersededError:
            return (no_update,) * 3
        except FAILURES:
            return hidden  # the panel says what is wrong


def _text(contents: Any, name: Any) -> tuple[str, str]:
    """A chosen file as text, and its name."""
    source = opening.source_of(contents, name, None, local=False)
    if source is None:
        raise ArtifactError("no file was chosen")
    return opening.text_of(source), source.name
