"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.cli._app import argument, option
from reticent.cli._asking import Do, asking, made, showing
from reticent.cli._options import (
    adversaries_of,
    first_line,
    mechanism_given,
    mechanism_options,
    per_mechanism,
    runs_typed,
    say_if_unused,
    selection_options,
    told_apart,
    who_attacks,
)
from reticent.cli._tables import print_risk, say, say_warnings
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Mechanism
from reticent.verbs.grids import AssessEach, Grid
from reticent.verbs.request import Request
from reticent.verbs.risks import Assess, Assessments

SHOWN_BY = (option("full", bool, "Every number, note and condition."),)
_USUAL = ["worst-case"]
_SEVERAL = "Runs, ledgers, certificates, schedules or events."
_RUNS = argument(
    "paths",
    Path,
    "RUN...",
    "The folder of a run, a ledger, a certificate, a DpEvent, or a mechanism as risk --json shows it; in JSON.",
    many=True,
)


def _of_files() -> click.Command:
    def ask(given: dict[str, Any]) -> Request:
        who = adversaries_of(given["adversary"] or _USUAL, given)
        said = {"adversary": who, "selection": runs_typed(given)}
        if len(given["paths"]) == 1:
            return made(Assess, given, release=given["paths"][0], **said)
        return made(AssessEach, given, releases=given["paths"], **said)

    def do(request: Request, given: Mapping[str, Any], json: bool) -> None:
        ASKED[type(request)](request, given, json)

    more = (_RUNS, *selection_options(), *who_attacks())
    return asking("ledger", Assess, do, *more, ask=ask, after=SHOWN_BY, help=_SEVERAL)


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own = mechanism_options(kind)

    def ask(given: dict[str, Any]) -> Assess:
        names = given["adversary"] or _USUAL
        release, attackers = told_apart(kind, names, given)
        who = adversaries_of(names, attackers)
        return made(Assess, given, release=mechanism_given(kind, release), adversary=who)

    more = (*own, *who_attacks(own))
    return asking(kind.name, Assess, ASKED[Assess], *more, ask=ask, after=SHOWN_BY, help=first_line(kind))


def _each(request: AssessEach, given: Mapping[str, Any], json: bool) -> None:
    """Each run by itself; exit code 2 if one could not be read or answered, after all others."""
    found = showing(_show_each)(request, given, json)
    if found.left_out:
        many = len(request.releases)
        raise ArtifactError(f"{len(found.left_out)} of {many} runs could not be answered: see left out")


def _show_each(found: Grid, given: Mapping[str, Any]) -> None:
    click.echo(str(found))
    say("What the numbers rest on:" if given["full"] else "--full lists what the numbers rest on.")
    say(*(found.conditions() if given["full"] else ()), indent=2)


def _show(found: Assessments, given: Mapping[str, Any]) -> None:
    print_risk(found.document, found.request.asks_for, full=given["full"])
    say_warnings(found.request.release.warnings)
    say_if_unused(given.get("dimension"), [one.name for one in found.request.adversary.each])


ASKED: dict[type[Request], Do] = {Assess: showing(_show), AssessEach: _each}
_LEAVES = {"ledger": (_SEVERAL, _of_files)}
risk = per_mechanism("risk", "Risk of a release under each attacker.", _of_kind, _LEAVES, paths=True)
