"""``reticent audit``: what an attack really achieves, and whether that refutes a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from reticent.auditing import save_scores
from reticent.auditing.files import check_score_path
from reticent.cli._app import option
from reticent.cli._asking import asking, made, parameters_of, told
from reticent.cli._audit_output import print_audit
from reticent.cli._options import adversaries_of, told_apart, who_attacks
from reticent.cli.progress import note, waiting
from reticent.io.outputs import refuse_existing
from reticent.verbs.evidence import NO_RELEASE, Audit
from reticent.verbs.names import WORST
from reticent.verbs.request import leave_out
from reticent.verbs.sealing import Sealed

_OF_ONE_RECORD = (
    "note: the scores of single records are private, low ones too: no guarantee covers them, and they promise a person "
    "nothing (docs/theory/auditing.md)"
)


def _ask(given: dict[str, Any], who: Sequence[click.Option]) -> Audit:
    """The request; what attackers take is told apart from what the release takes.

    Args:
        who: the options of attackers, the names first.
    """
    request, names = made(Audit, given), given["against"]
    claimed = None if request.kind == "run" else request.claimed  # a run says what it released
    attackers = {str(one.name): given[str(one.name)] for one in who[1:]}
    if claimed is not None:
        _, attackers = told_apart(type(claimed), names or [WORST.name], {**given, **attackers})
    elif request.kind != "run" and not names:
        leave_out(attackers, NO_RELEASE)
    if not names and all(value is None for value in attackers.values()):
        return request
    return replace(request, against=adversaries_of(names or [WORST.name], attackers, option="against"))


def _do(request: Audit, given: Mapping[str, Any], json: bool) -> None:
    """Attack, keep the scores, judge, and write the page."""
    plan, new = request.sealed()
    if plan is not None and new:
        told(Sealed(plan), given, json)
        return
    save, html, private = given["save"], given["html"], given["private"]
    if html is None:
        leave_out({"private": private or None}, " unless --html is given")
    if save is not None:
        refuse_existing(check_score_path(save))
    if html is not None:
        from reticent.certificates.page.audit_page import (  # matplotlib takes a while to import
            audit_files,
            write_audit_page,
        )

        audit_files(html)
    with waiting("") as progress:
        scores = request.scores(progress, None if json else note, note)
        if save is not None:
            save_scores(save, scores)
        found = request.judgement(scores, progress)
    if html is not None:
        files = write_audit_page(html, found.report, found.claims, rule=request.thresholds, private=private)
        click.echo(f"open {files.page}", err=True)
    if private or save is not None:
        click.echo(_OF_ONE_RECORD, err=True)
    told(found, given, json, lambda found, given: print_audit(found.report, found.claimed, found.plan))
    if given["fail"] and found.refuted:
        raise click.exceptions.Exit(1)


ASKED = {Audit: _do}
SHOWN_BY = (
    option("save", Path, "Write the scores to a .npz, .parquet or .csv file.", flag="--save-scores"),
    option("fail", bool, "Exit code 1 when a claim is refuted.", flag="--fail-if-inconsistent"),
    option("html", Path, "Write a page for people, with its picture as .svg and .png."),
    option("private", bool, "In the page, show how the scores of single records are distributed."),
)


def audit() -> click.Command:
    """The command, with the attackers that are listed now."""
    who = who_attacks(parameters_of(Audit), flag="--against")
    return asking(
        "audit",
        Audit,
        _do,
        ask=lambda given: _ask(given, who),
        after=(*SHOWN_BY, *who),
        help="Bound from below what the release gives away, and judge the claims made for it.",
    )
