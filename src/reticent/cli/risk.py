"""``reticent risk``: what each adversary can learn from a release."""

from __future__ import annotations

from typing import Annotated

import typer

from reticent.certificate.numbers import Questions, risk_document
from reticent.cli._app import app
from reticent.cli._options import (
    DIMENSION_HELP,
    AdversaryOption,
    JsonOption,
    MethodOption,
    NeighbouringOption,
    adversaries_of,
    choice,
    method_of,
    neighbouring_of,
)
from reticent.cli._tables import print_json, print_risk
from reticent.mechanism import DPSGD, Gaussian, Laplace, Mechanism, Sampler
from reticent.threat import Adversary, assess, assess_answerable

risk = typer.Typer(help="Risk of a release under each adversary.", no_args_is_help=True)
app.add_typer(risk, name="risk")

NoiseOption = Annotated[
    float, typer.Option("--noise-multiplier", help="Noise over the largest contribution of one record.")
]
ReleasesOption = Annotated[int, typer.Option("--releases", help="Number of releases of the same data.")]
FprOption = Annotated[list[float] | None, typer.Option("--fpr", help="False positive rate for TPR; repeatable.")]
DeltaOption = Annotated[list[float] | None, typer.Option("--delta", help="delta for epsilon; repeatable.")]
EpsilonOption = Annotated[list[float] | None, typer.Option("--epsilon", help="epsilon for delta; repeatable.")]
PriorOption = Annotated[
    list[float] | None, typer.Option("--prior", help="Prior for the probability of a right guess; repeatable.")
]
MixOption = Annotated[float, typer.Option("--relaxed-probability", help="Probability of the relaxed type, for mixed.")]


@risk.command()
def gaussian(
    noise_multiplier: NoiseOption,
    releases: ReleasesOption = 1,
    dimension: Annotated[int, typer.Option("--dimension", help="Released coordinates.")] = 1,
    adversary: AdversaryOption = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    fpr: FprOption = None,
    delta: DeltaOption = None,
    epsilon: EpsilonOption = None,
    prior: PriorOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A sum released with Gaussian noise."""
    mechanism = Gaussian(noise_multiplier, releases, dimension)
    chosen = adversaries_of(adversary, relaxed_probability=relaxed_probability)
    _answer(mechanism, chosen, neighbouring, method, Questions.of(fpr, delta, epsilon, prior), json)


@risk.command()
def laplace(
    noise_multiplier: NoiseOption,
    releases: ReleasesOption = 1,
    sample_rate: Annotated[float, typer.Option("--sample-rate", help="Poisson inclusion probability.")] = 1.0,
    adversary: AdversaryOption = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    fpr: FprOption = None,
    delta: DeltaOption = None,
    epsilon: EpsilonOption = None,
    prior: PriorOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A scalar sum released with Laplace noise."""
    chosen = adversaries_of(adversary, relaxed_probability=relaxed_probability)
    questions = Questions.of(fpr, delta, epsilon, prior)
    _answer(Laplace(noise_multiplier, releases, sample_rate), chosen, neighbouring, method, questions, json)


@risk.command()
def dpsgd(
    noise_multiplier: NoiseOption,
    sample_rate: Annotated[float, typer.Option("--sample-rate", help="Poisson inclusion probability.")],
    steps: Annotated[int, typer.Option("--steps", help="Number of noisy updates.")],
    dimension: Annotated[int | None, typer.Option("--dimension", help=DIMENSION_HELP)] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Expected batch size.")] = None,
    max_grad_norm: Annotated[float, typer.Option("--max-grad-norm", help="Clip norm (L2).")] = 1.0,
    susceptibility: Annotated[
        float | None, typer.Option("--susceptibility", help="Squared Mahalanobis norm K, for membership-game.")
    ] = None,
    gradient_change: Annotated[
        float | None, typer.Option("--gradient-change", help="Largest change R of a clipped gradient, for attribute.")
    ] = None,
    sampler: Annotated[str, typer.Option("--sampler", help="poisson, fixed-size or shuffled.")] = "poisson",
    adversary: AdversaryOption = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    fpr: FprOption = None,
    delta: DeltaOption = None,
    epsilon: EpsilonOption = None,
    prior: PriorOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """DP-SGD: noisy sums of clipped gradients over random batches."""
    mechanism = DPSGD(
        noise_multiplier,
        sample_rate,
        steps,
        max_grad_norm=max_grad_norm,
        num_parameters=dimension,
        batch_size=batch_size,
        sampler=choice(Sampler, sampler, "sampler"),
    )
    chosen = adversaries_of(
        adversary,
        gradient_change=gradient_change,
        susceptibility=susceptibility,
        relaxed_probability=relaxed_probability,
        dimension=dimension,
    )
    _answer(mechanism, chosen, neighbouring, method, Questions.of(fpr, delta, epsilon, prior), json)


def _answer(
    mechanism: Mechanism,
    chosen: tuple[tuple[Adversary, ...], bool],
    neighbouring: str | None,
    method: str,
    questions: Questions,
    json: bool,
) -> None:
    adversaries, everything = chosen
    relation, how = neighbouring_of(neighbouring), method_of(method)
    if everything:
        assessments, skipped = assess_answerable(mechanism, adversaries, relation, how)
    else:
        assessments, skipped = assess(mechanism, adversaries, relation, how), {}
    document = risk_document(mechanism, assessments, questions, skipped)
    if json:
        print_json(document)
    else:
        print_risk(document)
