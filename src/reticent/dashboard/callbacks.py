"""What happens when a setting changes on the panels that search, compare and open, and what is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from dash import Dash, ctx, no_update
from dash.dcc.express import send_string

from reticent.adversaries import Adversary, Assessment, WorstCase
from reticent.dashboard import calibrating, comparing, opening, words
from reticent.dashboard.asked import FAILURES, Asked, answer_to
from reticent.dashboard.catalogue import UNKNOWNS
from reticent.dashboard.figures import blank, empty
from reticent.dashboard.layout import ASKING, CONTROLS
from reticent.dashboard.pieces import tied
from reticent.dashboard.readings import assessed, record, summary
from reticent.dashboard.released import as_text
from reticent.dashboard.state import (
    adversaries_of,
    mechanism_of,
    relation_of,
    target_of,
    unknown_of,
)
from reticent.dashboard.takeaway import (
    calibration_command,
    calibration_python,
    certificate_page,
    curves_csv,
)
from reticent.dashboard.taking import Taking, said
from reticent.dashboard.turns import SupersededError, Turns
from reticent.errors import ReticentError
from reticent.mechanisms import Neighbouring
from reticent.mechanisms.short import in_short
from reticent.text import digits

_CALIBRATED = (
    *("calibrated.children", "calibrate-message.children", "calibrate-figure.figure", "calibrate-table.children"),
    *("calibrate-left-out.children", "calibrate-python.children", "calibrate-command.children"),
)
_COMPARED = (
    *("compared.children", "compare-message.children", "compare-figure.figure", "compare-table.children"),
    *("map.figure", "map-caption.children"),
)
_OPENED = ("opened.children", "open-message.children", "open-figure.figure", "open-picture.className", "again.disabled")
_ANSWERED = "answered.data"


class Callbacks:
    """The callbacks of one server; they share the turns."""

    def __init__(self, turns: Turns, local: bool) -> None:
        self.turns, self.local = turns, local

    def connect(self, app: Dash) -> None:
        """Tie every callback to its controls."""
        self._in_the_browser(app)
        theme, state, file = "theme.data", "state.data", "download.data"
        first, asked = (*_CALIBRATED, "rest-calibrate.data", _ANSWERED), ("ask-calibrate.data", theme)
        tied(app, _numbered(self.calibrate), first, asked, again=[_ANSWERED])
        tied(app, self.calibrate_rest, _CALIBRATED, ["rest-calibrate.data"], [theme], again=_CALIBRATED)
        compared, asked = (*_COMPARED, _ANSWERED), ("ask-compare.data", theme)
        tied(app, _numbered(self.compare), compared, asked, again=[_ANSWERED])
        wants = "open-path.n_clicks", "path.n_submit", "upload.contents", "again.n_intervals"
        tied(app, self.open, _OPENED, wants, [theme, "path.value", "upload.filename", state])
        tied(app, self.csv, [file], ["csv.n_clicks"], [state])
        made = file, "certificate-said.children"
        tied(app, self.certificate, made, ["certificate.n_clicks"], [state], again=[file])
        read = "ledger-read.data", "ledger-said.children"
        tied(app, self.ledger, read, ["ledger-file.contents"], ["ledger-file.filename"])
        Taking(self.turns).connect(app)
        tied(app, self.derived, ["derived.children"], [state])

    @staticmethod
    def _in_the_browser(app: Dash) -> None:
        kept, asks = [f"{name}.value" for name in CONTROLS], [f"ask-{panel}.data" for panel in ASKING]
        clicks = [f"{name}.n_clicks" for name in ("undo", "pin", "swap")]
        written = *kept, "state.data", "undo.disabled", *asks
        heard = *kept, *clicks, "shared.data", "ledger-read.data"
        tied(app, "keep", written, heard, ["address.search", "facts.data"], at_once=True)
        tied(app, "arrived", [_ANSWERED], [_ANSWERED])
        tied(app, "theme", ["theme.data"], ["address.pathname"], at_once=True)
        picture = "calibrate-figure"
        tied(app, "dragged", ["goal.value"], [f"{picture}.relayoutData"], [f"{picture}.figure"], again=["goal.value"])

    def calibrate(self, sent: Any, theme: Any) -> tuple[Any, ...]:
        """What the worst case allows, and who comes next."""
        return self._guarded("calibrate", sent, theme, self._calibrate, _calibrate_failed)

    def _calibrate(self, asked: Asked) -> tuple[Any, ...]:
        who = adversaries_of(asked.settings)
        more = asked.sent() if len(who) > 1 else no_update
        return (*self._calibrated(asked, who[:1], waiting=tuple(w.name for w in who[1:])), more)

    def calibrate_rest(self, sent: Any, theme: Any) -> tuple[Any, ...]:
        """What each attacker allows."""
        return self._guarded(
            "calibrate",
            sent,
            theme,
            lambda asked: self._calibrated(asked, adversaries_of(asked.settings)),
            lambda theme, line: _calibrate_failed(theme, line)[:-1],
        )

    def _calibrated(self, asked: Asked, who: tuple[Adversary, ...], waiting: tuple[str, ...] = ()) -> tuple[Any, ...]:
        settings, target, what = asked.settings, target_of(asked.settings), UNKNOWNS[asked.settings["unknown"]][1]
        release, unknown, relation = mechanism_of(settings), unknown_of(settings), relation_of(settings)
        with self.turns.turn(asked.page, asked.turn):
            found = calibrating.search(release, unknown, target, who, relation)
            if not found.found and not waiting:
                raise ReticentError("; ".join(found.skipped.values()))
            figure = calibrating.calibration_figure(found, target, asked.theme)
            table = words.calibration_table(found, target, what, waiting)
        line, code = f"No value is known that keeps {words.goal(target)} for any attacker.", ("", "")
        if found.found:
            best = found.found[0]
            value = digits(best.value, 5, up=not best.unknown.risk_grows)
            line = f"{what.capitalize()} {value}: {words.goal(target)} for {_attacker_words(best.adversary)}."
            code = calibration_python(settings, found.found), calibration_command(settings, found.found)
        return line, "", figure, table, words.left_out(found.skipped), *code

    def compare(self, sent: Any, theme: Any) -> tuple[Any, ...]:
        """Two settings, and where they lie on the map."""
        return self._guarded("compare", sent, theme, self._compare, _compare_failed)

    def _compare(self, asked: Asked) -> tuple[Any, ...]:
        b = asked.settings
        a = b.pinned() or b
        relation = relation_of(b) or Neighbouring.ADD_REMOVE
        mechanisms = {"A": mechanism_of(a), "B": mechanism_of(b)}
        with self.turns.turn(asked.page, asked.turn):
            worst = {name: assessed(WorstCase(), mechanism, relation) for name, mechanism in mechanisms.items()}
            surface = comparing.map_figure(mechanisms, relation, asked.theme, comparing.limit_of(b))
            table = words.comparison_table(record(worst["A"]), record(worst["B"]))
        caption = "The map is known for DP-SGD with Poisson sampling at a rate below 1."
        if surface:
            steps = mechanisms["B"].steps
            gaps = "" if surface["data"][0]["zsmooth"] else "; empty where in doubt"
            caption = f"Worst-case advantage at {steps} steps, {relation.value} (estimate{gaps}); a click sets both"
        return (
            _compared(worst, pinned=bool(b["pinned"])),
            "",
            comparing.overlay(worst, b.picture, asked.theme),
            table,
            surface or blank(asked.theme),
            caption,
        )

    def open(
        self, clicks: Any, submitted: Any, contents: Any, again: Any, theme: Any, path: Any, name: Any, sent: Any
    ) -> tuple[Any, ...]:
        """An untrusted file, as curves and verdicts."""
        try:
            uploaded = ctx.triggered_id == "upload"
            source = opening.source_of(contents if uploaded else None, name, path, local=self.local)
            if source is None:
                return no_update, "", no_update, no_update, True
            asked = Asked.of(sent, theme)
            with self.turns.turn(asked.page + "/open", asked.turn):
                found = opening.opened(source, asked.settings, asked.theme)
        except SupersededError:
            return (no_update,) * 5
        except (OSError, *FAILURES) as error:
            return [], words.one_line(error), no_update, "unseen", True
        return found.page, "", found.figure, "" if found.figure["data"] else "unseen", not found.running

    @said
    def ledger(self, contents: Any, name: Any) -> tuple[Any, str]:
        """A file as what was released: the address that sets it, or one line that says why not."""
        source = opening.source_of(contents, name, None, local=False)
        if source is None:
            return no_update, ""
        return urlencode({"mechanism": "ledger", "ledger": as_text(opening.release(source))}), ""

    def derived(self, sent: Any) -> str:
        """What follows from records, batch and epochs, or what the file says; nothing where the rate is set itself."""
        try:
            settings = Asked.of(sent, None).settings
            if settings["mechanism"] == "ledger":
                return in_short(mechanism_of(settings))
            if settings["mechanism"] != "dpsgd" or settings["by"] == "rate":
                return ""
            run = mechanism_of(settings).base
            return f"sample rate {run.sample_rate:.4g}, {run.steps:,} steps"
        except FAILURES:
            return ""  # the panel says what is wrong

    @said
    def certificate(self, clicks: Any, sent: Any) -> tuple[Any, str]:
        """The certificate of these settings as its page, which anybody can verify."""
        asked = Asked.of(sent, None)
        with self.turns.turn(asked.page, asked.turn):
            page = certificate_page(asked.settings)
        return send_string(page, "reticent-certificate.html"), "certificate written"

    def csv(self, clicks: Any, sent: Any) -> Any:
        """The shown curves as a file."""
        try:
            asked = Asked.of(sent, None)
            with self.turns.turn(asked.page, asked.turn):
                view = asked.settings.picture
                return send_string(curves_csv(answer_to(asked.settings), view), f"reticent-{view}.csv")
        except FAILURES:
            return no_update

    def _guarded(
        self,
        panel: str,
        sent: Any,
        theme: Any,
        work: Callable[[Asked], tuple[Any, ...]],
        failed: Callable[[str, str], tuple[Any, ...]],
    ) -> tuple[Any, ...]:
        """Only the panel that is seen is computed; whatever goes wrong is one line on the page."""
        seen = "light"
        nothing = (no_update,) * len(failed(seen, ""))
        try:
            asked = Asked.of(sent, theme)
            seen = asked.theme
            return work(asked) if asked.settings["panel"] == panel else nothing
        except SupersededError:
            return nothing
        except FAILURES as error:
            return failed(seen, words.one_line(error))


def _numbered(answer: Callable[[Any, Any], tuple[Any, ...]]) -> Callable[[Any, Any], tuple[Any, ...]]:
    """An answer with the number of its question; nothing where it is none."""

    def numbered(sent: Any, theme: Any) -> tuple[Any, ...]:
        found = answer(sent, theme)
        known = found[0] is not no_update and isinstance(sent, dict)
        return (*found, sent.get("turn") if known else no_update)

    return numbered


def _calibrate_failed(theme: str, line: str) -> tuple[Any, ...]:
    return "No answer for this target", line, empty("curves", theme), [], [], "", "", no_update


def _compare_failed(theme: str, line: str) -> tuple[Any, ...]:
    return "No comparison of these settings", line, empty("curves", theme), [], blank(theme), ""


def _compared(worst: dict[str, Assessment], *, pinned: bool) -> str:
    if not pinned:
        return "Keep the settings as A, then change them: B is what they say now."
    a, b = (summary(worst[name]).advantage.value or 0.0 for name in "AB")
    if a == b:
        return "A and B are alike for the worst case."
    more, less, high, low = ("B", "A", b, a) if b > a else ("A", "B", a, b)
    most, other = digits(high, up=True), digits(low, up=True)
    return f"{more} reveals more than {less} to any attacker: advantage up to {most}, not {other}."


def _attacker_words(who: Adversary) -> str:
    return "any attacker" if isinstance(who, WorstCase) else f"the {who.name} attacker"
