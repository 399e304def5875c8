"""``reticent audit`` and ``reticent plan-audit``: what an attack really achieves, and how large an audit must be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent import _check
from reticent.auditing import Design, Finding, Scores, Unit, audit, plan_audit, save_scores
from reticent.cli._app import app
from reticent.cli._audit_input import (
    check_before_work,
    check_fit,
    check_unused,
    claims_of,
    engine_of,
    kind_of,
    ledger_mechanism,
    mechanism_of,
    parse_guesses,
    parse_rule,
    read_scores,
)
from reticent.cli._audit_output import print_audit, print_plan, strict_json, write_page
from reticent.cli._options import JsonOption, adversary_option, adversary_options, choice, curve_options, takes
from reticent.cli._progress import progress_bar, told
from reticent.curves import GaussianTradeOff
from reticent.errors import ParameterError

if TYPE_CHECKING:
    from reticent.tasks import Engine

_COINS = "left out unless the design is one-run"
ConfidenceOption = Annotated[float, typer.Option("--confidence", help="Confidence of each statement.")]


@app.command("audit")
@takes(lambda: [adversary_option("worst-case", flag="--against"), *adversary_options(), *curve_options()])
def audit_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="RUN|SCORES", help="A run, a score file, a LiRA folder or a Privacy Meter log folder."),
    ],
    attack: Annotated[
        str, typer.Option("--attack", help="For a run: loss, confidence, lira, rmia, canary, ...")
    ] = "loss",
    against_mu: Annotated[
        list[float] | None, typer.Option("--against-mu", help="Gaussian curve to test; repeatable.")
    ] = None,
    confidence: ConfidenceOption = 0.95,
    delta: Annotated[float, typer.Option("--delta", help="delta for the bounds on epsilon.")] = 1e-5,
    fpr: Annotated[list[float] | None, typer.Option("--fpr", help="False positive rate for TPR; repeatable.")] = None,
    rule: Annotated[
        str,
        typer.Option("--rule", help="Thresholds: ranks:FPR,.. | given:T | bonferroni:T,.. | split:FRACTION."),
    ] = "ranks:0.01,0.1,0.3",
    guesses: Annotated[
        str | None, typer.Option("--guesses", help="One run: MEMBERS,NON_MEMBERS guessed, fixed in advance.")
    ] = None,
    design: Annotated[
        str | None, typer.Option("--design", help="independent, one-run or population; default: as the scores say.")
    ] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option("--noise-multiplier", help="For scores: the release they are tested against.")
    ] = None,
    sample_rate: Annotated[float | None, typer.Option("--sample-rate", help="With --steps: DP-SGD.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="With --sample-rate: DP-SGD.")] = None,
    dimension: Annotated[int | None, typer.Option("--dimension", help="Released coordinates.")] = None,
    source_format: Annotated[str, typer.Option("--format", help="auto, run, scores, lira or privacy-meter.")] = "auto",
    target: Annotated[int, typer.Option("--target", help="Which model of a LiRA or Privacy Meter folder.")] = 0,
    records: Annotated[int, typer.Option("--records", help="Members and non-members to score, at most.")] = 1000,
    models: Annotated[int, typer.Option("--models", help="Shadow models.")] = 16,
    canaries: Annotated[int, typer.Option("--canaries", help="Gradient canaries.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Of the attack and of split:.")] = 0,
    engine: Annotated[str, typer.Option("--engine", help="local, dask or ray.")] = "local",
    address: Annotated[str | None, typer.Option("--address", help="Of the Dask scheduler or the Ray head.")] = None,
    workers: Annotated[int, typer.Option("--workers", help="Processes of the local engine.")] = 1,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Give up when no task was finished for so many seconds.")
    ] = None,
    work: Annotated[Path | None, typer.Option("--work", help="Folder for shadow models, new or of an attack.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in that folder.")] = False,
    save: Annotated[
        Path | None, typer.Option("--save-scores", help="Write the scores to a .npz, .parquet or .csv file.")
    ] = None,
    fail: Annotated[bool, typer.Option("--fail-if-inconsistent", help="Exit code 1 when a claim is refuted.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page for people, with its picture as .svg and .png.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="In the page, show how the scores of single records are distributed.")
    ] = False,
    json: JsonOption = False,
    **given: Any,
) -> None:
    """Bound from below what the release gives away, and judge the claims made for it."""
    if private and html is None:
        raise ParameterError("private", private, "left out unless --html is given")
    kind, rates = kind_of(source, source_format), fpr or (0.001, 0.01, 0.1)
    check_before_work(confidence, delta, rates, against_mu or (), seed, save, html)
    check_fit(
        kind,
        attack,
        target,
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=steps,
        dimension=dimension,
    )
    if kind != "run":
        left = {"records": records, "models": models, "canaries": canaries, "engine": engine, "address": address}
        check_unused(left | {"workers": workers, "timeout": timeout, "work": work, "resume": resume})
    chosen = None if design is None else choice(Design, design, "design")
    thresholds, counts = parse_rule(rule, seed), None if guesses is None else parse_guesses(guesses)
    mechanism = (
        ledger_mechanism(source) if kind == "run" else mechanism_of(noise_multiplier, sample_rate, steps, dimension)
    )
    if counts is not None and kind == "run" and chosen is not Design.ONE_RUN:
        raise ParameterError("guesses", guesses, _COINS)
    claims = claims_of(mechanism, against_mu, {**given, "dimension": dimension})
    if kind == "run":
        where = engine_of(engine, address, workers)
        scores = _attack(source, attack, records, models, canaries, seed, where, timeout, work, resume, quiet=json)
    else:
        scores = read_scores(source, kind, attack, target, chosen)
    if chosen is not None and scores.design is not chosen:
        scores = Scores(scores.member, scores.non_member, scores.meta, chosen)
    if counts is not None and scores.design is not Design.ONE_RUN:
        raise ParameterError("guesses", guesses, _COINS)
    if save is not None:
        save_scores(save, scores)
    with progress_bar("audit") as bar:
        report = audit(
            scores,
            claims,
            delta=delta,
            fprs=rates,
            rule=thresholds,
            guesses=counts,
            confidence=confidence,
            progress=bar,
        )
    if html is not None:
        write_page(html, report, claims, thresholds, private=private)
    strict_json(report.to_json()) if json else print_audit(report)
    if fail and any(verdict.finding is Finding.INCONSISTENT for verdict in report.verdicts.values()):
        raise typer.Exit(1)


@app.command("plan-audit")
def plan_command(
    claimed_mu: Annotated[float, typer.Option("--claimed-mu", help="The Gaussian curve to be refuted.")],
    true_mu: Annotated[float, typer.Option("--true-mu", help="The curve the release is feared to have.")],
    unit: Annotated[str, typer.Option("--unit", help="canaries, models or one-run canaries.")] = "canaries",
    power: Annotated[float, typer.Option("--power", help="Wanted probability of refuting the claim.")] = 0.8,
    confidence: ConfidenceOption = 0.95,
    json: JsonOption = False,
) -> None:
    """How many canaries or models tell a feared curve from a claimed one."""
    counted = choice(Unit, unit, "unit")
    _check.non_negative(claimed_mu=claimed_mu)
    _check.non_negative(true_mu=true_mu)
    plan = plan_audit(GaussianTradeOff(claimed_mu), GaussianTradeOff(true_mu), counted, confidence, power)
    strict_json({"schema": "reticent.plan/1", **plan.to_json()}) if json else print_plan(plan)


def _attack(
    source: Path,
    name: str,
    records: int,
    models: int,
    canaries: int,
    seed: int,
    engine: Engine,
    timeout: float | None,
    work: Path | None,
    resume: bool,
    *,
    quiet: bool,
) -> Scores:
    from reticent.attacks.registry import AttackSettings, find_attack

    found = find_attack(name)
    with progress_bar(f"attack {name}") as bar:
        settings = AttackSettings(
            records=records,
            models=models,
            canaries=canaries,
            seed=seed,
            engine=engine,
            work=work,
            resume=resume,
            timeout=timeout,
            announce=None if quiet else lambda line: typer.echo(line, err=True),
            progress=told(bar),
        )
        return found.scores(source, settings)
