"""``reticent train`` with a section ``selection``: the best of several runs, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.cli._plan import duration, in_file, risk_of
from reticent.cli._tables import print_json, print_risk, say
from reticent.cli.progress import waiting
from reticent.kernel.errors import ArtifactError, NumericalError
from reticent.kernel.text import digits
from reticent.mechanisms.codec import mechanism_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from reticent.training.selecting import Plan

SCHEMA = "reticent.selection/1"
_NOBODY = "How many runs there were is secret: keep logs and times of this process to yourself."


def print_planned(config: Path, plan: Plan, *, json: bool) -> None:
    """Say what would be drawn and what it would reveal; nothing is drawn, trained or written."""
    from reticent.training.run import cost_of
    from reticent.training.setup import make_settings

    first = plan.cells[0].config
    with in_file(config):
        seconds = cost_of(first, plan.dataset, make_settings(first, len(plan.dataset.train))).seconds
    document = risk_of(plan.release)
    if json:
        print_json(_document(plan) | {"seconds_of_one_run": seconds, "risk": _plain(document)})
        return
    say(_law(plan), indent=2)
    say(f"one run of the first setting takes about {duration(seconds)} on this machine", indent=2)
    print_risk(document, full=True)
    say("dry run: nothing was drawn, trained or written")


def run_selection(config: Path, plan: Plan, out: Path, sign: Ed25519PrivateKey | None, *, json: bool) -> None:
    """Train, write the best, and say what it reveals; nothing of the other runs is shown."""
    from reticent.training.selecting import select

    with in_file(config), waiting("private selection:") as status:
        shown: Callable[[], None] = (lambda: None) if status is None else (lambda: status("training"))
        try:
            found = select(plan, out, sign=sign, working=shown)
        except NumericalError as error:
            raise ArtifactError(f"{config}: {error}") from None
    if json:
        run = None if found.run is None else str(found.run.path)
        released = {"released": run is not None, "run": run, "score": found.score}
        print_json(_document(plan) | released | {"risk": _plain(risk_of(plan.release))})
        return
    if found.run is None:
        say("no run was drawn, as this law allows: nothing is released, and nothing was written")
        return
    of = "training records, with noise"
    if plan.asked.score != "train":
        of = f"{len(plan.dataset.test)} test records ({found.run.ledger.utility})"
    say(f"{found.run.path}: the best of several runs; right answers on {of}: {found.score:.6g}", indent=2)
    say(_law(plan), indent=2)
    print_risk(risk_of(plan.release), full=False)
    say(_NOBODY)


def _law(plan: Plan) -> str:
    runs, count = plan.release.runs, len(plan.cells)
    listed = "one setting" if count == 1 else f"a list of {count} settings"
    return f"each run draws from {listed}; number of runs: {runs.name}, {digits(runs.mean, 6, up=True)} on average"


def _document(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "settings": len(plan.cells),
        "score_on": plan.asked.score,
        "mechanism": mechanism_record(plan.release),
    }


def _plain(document: Any) -> Any:
    return document.model_dump(mode="json", by_alias=True)
