"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import option
from reticent.cli._ledger import LEAF, LEDGER, say_warnings
from reticent.cli._options import (
    adversaries_of,
    first_line,
    mechanism_given,
    mechanism_options,
    per_mechanism,
    say_if_unused,
    selected,
    selection_options,
    told_apart,
    who_attacks,
)
from reticent.mechanisms import Mechanism

if TYPE_CHECKING:
    from reticent.cli._asking import Do
    from reticent.verbs.request import Request
    from reticent.verbs.risks import Assessments

SHOWN_BY = (option("full", bool, "Every number, note and condition."),)
_USUAL = ["worst-case"]


def _of_file() -> click.Command:
    from reticent.cli._asking import asking, options_of, showing, typed_for
    from reticent.verbs.releases import Release
    from reticent.verbs.risks import Assess

    def ask(given: dict[str, Any]) -> Assess:
        release = Release.of(given["file"])
        if given["selection"] is not None:
            release = replace(release, mechanism=selected(release.mechanism, given), said=None)
        who = adversaries_of(given["adversary"] or _USUAL, given)
        return Assess.of(release=release, adversary=who, **typed_for(Assess, given))

    params = (LEDGER, *selection_options(), *who_attacks(), *options_of(Assess), *SHOWN_BY)
    return asking("ledger", ask, showing(_show), *params, help=LEAF)


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


risk = per_mechanism("risk", "Risk of a release under each attacker.", _of_kind, {"ledger": (LEAF, _of_file)})


def asked() -> dict[type[Request], Do]:
    """The requests that the verb takes, and what is done with them."""
    from reticent.cli._asking import showing
    from reticent.verbs.risks import Assess

    return {Assess: showing(_show)}


def _show(found: Assessments, given: Mapping[str, Any]) -> None:
    from reticent.cli._tables import print_risk

    print_risk(found.document, found.request.asks_for, full=given["full"])
    say_warnings(found.request.release.warnings)
    say_if_unused(given.get("dimension"), [one.name for one in found.request.adversary.each])
