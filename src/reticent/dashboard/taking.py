"""What people take away, and the files that change the settings: a ledger as what was released, and a policy."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from reticent.dashboard import opening
from reticent.dashboard.asked import Asked, Shown, answer_to
from reticent.dashboard.judging import policy_text
from reticent.dashboard.released import as_text
from reticent.dashboard.sheet import sheet as sheet_of
from reticent.dashboard.takeaway import certificate_page, curves_csv
from reticent.dashboard.turns import Turns


def ledger(turns: Turns, asked: Asked) -> Shown:
    """A file as what was released: the settings that say so."""
    release = opening.release(opening.source_of(asked))
    return Shown({"ledger-said": ""}, address=urlencode({"mechanism": "ledger", "ledger": as_text(release)}))


def policy(turns: Turns, asked: Asked) -> Shown:
    """A policy as the settings that lay it over everything."""
    source = opening.source_of(asked)
    return Shown({"policy-said": ""}, address=urlencode({"policy": policy_text(opening.text_of(source), source.name)}))


def csv(turns: Turns, asked: Asked) -> Shown:
    """The shown curves as a file."""
    view = asked.settings.picture
    return _written(turns, asked, f"reticent-{view}.csv", lambda: curves_csv(answer_to(asked.settings), view))


def certificate(turns: Turns, asked: Asked) -> Shown:
    """The certificate of these settings as its page, which anybody can verify."""
    return _written(turns, asked, "reticent-certificate.html", lambda: certificate_page(asked.settings))


def sheet(turns: Turns, asked: Asked) -> Shown:
    """The panel that explores as a page of its own."""
    return _written(turns, asked, "reticent-plan.html", lambda: sheet_of(asked.settings, answer_to(asked.settings)))


def _written(turns: Turns, asked: Asked, name: str, work: Callable[[], str]) -> Shown:
    with turns.turn(asked.page, asked.turn):
        return Shown({"told": f"{name} written"}, file=(name, work()))
