"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import JSON, command, option
from reticent.cli._ledger import say_warnings
from reticent.cli._options import (
    SECRETS,
    adversaries_of,
    first_line,
    mechanism_given,
    mechanism_options,
    method_of,
    per_mechanism,
    say_if_unused,
    secrets_of,
    selected,
    selection_options,
    told_apart,
    who_attacks,
)
from reticent.cli._paths import RUNS, SEVERAL, OfPaths
from reticent.errors import ArtifactError
from reticent.mechanisms import Mechanism
from reticent.pairs.neighbouring import relation_of

if TYPE_CHECKING:
    from reticent.risk.report import Questions
    from reticent.verbs.documents import Release

_QUESTIONS = (
    option("fpr", float, "False positive rate at which the TPR is reported; repeatable.", many=True),
    option("delta", float, "Delta at which epsilon is reported; repeatable.", many=True),
    option("epsilon", float, "Epsilon at which delta is reported; repeatable.", many=True),
    option(
        "prior",
        float,
        "Prior at which right guesses, and the worth of an accusation (PPV) at each --fpr, are reported; repeatable.",
        many=True,
    ),
    *SECRETS,
)

_FULL = option("full", bool, "Every number, note and condition.")


def _of_file() -> click.Command:
    @command("ledger", RUNS, *selection_options(), *who_attacks(), *_QUESTIONS, _FULL, JSON, help=SEVERAL)
    def of_file(paths: tuple[Path, ...], json: bool, **given: Any) -> None:
        from reticent.verbs.documents import release_in

        names = given["adversary"] or ["worst-case"]
        if len(paths) > 1:
            _of_several(paths, names, given, json)
            return
        release = release_in(paths[0])
        _assess(selected(release.mechanism, given), names, given, json, given, release)
        if not json:
            say_warnings(release.warnings)

    return of_file


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own = mechanism_options(kind)

    @command(kind.name, *own, *who_attacks(own), *_QUESTIONS, _FULL, JSON, help=first_line(kind))
    def of_kind(json: bool, **given: Any) -> None:
        names = given["adversary"] or ["worst-case"]
        release, attackers = told_apart(kind, names, given)
        _assess(mechanism_given(kind, release), names, attackers, json, given, None)
        if not json:
            say_if_unused(given.get("dimension"), names)

    return of_kind


risk = OfPaths(
    per_mechanism("risk", "Risk of a release under each attacker.", _of_kind, {"ledger": (SEVERAL, _of_file)})
)


def _questions(given: Mapping[str, Any]) -> tuple[Questions, list[str]]:
    """Where the curves are read, and which measures were asked for besides."""
    from reticent.risk.report import Questions

    typed = {f"{one}s": given[one] for one in ("fpr", "delta", "epsilon", "prior") if given[one]}
    more = [name for name, asked in (("ppv", "prior"), ("delta", "epsilon")) if given[asked]]
    return Questions(**typed, **secrets_of(given)), more


def _of_several(files: Sequence[Path], names: Sequence[str], given: Mapping[str, Any], json: bool) -> None:
    """Each run by itself; exit code 2 if one could not be read or answered, after all others."""
    from reticent.cli._tables import print_json, say
    from reticent.verbs.grids import Asked, answered_each

    questions, more = _questions(given)
    who, everybody = adversaries_of(names, given)
    asked = Asked(tuple(who), everybody, relation_of(given["neighbouring"]), method_of(given["method"]), questions)
    found = answered_each(files, asked, more, partial(selected, given=given))
    if json:
        print_json(found.document)
    else:
        click.echo(str(found))
        say("What the numbers rest on:" if given["full"] else "--full lists what the numbers rest on.")
        say(*(found.conditions() if given["full"] else ()), indent=2)
    if found.left_out:
        raise ArtifactError(f"{len(found.left_out)} of {len(files)} runs could not be answered: see left out")


def _assess(
    mechanism: Mechanism,
    names: Sequence[str],
    attackers: Mapping[str, Any],
    json: bool,
    given: Mapping[str, Any],
    file: Release | None,
) -> None:
    from reticent.adversaries.report import risk_document  # lists of commands are shown without them
    from reticent.cli._ledger import with_warnings
    from reticent.cli._tables import print_json, print_risk
    from reticent.verbs.risks import answered

    adversaries, everything = adversaries_of(names, attackers)
    relation, method = relation_of(given["neighbouring"]), method_of(given["method"])
    witness = None if file is None else file.ledger
    questions, more = _questions(given)
    assessments, skipped = answered(mechanism, adversaries, everything, relation, method, witness)
    document = risk_document(mechanism, assessments, questions, skipped)
    if json:
        print_json(document if file is None else with_warnings(document, file.warnings))
    else:
        print_risk(document, more, full=given["full"])
