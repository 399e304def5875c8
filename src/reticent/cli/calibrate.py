"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import Field

from reticent.adversaries import Adversary, Method, WorstCase
from reticent.adversaries.base import ALL
from reticent.adversaries.report import assessment_record
from reticent.calibration import Calibration, NoiseScale, Target, Unknown, unknowns_of
from reticent.calibration import calibrate as solve
from reticent.calibration.spelling import target_of
from reticent.cli._app import JSON, command, option
from reticent.cli._calibration import (
    MEAN_RUNS,
    TARGET,
    release_of,
    runs_searched,
    shown,
    unknown_of,
)
from reticent.cli._ledger import LEAF, LEDGER, say_warnings, with_warnings
from reticent.cli._options import (
    adversaries_of,
    first_line,
    mechanism_options,
    method_of,
    per_mechanism,
    say_if_unused,
    selected,
    selection_options,
    told_apart,
    who_attacks,
)
from reticent.cli._progress import waiting
from reticent.cli._tables import print_conditions, print_json, say
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import Mechanism
from reticent.pairs.neighbouring import relation_of
from reticent.risk.report import AssessmentRecord, ConditionRecord, Questions, Record, strict
from reticent.samplers import SAMPLERS
from reticent.verbs.noise import stated_of

SCHEMA = "reticent.calibration/2"


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
    claim: str
    conditions: list[ConditionRecord]
    mechanism: dict[str, Any]
    worst_case: WorstCaseRecord
    evaluations: int


_SCALE = "noise-scale"
_FILE = LEAF + " All its noise is scaled by one factor."


def _of_file() -> click.Command:
    asked = option("unknown", str, f"What is searched: {_SCALE}, or with --selection {MEAN_RUNS}. Default: {_SCALE}.")
    more = (*selection_options(), asked, *who_attacks(many=False))

    @command("ledger", LEDGER, TARGET, *more, JSON, help=_FILE)
    def of_file(file: Path, json: bool, **given: Any) -> None:
        from reticent.verbs.documents import release_in

        target, release = target_of(given["target"]), release_in(file)
        name, unknown = unknown_of({_SCALE: NoiseScale()}, given["unknown"])
        typed = given if name == _SCALE else runs_searched(given)
        if name == _SCALE and any(part.noise_multiplier == 0.0 for part in release.mechanism.parts):
            raise UnsupportedError(f"{file}: no factor gives noise to a release that has none; reticent lint says why")
        who = _one_attacker(given["adversary"], given)
        answer = _searched(selected(release.mechanism, typed), unknown, target, who, given)
        document = document_of(answer, name)
        if json:
            print_json(with_warnings(document, release.warnings))
            return
        _print(document, answer.unknown)
        if name == _SCALE:
            say("every noise multiplier is to be multiplied by the noise scale")
        say_warnings(release.warnings)

    return of_file


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own, names = mechanism_options(kind), list(unknowns_of(kind))
    searched = f"What is searched: {', '.join(names)}; with --selection also {MEAN_RUNS}. Default: {names[0]}."
    asked = option("unknown", str, searched)

    @command(kind.name, TARGET, *own, asked, *who_attacks(own, many=False), JSON, help=first_line(kind))
    def of_kind(json: bool, **given: Any) -> None:
        target = target_of(given["target"])
        name, unknown = unknown_of(unknowns_of(kind), given["unknown"])
        stated, attackers = told_apart(kind, [given["adversary"]], given)
        release = release_of(kind, name, stated)
        who = _one_attacker(given["adversary"], attackers)
        answer = _searched(release, unknown, target, who, given)
        document = document_of(answer, name)
        if json:
            print_json(document)
            return
        _print(document, answer.unknown)
        say_if_unused(given.get("dimension"), [given["adversary"]])

    return of_kind


_SAMPLERS = "Which sampler gives the least noise for this data set, these epochs and this memory."


def _of_samplers() -> click.Command:
    plan = (
        option("dataset_size", int, "Number of training records.", required=True),
        option("epochs", float, "Passes over the data.", required=True),
        option("memory", int, "Most records in one batch; truncated Poisson batches are cut there."),
        option("batch_size", str, "A size, or a range such as 64..1024 by doubling. Default: what fits.", many=True),
        option("sampler", str, f"{', '.join(SAMPLERS)} or any. Default: any.", many=True),
    )

    @command("samplers", TARGET, *plan, *who_attacks(many=False), JSON, help=_SAMPLERS)
    def of_samplers(json: bool, **given: Any) -> None:
        from reticent.verbs.samplers import ANY, calibrate_samplers

        with waiting("samplers:") as progress:
            found = calibrate_samplers(
                target_of(given["target"]),
                dataset_size=given["dataset_size"],
                epochs=given["epochs"],
                memory=given["memory"],
                batch_size=[size for text in given["batch_size"] for size in _sizes_of(text)],
                samplers=given["sampler"] or ANY,
                adversary=_one_attacker(given["adversary"], given),
                neighbouring=relation_of(given["neighbouring"]),
                method=method_of(given["method"]) or Method.EXACT,
                progress=progress,
            )
        click.echo(found.to_json() if json else repr(found))

    return of_samplers


calibrate = per_mechanism(
    "calibrate",
    "The parameter that keeps an attacker below a target.",
    _of_kind,
    {"ledger": (_FILE, _of_file), "samplers": (_SAMPLERS, _of_samplers)},
)


def _searched(
    mechanism: Mechanism, unknown: Unknown, target: Target, who: Adversary, given: Mapping[str, Any]
) -> Calibration:
    """The answer, with a line that moves where somebody is watching."""
    relation, method = relation_of(given["neighbouring"]), method_of(given["method"]) or Method.EXACT
    with waiting(f"{who.name}:") as progress:
        said = None if progress is None else lambda n: progress(f"{n} evaluations")
        return solve(mechanism, unknown, target, who, relation, method, said)


def _sizes_of(text: str) -> list[int]:
    """A batch size, or all of a range such as 64..1024, by doubling.

    Raises:
        ParameterError: it is neither.
    """
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high if dots else low)
    except ValueError:
        first, last = 1, 0
    if not 1 <= first <= last:
        raise ParameterError("batch_size", text, "a whole number, or a range such as 64..1024")
    return [first << turn for turn in range((last // first).bit_length())]


def _one_attacker(name: str, given: Mapping[str, Any]) -> Adversary:
    if name == ALL:
        raise ParameterError("adversary", ALL, "one attacker; `reticent compare` shows all of them")
    (who,), _ = adversaries_of([name], given)
    found: Adversary = who
    return found


def document_of(answer: Calibration, unknown: str) -> CalibrationDocument:
    """The answer, and the worst case at it."""
    worst = WorstCase().assess(answer.mechanism, answer.neighbouring, Method.EXACT)
    record = assessment_record(worst, Questions())
    achieved = answer.target.of(worst).value
    return CalibrationDocument(
        unknown=unknown,
        target=str(answer.target),
        slack=answer.slack,
        worst_case=WorstCaseRecord(**dict(record), achieved=strict(achieved)),
        evaluations=answer.evaluations,
        **stated_of(answer, answer.assessment()),
    )


def _print(document: CalibrationDocument, unknown: Unknown) -> None:
    """The answer in sentences."""
    measure, then = document.target.split("=")[0], "then" if document.value else "without it"
    say(f"{document.unknown.replace('-', ' ')}: {unknown.words(document.value, 6)}")
    say(
        f"{document.adversary} ({document.neighbouring}, {document.method}, {document.claim}) {then} has {measure} "
        f"{shown(document.achieved, document.target)}, asked for {document.target}"
    )
    if document.adversary != WorstCase.name:
        say(f"the worst case has {shown(document.worst_case.achieved, document.target)} at this value")
    many = "1 evaluation" if document.evaluations == 1 else f"{document.evaluations} evaluations"
    if not document.value:
        say(f"no less is possible; {many}")
    elif document.slack == 0.0:
        say(f"the end of what is searched; {many}")
    elif unknown.proven_edge:
        say(f"within a relative {document.slack:.1g} of the edge; {many}")
    else:
        say(f"a relative {document.slack:.1g} more would miss the target; a value beyond it is not ruled out; {many}")
    for note in document.worst_case.notes:
        say(str(note))
    print_conditions([(document.adversary, document.conditions)])
