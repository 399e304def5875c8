"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Console

from reticent.calibrate import (
    Advantage,
    BatchSize,
    BayesSecurity,
    Calibration,
    EpsilonAtDelta,
    Mu,
    NoiseMultiplier,
    Reconstruction,
    SampleRate,
    Steps,
    Success,
    Target,
    TprAtFpr,
    Unknown,
)
from reticent.calibrate import calibrate as solve
from reticent.certificate.numbers import AssessmentRecord, Questions, Record, assessment_record, mechanism_record
from reticent.cli._app import app
from reticent.cli._options import (
    JsonOption,
    MethodOption,
    NeighbouringOption,
    adversaries_of,
    choice,
    is_terminal,
    method_of,
    neighbouring_of,
)
from reticent.cli._tables import print_json
from reticent.errors import ParameterError
from reticent.mechanism import DPSGD, Gaussian, Laplace, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Method, WorstCase

SCHEMA = "reticent.calibration/1"

calibrate = typer.Typer(help="The parameter that keeps an attacker below a target.", no_args_is_help=True)
app.add_typer(calibrate, name="calibrate")

TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        help="advantage=V, bayes-security=V, success=V@PRIOR, tpr=V@FPR, epsilon=V@DELTA, mu=V "
        "or reconstruction=V@BASELINE.",
    ),
]
OneAdversaryOption = Annotated[
    str,
    typer.Option("--adversary", help="worst-case, relaxed, membership, attribute, membership-game or mixed."),
]
NoiseOption = Annotated[
    float | None, typer.Option("--noise-multiplier", help="Noise over one record's contribution, if it is known.")
]
DimensionOption = Annotated[int | None, typer.Option("--dimension", help="Released coordinates or parameters.")]
RateOption = Annotated[float | None, typer.Option("--sample-rate", help="Poisson inclusion probability.")]
StepsOption = Annotated[int | None, typer.Option("--steps", help="Number of noisy updates.")]
BatchOption = Annotated[int | None, typer.Option("--batch-size", help="Expected records per batch.")]
DatasetOption = Annotated[int | None, typer.Option("--dataset-size", help="Number of training records.")]
SamplerOption = Annotated[str, typer.Option("--sampler", help="poisson, fixed-size or shuffled.")]
SusceptibilityOption = Annotated[
    float | None, typer.Option("--susceptibility", help="Squared Mahalanobis norm K, for membership-game.")
]
ChangeOption = Annotated[
    float | None, typer.Option("--gradient-change", help="Largest change R of a clipped gradient, for attribute.")
]
MixOption = Annotated[float, typer.Option("--relaxed-probability", help="Probability of the relaxed type, for mixed.")]
ReleasesOption = Annotated[int | None, typer.Option("--releases", help="Number of releases of the same data.")]
UnknownOption = Annotated[
    str, typer.Option("--unknown", help="noise-multiplier, sample-rate, steps (releases) or batch-size.")
]


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


def target_of(text: str) -> Target:
    """``--target`` as a type.

    Raises:
        ParameterError: the text is not ``NAME=VALUE`` or ``NAME=VALUE@PLACE`` with a known name.
    """
    plain: dict[str, type[Target]] = {"advantage": Advantage, "bayes-security": BayesSecurity, "mu": Mu}
    placed: dict[str, type[Target]] = {
        "success": Success,
        "tpr": TprAtFpr,
        "epsilon": EpsilonAtDelta,
        "reconstruction": Reconstruction,
    }
    name, _, rest = text.partition("=")
    numbers = rest.split("@")
    wanted = 1 if name in plain else 2
    if (name not in plain and name not in placed) or len(numbers) != wanted or not rest:
        allowed = ", ".join([f"{n}=V" for n in plain] + [f"{n}=V@W" for n in placed])
        raise ParameterError("target", text, f"one of {allowed}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ParameterError("target", text, "a name and decimal numbers") from None
    kind: Any = (plain | placed)[name]
    try:
        target: Target = kind(*values)
    except ParameterError as error:
        raise ParameterError("target", text, f"{error.name} with {error.allowed}") from None
    return target


def unknown_of(text: str) -> Unknown:
    """``--unknown`` as a type."""
    kinds: dict[str, Unknown] = {
        "noise-multiplier": NoiseMultiplier(),
        "sample-rate": SampleRate(),
        "steps": Steps(),
        "releases": Steps(),
        "batch-size": BatchSize(),
    }
    if text not in kinds:
        raise ParameterError("unknown", text, "one of " + ", ".join(kinds))
    return kinds[text]


def one_adversary(name: str, change: float | None, susceptibility: float | None, mix: float) -> Adversary:
    """The adversary called ``name``; "all" is for ``compare``."""
    if name == "all":
        raise ParameterError("adversary", name, "one adversary; `reticent compare` shows all of them")
    chosen, _ = adversaries_of([name], gradient_change=change, susceptibility=susceptibility, relaxed_probability=mix)
    return chosen[0]


def given(name: str, value: float | None, unknown: str, stand_in: float) -> float:
    """``value``, or a stand-in if it is what is searched.

    Raises:
        ParameterError: it is neither given nor searched.
    """
    if value is not None:
        return value
    if unknown == name.replace("_", "-"):
        return stand_in
    raise ParameterError(name, None, f"given, unless it is the --unknown (which is {unknown})")


def dpsgd_of(
    unknown: str,
    noise_multiplier: float | None,
    sample_rate: float | None,
    steps: int | None,
    batch_size: int | None,
    dataset_size: int | None,
    dimension: int | None,
    sampler: str,
) -> DPSGD:
    """The run as far as it is known; the rate may come from batch and data size."""
    unknown_of(unknown)
    if sample_rate is None and batch_size is not None and dataset_size is not None:
        sample_rate = min(batch_size / dataset_size, 1.0)
    if unknown == "batch-size":
        sample_rate = 0.5 if sample_rate is None else sample_rate
    return DPSGD(
        given("noise_multiplier", noise_multiplier, unknown, 1.0),
        given("sample_rate", sample_rate, unknown, 0.5),
        int(given("steps", steps, unknown, 1)),
        num_parameters=dimension,
        batch_size=batch_size,
        dataset_size=dataset_size,
        sampler=choice(Sampler, sampler, "sampler"),
    )


@calibrate.command()
def dpsgd(
    target: TargetOption,
    sample_rate: RateOption = None,
    steps: StepsOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = "add-remove",
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
    who = one_adversary(adversary, gradient_change, susceptibility, relaxed_probability)
    _answer(run, unknown, target, who, neighbouring, method, json)


@calibrate.command()
def gaussian(
    target: TargetOption,
    releases: ReleasesOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = "add-remove",
    method: MethodOption = "exact",
    noise_multiplier: NoiseOption = None,
    dimension: DimensionOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A sum released with Gaussian noise: noise multiplier or number of releases."""
    release = Gaussian(given("noise_multiplier", noise_multiplier, unknown, 1.0), releases or 1, dimension or 1)
    who = one_adversary(adversary, None, None, relaxed_probability)
    _answer(release, unknown, target, who, neighbouring, method, json)


@calibrate.command()
def laplace(
    target: TargetOption,
    releases: ReleasesOption = None,
    unknown: UnknownOption = "noise-multiplier",
    adversary: OneAdversaryOption = "worst-case",
    neighbouring: NeighbouringOption = "add-remove",
    method: MethodOption = "exact",
    noise_multiplier: NoiseOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A scalar sum released with Laplace noise: noise multiplier or number of releases."""
    release = Laplace(given("noise_multiplier", noise_multiplier, unknown, 1.0), releases or 1)
    who = one_adversary(adversary, None, None, relaxed_probability)
    _answer(release, unknown, target, who, neighbouring, method, json)


def _answer(
    mechanism: Mechanism, unknown: str, target: str, who: Adversary, neighbouring: str, method: str, json: bool
) -> None:
    relation, how = neighbouring_of(neighbouring), method_of(method)
    answer = with_status(mechanism, unknown_of(unknown), target_of(target), who, relation, how, json)
    document = document_of(answer, unknown)
    if json:
        print_json(document)
    else:
        _print(document)


def with_status(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    who: Adversary,
    relation: Neighbouring,
    method: Method,
    json: bool,
) -> Calibration:
    """Calibrate, with a line that moves where somebody is watching."""
    if json or not is_terminal():
        return solve(mechanism, unknown, target, who, relation, method)
    with Console(stderr=True).status(f"{who.name}: searching") as status:
        return solve(
            mechanism,
            unknown,
            target,
            who,
            relation,
            method,
            progress=lambda n: status.update(f"{who.name}: {n} evaluations"),
        )


def document_of(answer: Calibration, unknown: str) -> CalibrationDocument:
    """The answer with the worst case beside it."""
    worst = WorstCase().assess(answer.mechanism, answer.neighbouring, Method.EXACT)
    record = assessment_record(worst, Questions())
    achieved = worst.measure(answer.target.measure).value
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


def shown(value: float | None) -> str:
    return "inf" if value is None else f"{value:.6g}"


def strict(value: float) -> float | None:
    return value if math.isfinite(value) else None
