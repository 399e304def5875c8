"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

from typing import Any

import typer
from pydantic import Field
from rich.console import Console

from reticent.calibrate import Calibration
from reticent.certificate.numbers import AssessmentRecord, Questions, Record, assessment_record, mechanism_record
from reticent.cli._app import app
from reticent.cli._calibration import (
    BatchOption,
    ChangeOption,
    CoordinatesOption,
    DatasetOption,
    DimensionOption,
    MixOption,
    NoiseOption,
    OneAdversaryOption,
    RateOption,
    ReleasesOption,
    SamplerOption,
    StepsOption,
    SusceptibilityOption,
    TargetOption,
    UnknownOption,
    dpsgd_of,
    gaussian_of,
    laplace_of,
    one_adversary,
    shown,
    strict,
    target_of,
    unknown_of,
    with_status,
)
from reticent.cli._options import JsonOption, MethodOption, NeighbouringOption, method_of, neighbouring_of
from reticent.cli._tables import print_json
from reticent.mechanism import Mechanism
from reticent.threat import Adversary, Method, WorstCase

SCHEMA = "reticent.calibration/1"

calibrate = typer.Typer(help="The parameter that keeps an attacker below a target.", no_args_is_help=True)
app.add_typer(calibrate, name="calibrate")


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


@calibrate.command()
def dpsgd(
    target: TargetOption,
    sample_rate: RateOption = None,
    steps: StepsOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    noise_multiplier: NoiseOption = None,
    batch_size: BatchOption = None,
    dataset_size: DatasetOption = None,
    dimension: DimensionOption = None,
    sampler: SamplerOption = "poisson",
    susceptibility: SusceptibilityOption = None,
    gradient_change: ChangeOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """DP-SGD: noise multiplier, sample rate, steps or batch size."""
    run = dpsgd_of(unknown, noise_multiplier, sample_rate, steps, batch_size, dataset_size, dimension, sampler)
    who = one_adversary(adversary, gradient_change, susceptibility, relaxed_probability, dimension)
    _answer(run, unknown, target, who, neighbouring, method, json)


@calibrate.command()
def gaussian(
    target: TargetOption,
    releases: ReleasesOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    noise_multiplier: NoiseOption = None,
    dimension: CoordinatesOption = 1,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A sum released with Gaussian noise: noise multiplier or number of releases."""
    release = gaussian_of(unknown, noise_multiplier, releases, dimension)
    who = one_adversary(adversary, None, None, relaxed_probability)
    _answer(release, unknown, target, who, neighbouring, method, json)


@calibrate.command()
def laplace(
    target: TargetOption,
    releases: ReleasesOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    noise_multiplier: NoiseOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A scalar sum released with Laplace noise: noise multiplier or number of releases."""
    release = laplace_of(unknown, noise_multiplier, releases)
    who = one_adversary(adversary, None, None, relaxed_probability)
    _answer(release, unknown, target, who, neighbouring, method, json)


def _answer(
    mechanism: Mechanism, unknown: str, target: str, who: Adversary, neighbouring: str | None, method: str, json: bool
) -> None:
    relation, how = neighbouring_of(neighbouring), method_of(method)
    answer = with_status(mechanism, unknown_of(unknown), target_of(target), who, relation, how, json)
    document = document_of(answer, unknown)
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
    console = Console()
    name = document.unknown.replace("-", " ")
    lines = [
        f"{name}: {document.value:.6g}",
        f"{document.adversary} ({document.neighbouring}, {document.method}) then has {document.target.split('=')[0]} "
        f"{shown(document.achieved)}, asked for {document.target}",
        f"the worst case has {shown(document.worst_case.achieved)} at this value",
        f"within a relative {document.slack:.1g} of the edge; {document.evaluations} evaluations",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for note in document.worst_case.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
