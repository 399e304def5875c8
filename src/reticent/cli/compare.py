"""``reticent compare``: the noise that each adversary would allow, for one run and one target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Console
from rich.table import Table

from reticent.calibrate import NoiseMultiplier, Target, UnreachableError
from reticent.certificate.numbers import Record, mechanism_record
from reticent.cli._app import app
from reticent.cli._calibration import (
    BatchOption,
    ChangeOption,
    CoordinatesOption,
    DatasetOption,
    DimensionOption,
    ManyAdversaries,
    MixOption,
    RateOption,
    ReleasesOption,
    SamplerOption,
    StepsOption,
    SusceptibilityOption,
    TargetOption,
    dpsgd_of,
    gaussian_of,
    laplace_of,
    shown,
    strict,
    target_of,
    with_status,
)
from reticent.cli._options import (
    JsonOption,
    MethodOption,
    NeighbouringOption,
    adversaries_of,
    method_of,
    neighbouring_of,
)
from reticent.cli._tables import print_json
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanism import DPSGD, Mechanism, Neighbouring
from reticent.threat import Adversary, Method

SCHEMA = "reticent.comparison/1"

compare = typer.Typer(help="The noise that each adversary would allow.", no_args_is_help=True)
app.add_typer(compare, name="compare")


class ComparisonRow(Record):
    """One adversary: the least noise that keeps it within the target, and what the worst case has there.

    ``noise_ratio`` is against the worst case of the same relation, null where that is no row.
    """

    adversary: str
    neighbouring: str
    method: str
    noise_multiplier: float
    achieved: float | None
    worst_case_achieved: float | None
    noise_ratio: float | None


class ComparisonDocument(Record):
    """What ``reticent compare --json`` prints; ``skipped`` says why an adversary is not in it."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    target: str
    mechanism: dict[str, Any]
    rows: list[ComparisonRow]
    skipped: dict[str, str]


@compare.command()
def dpsgd(
    target: TargetOption,
    sample_rate: RateOption = None,
    steps: StepsOption = None,
    adversary: ManyAdversaries = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    batch_size: BatchOption = None,
    dataset_size: DatasetOption = None,
    dimension: DimensionOption = None,
    sampler: SamplerOption = "poisson",
    susceptibility: SusceptibilityOption = None,
    gradient_change: ChangeOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """DP-SGD with given sampling and steps."""
    run = dpsgd_of("noise-multiplier", None, sample_rate, steps, batch_size, dataset_size, dimension, sampler)
    chosen, _ = adversaries_of(
        adversary or ["all"],
        gradient_change=gradient_change,
        susceptibility=susceptibility,
        relaxed_probability=relaxed_probability,
        dimension=dimension,
    )
    _answer(run, target, chosen, neighbouring, method, json)


@compare.command()
def gaussian(
    target: TargetOption,
    releases: ReleasesOption = None,
    adversary: ManyAdversaries = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    dimension: CoordinatesOption = 1,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A sum released with Gaussian noise."""
    chosen, _ = adversaries_of(adversary or ["all"], relaxed_probability=relaxed_probability)
    _answer(gaussian_of("noise-multiplier", None, releases, dimension), target, chosen, neighbouring, method, json)


@compare.command()
def laplace(
    target: TargetOption,
    releases: ReleasesOption = None,
    adversary: ManyAdversaries = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A scalar sum released with Laplace noise."""
    chosen, _ = adversaries_of(adversary or ["all"], relaxed_probability=relaxed_probability)
    _answer(laplace_of("noise-multiplier", None, releases), target, chosen, neighbouring, method, json)


@compare.command("run")
def of_run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run directory.")],
    target: TargetOption,
    adversary: ManyAdversaries = None,
    neighbouring: NeighbouringOption = None,
    method: MethodOption = "exact",
    susceptibility: SusceptibilityOption = None,
    gradient_change: ChangeOption = None,
    relaxed_probability: MixOption = 0.5,
    json: JsonOption = False,
) -> None:
    """A finished run: its sampling and steps, with other noise."""
    chosen, _ = adversaries_of(
        adversary or ["all"],
        gradient_change=gradient_change,
        susceptibility=susceptibility,
        relaxed_probability=relaxed_probability,
    )
    _answer(_mechanism_of(folder), target, chosen, neighbouring, method, json)


def compared(
    mechanism: Mechanism,
    target: Target,
    adversaries: tuple[Adversary, ...],
    relation: Neighbouring | None,
    method: Method,
    json: bool = True,
) -> ComparisonDocument:
    """Calibrate the noise against each adversary; one that cannot be answered is named with its reason."""
    rows, skipped = [], {}
    for who in adversaries:
        try:
            answer = with_status(mechanism, NoiseMultiplier(), target, who, relation, method, json)
        except (UnsupportedError, UnreachableError, ParameterError) as error:
            skipped[who.name] = str(error)
            continue
        rows.append((answer, answer.worst_case().value))
    reference = {a.neighbouring: a.value for a, _ in rows if a.adversary.name == "worst-case"}
    return ComparisonDocument(
        target=str(target),
        mechanism=mechanism_record(mechanism),
        rows=[
            ComparisonRow(
                adversary=a.adversary.name,
                neighbouring=a.neighbouring.value,
                method=a.method.value,
                noise_multiplier=a.value,
                achieved=strict(a.achieved.value),
                worst_case_achieved=strict(worst),
                noise_ratio=a.value / reference[a.neighbouring] if a.neighbouring in reference else None,
            )
            for a, worst in rows
        ],
        skipped=skipped,
    )


def _answer(
    mechanism: Mechanism, target: str, chosen: tuple[Adversary, ...], neighbouring: str | None, method: str, json: bool
) -> None:
    relation, how = neighbouring_of(neighbouring), method_of(method)
    document = compared(mechanism, target_of(target), chosen, relation, how, json)
    if json:
        print_json(document)
        return
    console = Console()
    console.print(_table(document))
    for name, reason in document.skipped.items():
        console.print(f"{name} left out: {reason}", markup=False, highlight=False)


def _table(document: ComparisonDocument) -> Table:
    table = Table(title=f"Least noise multiplier for {document.target}", title_justify="left")
    for title in (
        "adversary",
        "neighbouring",
        "noise multiplier",
        "against worst case",
        "achieved",
        "worst case at this noise",
    ):
        table.add_column(title, justify="left" if title == "adversary" else "right", no_wrap=title == "adversary")
    for row in document.rows:
        ratio = "" if row.noise_ratio is None else f"{row.noise_ratio:.3f}"
        table.add_row(
            row.adversary,
            row.neighbouring,
            f"{row.noise_multiplier:.6g}",
            ratio,
            shown(row.achieved),
            shown(row.worst_case_achieved),
        )
    return table


def _mechanism_of(folder: Path) -> DPSGD:
    from reticent.train import load_run  # torch is needed for a run only

    return load_run(folder).ledger.mechanism()
