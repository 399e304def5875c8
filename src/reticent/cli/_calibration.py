"""Options of ``calibrate`` and ``compare``, and how their text becomes types."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from rich.console import Console

from reticent import _check
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
from reticent.cli._options import DIMENSION_HELP, adversaries_of, choice, is_terminal
from reticent.errors import ParameterError
from reticent.mechanism import DPSGD, Gaussian, Laplace, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Method

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
DimensionOption = Annotated[int | None, typer.Option("--dimension", help=DIMENSION_HELP)]
CoordinatesOption = Annotated[int, typer.Option("--dimension", help="Released coordinates.")]
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
ManyAdversaries = Annotated[
    list[str] | None, typer.Option("--adversary", help="Adversaries to compare; repeatable; default: all.")
]
UnknownOption = Annotated[
    str, typer.Option("--unknown", help="noise-multiplier, sample-rate, steps (releases) or batch-size.")
]


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
        raise ParameterError("target", text, f"given with {error.name} as {error.allowed}") from None
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


def one_adversary(
    name: str, change: float | None, susceptibility: float | None, mix: float, dimension: int | None = None
) -> Adversary:
    """The adversary called ``name``; "all" is for ``compare``."""
    if name == "all":
        raise ParameterError("adversary", name, "one adversary; `reticent compare` shows all of them")
    chosen, _ = adversaries_of(
        [name], gradient_change=change, susceptibility=susceptibility, relaxed_probability=mix, dimension=dimension
    )
    return chosen[0]


def given(name: str, value: float | None, searched: bool, stand_in: float) -> float:
    """``value``, or a stand-in if it is what is searched.

    Raises:
        ParameterError: it is neither given nor searched, or both.
    """
    if searched and value is not None:
        raise ParameterError(name, value, "left out, as it is what is searched")
    if not searched and value is None:
        raise ParameterError(name, None, "given, as it is not what is searched")
    return stand_in if value is None else value


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
    kind = unknown_of(unknown)
    noise = given("noise_multiplier", noise_multiplier, isinstance(kind, NoiseMultiplier), 1.0)
    count = int(given("steps", steps, isinstance(kind, Steps), 1))
    if isinstance(kind, BatchSize):
        given("batch_size", batch_size, True, 1)
        rate = given("sample_rate", sample_rate, True, 0.5)
    else:
        ratio = None if isinstance(kind, SampleRate) else _rate_of(sample_rate, batch_size, dataset_size)
        rate = given("sample_rate", sample_rate if ratio is None else ratio, isinstance(kind, SampleRate), 0.5)
    return DPSGD(
        noise,
        rate,
        count,
        num_parameters=dimension,
        batch_size=batch_size,
        dataset_size=dataset_size,
        sampler=choice(Sampler, sampler, "sampler"),
    )


def _rate_of(sample_rate: float | None, batch_size: int | None, dataset_size: int | None) -> float | None:
    """The rate as given, or batch over data size; the two must agree to 1 %."""
    if batch_size is None or dataset_size is None:
        return sample_rate
    ratio = _check.count(batch_size=batch_size) / _check.count(dataset_size=dataset_size)
    if ratio > 1.0:
        raise ParameterError("batch_size", batch_size, f"at most the dataset size, {dataset_size}")
    if sample_rate is not None and not abs(sample_rate - ratio) <= 0.01 * ratio:
        raise ParameterError("sample_rate", sample_rate, f"batch over dataset size, {ratio:g}, or left out")
    return ratio if sample_rate is None else sample_rate


def gaussian_of(unknown: str, noise_multiplier: float | None, releases: int | None, dimension: int) -> Gaussian:
    """Gaussian releases as far as they are known; one release unless said otherwise."""
    return Gaussian(*_releases_of(unknown, noise_multiplier, releases), dimension)


def laplace_of(unknown: str, noise_multiplier: float | None, releases: int | None) -> Laplace:
    """The same with Laplace noise."""
    return Laplace(*_releases_of(unknown, noise_multiplier, releases))


def _releases_of(unknown: str, noise_multiplier: float | None, releases: int | None) -> tuple[float, int]:
    kind = unknown_of(unknown)
    noise = given("noise_multiplier", noise_multiplier, isinstance(kind, NoiseMultiplier), 1.0)
    count = 1 if releases is None and not isinstance(kind, Steps) else releases
    return noise, int(given("releases", count, isinstance(kind, Steps), 1))


def with_status(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    who: Adversary,
    relation: Neighbouring | None,
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


def shown(value: float | None) -> str:
    return "inf" if value is None else f"{value:.6g}"


def strict(value: float) -> float | None:
    return value if math.isfinite(value) else None
