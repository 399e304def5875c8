"""What people take away as a file, and the files that change the settings: a ledger as what was released, a policy."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from csv import writer
from urllib.parse import urlencode

from reticent.certificates.page.page import paged, render_html
from reticent.dashboard import opening
from reticent.dashboard.asked import Asked, Shown, answer_to
from reticent.dashboard.calibrating import answer
from reticent.dashboard.judging import policy_text
from reticent.dashboard.readings import points
from reticent.dashboard.requests import as_text, calibrate_of, certify_of
from reticent.dashboard.sheet import sheet as sheet_of
from reticent.dashboard.state import State
from reticent.dashboard.turns import Turns
from reticent.kernel.adversaries import Assessment
from reticent.kernel.stopping import checkpoint

_AXES = {
    "curves": ("false_positive_rate", "false_negative_rate"),
    "roc": ("false_positive_rate", "true_positive_rate"),
    "profile": ("epsilon", "delta"),
    "guesses": ("prior", "right_guesses"),
}


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


def certificate_page(state: State) -> str:
    """The page of a certificate of what the panel shows, settings or the answer of a search."""
    searched = answer(calibrate_of(state)[0]).mechanism if state["panel"] == "calibrate" else None
    made = certify_of(state, searched).answer(lambda _: checkpoint())
    return render_html(paged(made.certificate))


def curves_csv(assessments: Sequence[Assessment], view: str) -> str:
    """The shown curves: one row for each point; empty ends where nothing is enclosed."""
    text = io.StringIO()
    rows = writer(text, lineterminator="\n")
    rows.writerow(["attacker", "neighbouring", "claim", *_AXES[view], "enclosed_from", "enclosed_to"])
    for one in assessments:
        read = points(one, view)
        head = [one.adversary.name, one.neighbouring.value, one.claim.value]
        columns = [read.x, read.claimed, *(end for end in (read.least, read.most) if end is not None)]
        for row in zip(*columns, strict=True):
            numbers = [repr(float(x)) for x in row]
            rows.writerow([*head, *numbers, *[""] * (4 - len(numbers))])
    return text.getvalue()
