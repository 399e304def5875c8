"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reticent.cli._app import JSON, command, option
from reticent.cli._ledger import LEAF, LEDGER, say_warnings
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
from reticent.mechanisms import Mechanism
from reticent.pairs.neighbouring import relation_of

if TYPE_CHECKING:
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
    @command("ledger", LEDGER, *selection_options(), *who_attacks(), *_QUESTIONS, _FULL, JSON, help=LEAF)
    def of_file(file: Path, json: bool, **given: Any) -> None:
        from reticent.verbs.documents import release_in

        release = release_in(file)
        _assess(selected(release.mechanism, given), given["adversary"] or ["worst-case"], given, json, given, release)
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


risk = per_mechanism("risk", "Risk of a release under each attacker.", _of_kind, {"ledger": (LEAF, _of_file)})


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
    from reticent.risk.report import Questions
    from reticent.verbs.risks import answered

    adversaries, everything = adversaries_of(names, attackers)
    relation, method = relation_of(given["neighbouring"]), method_of(given["method"])
    witness = None if file is None else file.ledger
    typed = {f"{one}s": given[one] for one in ("fpr", "delta", "epsilon", "prior") if given[one]}
    questions = Questions(**typed, **secrets_of(given))
    assessments, skipped = answered(mechanism, adversaries, everything, relation, method, witness)
    document = risk_document(mechanism, assessments, questions, skipped)
    if json:
        print_json(document if file is None else with_warnings(document, file.warnings))
    else:
        more = [name for name, asked in (("ppv", "prior"), ("delta", "epsilon")) if given[asked]]
        print_risk(document, more, full=given["full"])
