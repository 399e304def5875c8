"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import option
from reticent.cli._ledger import say_warnings
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
from reticent.cli._paths import RUNS, SEVERAL, OfPaths
from reticent.errors import ArtifactError
from reticent.mechanisms import Mechanism

if TYPE_CHECKING:
    from reticent.cli._asking import Do
    from reticent.verbs.grids import AssessEach, Grid
    from reticent.verbs.request import Request
    from reticent.verbs.risks import Assessments

SHOWN_BY = (option("full", bool, "Every number, note and condition."),)
_USUAL = ["worst-case"]


def _of_files() -> click.Command:
    from reticent.cli._asking import asking, options_of, typed_for
    from reticent.verbs.grids import AssessEach
    from reticent.verbs.risks import Assess

    def ask(given: dict[str, Any]) -> Request:
        who = adversaries_of(given["adversary"] or _USUAL, given)
        said = {"adversary": who, "selection": runs_typed(given), **typed_for(Assess, given)}
        if len(given["paths"]) == 1:
            return Assess.of(release=given["paths"][0], **said)
        return AssessEach.of(releases=given["paths"], **said)

    params = (RUNS, *selection_options(), *who_attacks(), *options_of(Assess), *SHOWN_BY)
    return asking("ledger", ask, _do, *params, help=SEVERAL)


def _of_kind(kind: type[Mechanism]) -> click.Command:
    from reticent.cli._asking import asking, options_of, showing, typed_for
    from reticent.verbs.risks import Assess

    own = mechanism_options(kind)

    def ask(given: dict[str, Any]) -> Assess:
        names = given["adversary"] or _USUAL
        release, attackers = told_apart(kind, names, given)
        who = adversaries_of(names, attackers)
        return Assess.of(release=mechanism_given(kind, release), adversary=who, **typed_for(Assess, given))

    return asking(
        kind.name, ask, showing(_show), *own, *who_attacks(own), *options_of(Assess), *SHOWN_BY, help=first_line(kind)
    )


risk = OfPaths(
    per_mechanism("risk", "Risk of a release under each attacker.", _of_kind, {"ledger": (SEVERAL, _of_files)})
)


def asked() -> dict[type[Request], Do]:
    """The requests that the verb takes, and what is done with them."""
    from reticent.cli._asking import showing
    from reticent.verbs.grids import AssessEach
    from reticent.verbs.risks import Assess

    return {Assess: showing(_show), AssessEach: _each}


def _do(request: Request, given: Mapping[str, Any], json: bool) -> None:
    asked()[type(request)](request, given, json)


def _each(request: AssessEach, given: Mapping[str, Any], json: bool) -> None:
    """Each run by itself; exit code 2 if one could not be read or answered, after all others."""
    from reticent.cli._asking import showing

    found = showing(_show_each)(request, given, json)
    if found.left_out:
        many = len(request.releases)
        raise ArtifactError(f"{len(found.left_out)} of {many} runs could not be answered: see left out")


def _show_each(found: Grid, given: Mapping[str, Any]) -> None:
    from reticent.cli._tables import say

    click.echo(str(found))
    say("What the numbers rest on:" if given["full"] else "--full lists what the numbers rest on.")
    say(*(found.conditions() if given["full"] else ()), indent=2)


def _show(found: Assessments, given: Mapping[str, Any]) -> None:
    from reticent.cli._tables import print_risk

    print_risk(found.document, found.request.asks_for, full=given["full"])
    say_warnings(found.request.release.warnings)
    say_if_unused(given.get("dimension"), [one.name for one in found.request.adversary.each])
