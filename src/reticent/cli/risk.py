"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from reticent.cli._app import app
from reticent.cli._ledger import LEAF, LedgerArgument, say_warnings
from reticent.cli._options import (
    JsonOption,
    PerMechanism,
    adversaries_of,
    adversary_option,
    adversary_options,
    curve_options,
    mechanism_given,
    mechanism_options,
    method_of,
    neighbouring_of,
    option,
    say_if_unused,
    takes,
    told_apart,
)
from reticent.mechanisms import Mechanism

if TYPE_CHECKING:
    from reticent.api.documents import Release

_QUESTIONS = (
    option("fpr", list[float], "False positive rate for TPR; repeatable."),
    option("delta", list[float], "delta for epsilon; repeatable."),
    option("epsilon", list[float], "epsilon for delta; repeatable."),
    option("prior", list[float], "Prior for the probability of a right guess; repeatable."),
)


def _of_file() -> Callable[..., None]:
    @takes(lambda: [adversary_option("worst-case"), *adversary_options(), *curve_options(), *_QUESTIONS])
    def command(file: LedgerArgument, json: JsonOption = False, **given: Any) -> None:
        from reticent.api.documents import release_in

        release = release_in(file)
        _assess(release.mechanism, given["adversary"] or ["worst-case"], given, json, given, release)
        if not json:
            say_warnings(release.warnings)

    return command


class _Risk(PerMechanism):
    leaves: ClassVar[dict[str, str]] = LEAF
    later: ClassVar[dict[str, Callable[[], Callable[..., None]]]] = {"ledger": _of_file}

    @staticmethod
    def build(kind: type[Mechanism]) -> Callable[..., None]:
        own = mechanism_options(kind)

        @takes(lambda: [*own, adversary_option("worst-case"), *adversary_options(own), *curve_options(), *_QUESTIONS])
        def command(json: JsonOption = False, **given: Any) -> None:
            _answer(kind, json, given)

        return command


risk = typer.Typer(cls=_Risk, help="Risk of a release under each attacker.", no_args_is_help=True)
app.add_typer(risk, name="risk")


def _answer(kind: type[Mechanism], json: bool, given: dict[str, Any]) -> None:
    names = given["adversary"] or ["worst-case"]
    release, attackers = told_apart(kind, names, given)
    _assess(mechanism_given(kind, release), names, attackers, json, given, None)
    if not json:
        say_if_unused(given.get("dimension"), names)


def _assess(
    mechanism: Mechanism,
    names: list[str],
    attackers: Mapping[str, Any],
    json: bool,
    given: Mapping[str, Any],
    file: Release | None,
) -> None:
    from reticent.adversaries import assess, assess_answerable
    from reticent.certificates.numbers import Questions, risk_document  # lists of commands are shown without them
    from reticent.cli._ledger import with_warnings
    from reticent.cli._tables import print_json, print_risk

    adversaries, everything = adversaries_of(names, attackers)
    relation, method = neighbouring_of(given["neighbouring"]), method_of(given["method"])
    witness = None if file is None else file.ledger
    questions = Questions.of(given["fpr"], given["delta"], given["epsilon"], given["prior"])
    if everything:
        assessments, skipped = assess_answerable(mechanism, adversaries, relation, method, witness)
    else:
        assessments, skipped = assess(mechanism, adversaries, relation, method, witness), {}
    document = risk_document(mechanism, assessments, questions, skipped)
    if json:
        print_json(document if file is None else with_warnings(document, file.warnings))
    else:
        print_risk(document, deltas=bool(given["epsilon"]))
