"""``reticent audit`` and ``reticent plan-audit``: what an attack really achieves, and how large an audit must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reticent import _check
from reticent.auditing import Design, Finding, Scores, Unit, save_scores
from reticent.auditing import audit as judge
from reticent.auditing import plan_audit as plan
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._asking import options_of
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
from reticent.cli._audit_output import print_audit, print_plan, write_page
from reticent.cli._options import who_attacks
from reticent.cli._progress import note, progress_bar, reporting
from reticent.cli._refusals import leave_out
from reticent.cli._tables import print_json
from reticent.curves import GaussianTradeOff
from reticent.verbs.risks import Assess

_OF_ONE_RECORD = (
    "note: the scores of single records are private, low ones too: no guarantee covers them, and they promise a person "
    "nothing (docs/theory/auditing.md)"
)
_COINS = " unless the design is one-run"
CONFIDENCE = option("confidence", float, "Confidence of each statement.", 0.95)
_OF_RELEASE = (
    option(
        "claim",
        Path,
        "For scores: the file that says what was released, as for risk ledger: a ledger, mechanism or DpEvent.",
    ),
    option(
        "noise_multiplier", float, "For scores: the release that they are tested against; alone, one Gaussian release."
    ),
    option("sample_rate", float, "With --steps: DP-SGD."),
    option("steps", int, "With --sample-rate: DP-SGD."),
    option("dimension", int, "Released coordinates."),
)
_OF_ATTACK = (
    option("records", int, "Members and non-members to score, at most.", 1000),
    option("models", int, "Shadow models.", 16),
    option("canaries", int, "Gradient canaries.", 1000),
    option("engine", str, "local, dask or ray.", "local"),
    option("address", str, "Address of the Dask scheduler or the Ray head."),
    option("workers", int, "Processes of the local engine.", 1),
    option("timeout", float, "Give up when no task was finished for this many seconds."),
    option("work", Path, "Folder for shadow models: a new one, or that of an earlier attack."),
    option("resume", bool, "Continue with what is in that folder."),
)


def audit() -> click.Command:
    """The command, with options for the attacks and attackers that are known now."""
    from reticent.attacks import ATTACKS

    return command(
        "audit",
        argument("source", Path, "RUN|SCORES", "A run, a score file, a LiRA folder or a Privacy Meter log folder."),
        option("attack", str, f"For a run: {', '.join(ATTACKS)}.", "loss"),
        option("against_mu", float, "Gaussian curve to test; repeatable.", many=True),
        CONFIDENCE,
        option("delta", float, "delta for the bounds on epsilon.", 1e-5),
        option("fpr", float, "False positive rate at which the TPR is reported; repeatable.", many=True),
        option("rule", str, "Thresholds: normal-scores | ranks:FPR,.. | given:T | bonferroni:T,.. | split:FRACTION."),
        option("guesses", str, "One run: MEMBERS,NON_MEMBERS guessed, fixed in advance."),
        option("design", str, "independent, one-run or population; default: as the scores say."),
        *_OF_RELEASE,
        option("source_format", str, "auto, run, scores, lira or privacy-meter.", "auto", flag="--format"),
        option("target", int, "Which model of a LiRA or Privacy Meter folder.", 0),
        option("seed", int, "Seed of the attack and of the rule split.", 0),
        *_OF_ATTACK,
        option("save", Path, "Write the scores to a .npz, .parquet or .csv file.", flag="--save-scores"),
        option("fail", bool, "Exit code 1 when a claim is refuted.", flag="--fail-if-inconsistent"),
        option("html", Path, "Write a page for people, with its picture as .svg and .png."),
        option("private", bool, "In the page, show how the scores of single records are distributed."),
        *who_attacks(_OF_RELEASE, flag="--against"),
        *options_of(Assess, "neighbouring", "method"),
        JSON,
    )(_audit)


def _audit(
    source: Path,
    attack: str,
    against_mu: tuple[float, ...],
    confidence: float,
    delta: float,
    fpr: tuple[float, ...],
    rule: str | None,
    guesses: str | None,
    design: str | None,
    source_format: str,
    target: int,
    seed: int,
    save: Path | None,
    fail: bool,
    html: Path | None,
    private: bool,
    json: bool,
    **given: Any,
) -> None:
    """Bound from below what the release gives away, and judge the claims made for it."""
    if html is None:
        leave_out({"private": private or None}, " unless --html is given")
    kind, rates = kind_of(source, source_format), fpr or (0.001, 0.01, 0.1)
    check_before_work(confidence, delta, rates, against_mu, seed, save, html)
    release, work = ({one.name: given.pop(one.name) for one in group} for group in (_OF_RELEASE, _OF_ATTACK))
    check_fit(kind, attack, target, release)
    if kind != "run":
        check_unused(work, _OF_ATTACK)
    chosen = None if design is None else _check.member(Design, design=design)
    thresholds = None if rule is None else parse_rule(rule, seed)
    counts = None if guesses is None else parse_guesses(guesses)
    mechanism = ledger_mechanism(source) if kind == "run" else mechanism_of(**release)
    if kind == "run" and chosen is not Design.ONE_RUN:
        leave_out({"guesses": guesses}, _COINS)
    claims = claims_of(mechanism, against_mu, {**given, "dimension": release["dimension"]})
    if kind == "run":
        scores = _attack(source, attack, seed, work, quiet=json)
    else:
        scores = read_scores(source, kind, attack, target, chosen)
    if chosen is not None and scores.design is not chosen:
        scores = Scores(scores.member, scores.non_member, scores.meta, chosen)
    if scores.design is not Design.ONE_RUN:
        leave_out({"guesses": guesses}, _COINS)
    if save is not None:
        save_scores(save, scores)
    with progress_bar("audit") as bar:
        report = judge(
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
    if private or save is not None:
        click.echo(_OF_ONE_RECORD, err=True)
    print_json(report.to_json()) if json else print_audit(report, mechanism)
    if fail and any(verdict.finding is Finding.INCONSISTENT for verdict in report.verdicts.values()):
        raise click.exceptions.Exit(1)


@command(
    "plan-audit",
    option("claimed_mu", float, "The Gaussian curve to be refuted.", required=True),
    option("true_mu", float, "The curve the release is feared to have.", required=True),
    option("unit", str, "canaries, models or one-run canaries.", "canaries"),
    option("power", float, "Wanted probability of refuting the claim.", 0.8),
    CONFIDENCE,
    JSON,
)
def plan_audit(claimed_mu: float, true_mu: float, unit: str, power: float, confidence: float, json: bool) -> None:
    """How many canaries or models it takes to distinguish a feared curve from a claimed one."""
    counted = _check.member(Unit, unit=unit)
    _check.non_negative(claimed_mu=claimed_mu)
    _check.non_negative(true_mu=true_mu)
    needed = plan(GaussianTradeOff(claimed_mu), GaussianTradeOff(true_mu), counted, confidence, power)
    print_json({"schema": "reticent.plan/1", **needed.to_json()}) if json else print_plan(needed)


def _attack(source: Path, name: str, seed: int, work: dict[str, Any], *, quiet: bool) -> Scores:
    from reticent.attacks.base import AttackSettings, find_attack

    found, engine = find_attack(name), engine_of(work.pop("engine"), work.pop("address"), work.pop("workers"))
    with progress_bar(f"attack {name}") as bar:
        announce = None if quiet else note
        settings = AttackSettings(**work, seed=seed, engine=engine, announce=announce, progress=reporting(bar))
        return found.scores(source, settings)
