"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from pydantic import Field

from reticent.calibrate import Calibration, unknowns_of
from reticent.certificate.numbers import AssessmentRecord, Questions, Record, assessment_record, mechanism_record
from reticent.cli._app import app
from reticent.cli._calibration import TARGET, release_of, shown, strict, target_of, unknown_of, with_status
from reticent.cli._options import (
    JsonOption,
    PerMechanism,
    adversaries_of,
    adversary_option,
    adversary_options,
    curve_options,
    mechanism_options,
    method_of,
    neighbouring_of,
    option,
    takes,
    told_apart,
)
from reticent.cli._tables import print_json, say
from reticent.errors import ParameterError
from reticent.mechanism import Mechanism
from reticent.threat import Method, WorstCase
from reticent.threat.registry import ALL

SCHEMA = "reticent.calibration/1"


class WorstCaseRecord(AssessmentRecord):
    """The worst case at the answer; ``achieved`` is the risk that the target limits."""

    achieved: float | None


class CalibrationDocument(Record):
    """What ``reticent calibrate --json`` prints."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    unknown: str
    value: float
    target: str
    achieved: float | None
    slack: float
    adversary: str
    neighbouring: str
    method: str
    mechanism: dict[str, Any]
    worst_case: WorstCaseRecord
    evaluations: int


class _Calibrate(PerMechanism):
    @staticmethod
    def build(kind: type[Mechanism]) -> Callable[..., None]:
        own, names = mechanism_options(kind), ", ".join(unknowns_of(kind))
        unknown = option("unknown", str, f"What is searched: {names}. Default: {next(iter(unknowns_of(kind)))}.")

        def options() -> list[inspect.Parameter]:
            who = adversary_option("worst-case", many=False)
            return [TARGET, *own, unknown, who, *adversary_options(own), *curve_options()]

        @takes(options)
        def command(json: JsonOption = False, **given: Any) -> None:
            _answer(kind, json, given)

        return command


app.add_typer(
    typer.Typer(cls=_Calibrate, help="The parameter that keeps an attacker below a target.", no_args_is_help=True),
    name="calibrate",
)


def _answer(kind: type[Mechanism], json: bool, given: dict[str, Any]) -> None:
    target = target_of(given["target"])
    name, unknown = unknown_of(kind, given["unknown"])
    own, attackers = told_apart(kind, [given["adversary"]], given)
    release = release_of(kind, name, own)
    if given["adversary"] == ALL:
        raise ParameterError("adversary", ALL, "one attacker; `reticent compare` shows all of them")
    (who,), _ = adversaries_of([given["adversary"]], attackers)
    relation, method = neighbouring_of(given["neighbouring"]), method_of(given["method"])
    document = document_of(with_status(release, unknown, target, who, relation, method, json), name)
    if json:
        print_json(document)
    else:
        _print(document)


def document_of(answer: Calibration, unknown: str) -> CalibrationDocument:
    """The answer with the worst case beside it."""
    worst = WorstCase().assess(answer.mechanism, answer.neighbouring, Method.EXACT)
    record = assessment_record(worst, Questions())
    achieved = answer.target.of(worst).value
    return CalibrationDocument(
        unknown=unknown,
        value=answer.value,
        target=str(answer.target),
        achieved=strict(answer.achieved.value),
        slack=answer.slack,
        adversary=answer.adversary.name,
        neighbouring=answer.neighbouring.value,
        method=answer.method.value,
        mechanism=mechanism_record(answer.mechanism),
        worst_case=WorstCaseRecord(**dict(record), achieved=strict(achieved)),
        evaluations=answer.evaluations,
    )


def _print(document: CalibrationDocument) -> None:
    measure = document.target.split("=")[0]
    say(f"{document.unknown.replace('-', ' ')}: {document.value:.6g}")
    say(
        f"{document.adversary} ({document.neighbouring}, {document.method}) then has {measure} "
        f"{shown(document.achieved)}, asked for {document.target}"
    )
    say(f"the worst case has {shown(document.worst_case.achieved)} at this value")
    say(f"within a relative {document.slack:.1g} of the edge; {document.evaluations} evaluations")
    for note in document.worst_case.notes:
        say(note)
