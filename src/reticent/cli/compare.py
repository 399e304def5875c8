"""``reticent compare``: the noise that each attacker would allow, or two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reticent.adversaries import Method
from reticent.adversaries.base import ALL
from reticent.calibration import NoiseMultiplier
from reticent.calibration.spelling import target_of
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._calibration import TARGET, release_of, shown
from reticent.cli._options import (
    adversaries_of,
    first_line,
    mechanism_options,
    method_of,
    per_mechanism,
    say_if_unused,
    told_apart,
    who_attacks,
)
from reticent.cli._paths import TWO, OfPaths
from reticent.cli._progress import waiting
from reticent.cli._tables import print_conditions, print_json, print_table, say
from reticent.mechanisms import Mechanism
from reticent.pairs.neighbouring import relation_of
from reticent.risk.report import Questions
from reticent.verbs.noise import compare as compare_each
from reticent.verbs.risks import DEFAULT_DELTA

_NOISE = "noise_multiplier"


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own = [parameter for parameter in mechanism_options(kind) if parameter.name != _NOISE]

    @command(kind.name, TARGET, *own, *who_attacks(own, ALL), JSON, help=first_line(kind))
    def of_kind(json: bool, **given: Any) -> None:
        release, _ = told_apart(kind, given["adversary"] or [ALL], given)
        _answer(release_of(kind, "noise-multiplier", release), json, given)

    return of_kind


_RUN = "A finished run: its sampling and steps, with other noise."


def _of_run() -> click.Command:
    @command(
        "run",
        argument("folder", Path, "RUN", "A finished run directory."),
        TARGET,
        *who_attacks(default=ALL),
        JSON,
        help=_RUN,
    )
    def of_run(folder: Path, json: bool, **given: Any) -> None:
        from reticent.training import load_run

        _answer(load_run(folder).ledger.equal_steps(), json, given)

    return of_run


_TWO = "Two runs or certificates: who learns more, and what differs."


def _side_by_side() -> click.Command:
    delta = option("delta", float, "Delta at which epsilon is compared; repeatable. Default: 1e-05.", many=True)

    @command("files", TWO, *who_attacks(default=ALL), delta, JSON, help=_TWO)
    def side_by_side(paths: tuple[Path, Path], json: bool, **given: Any) -> None:
        from reticent.verbs.grids import Asked
        from reticent.verbs.side_by_side import compared

        who, everybody = adversaries_of(given["adversary"] or [ALL], given)
        questions = Questions(deltas=given["delta"] or (DEFAULT_DELTA,))
        how = relation_of(given["neighbouring"]), method_of(given["method"])
        found = compared(*paths, Asked(tuple(who), everybody, *how, questions), as_stated=not any(given.values()))
        if json:
            print_json(found.document)
        else:
            click.echo(str(found))

    return side_by_side


compare = OfPaths(
    per_mechanism(
        "compare",
        "The noise that each attacker would allow.",
        _of_kind,
        {"run": (_RUN, _of_run), "files": (_TWO, _side_by_side)},
        lambda kind: _NOISE in kind.searched(),
    )
)


def _answer(mechanism: Mechanism, json: bool, given: dict[str, Any]) -> None:
    names = given["adversary"] or [ALL]
    _, attackers = told_apart(type(mechanism), names, given)
    chosen, _ = adversaries_of(names, attackers)
    with waiting("compare:") as progress:
        document = compare_each(
            mechanism,
            chosen,
            target_of(given["target"]),
            neighbouring=given["neighbouring"],
            method=method_of(given["method"]) or Method.EXACT,
            progress=progress,
        ).document
    if json:
        print_json(document)
        return
    say_if_unused(given.get("dimension"), names)
    rows = document.rows
    print_table(
        f"least noise multiplier for {document.target}",
        [
            ("attacker", [row.adversary for row in rows]),
            ("neighbouring", [row.neighbouring for row in rows]),
            ("claim", [row.claim for row in rows]),
        ],
        [
            ("noise\nmultiplier", [NoiseMultiplier().words(row.value, 6) for row in rows]),
            ("against\nworst case", ["" if row.noise_ratio is None else f"{row.noise_ratio:.3f}" for row in rows]),
            ("achieved", [shown(row.achieved, document.target) for row in rows]),
            ("worst case\nat this noise", [shown(row.worst_case_achieved, document.target) for row in rows]),
        ],
    )
    for name, reason in document.skipped.items():
        say(f"{name} left out: {reason}")
    print_conditions([(row.adversary, row.conditions) for row in rows])
