"""``reticent risk``: what each attacker can learn from a release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from reticent.cli._app import app
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
    takes,
    told_apart,
)
from reticent.mechanism import Mechanism

_QUESTIONS = (
    option("fpr", list[float], "False positive rate for TPR; repeatable."),
    option("delta", list[float], "delta for epsilon; repeatable."),
    option("epsilon", list[float], "epsilon for delta; repeatable."),
    option("prior", list[float], "Prior for the probability of a right guess; repeatable."),
)


class _Risk(PerMechanism):
    @staticmethod
    def build(kind: type[Mechanism]) -> Callable[..., None]:
        own = mechanism_options(kind)

        @takes(lambda: [*own, adversary_option("worst-case"), *adversary_options(own), *curve_options(), *_QUESTIONS])
        def command(json: JsonOption = False, **given: Any) -> None:
            _answer(kind, json, given)

        return command


app.add_typer(typer.Typer(cls=_Risk, help="Risk of a release under each attacker.", no_args_is_help=True), name="risk")


def _answer(kind: type[Mechanism], json: bool, given: dict[str, Any]) -> None:
    from reticent.certificate.numbers import Questions, risk_document  # lists of commands are shown without them
    from reticent.cli._tables import print_json, print_risk
    from reticent.threat import assess, assess_answerable

    names = given["adversary"] or ["worst-case"]
    release, attackers = told_apart(kind, names, given)
    mechanism = mechanism_given(kind, release)
    adversaries, everything = adversaries_of(names, attackers)
    relation, method = neighbouring_of(given["neighbouring"]), method_of(given["method"])
    questions = Questions.of(given["fpr"], given["delta"], given["epsilon"], given["prior"])
    if everything:
        assessments, skipped = assess_answerable(mechanism, adversaries, relation, method)
    else:
        assessments, skipped = assess(mechanism, adversaries, relation, method), {}
    document = risk_document(mechanism, assessments, questions, skipped)
    if json:
        print_json(document)
    else:
        print_risk(document)
