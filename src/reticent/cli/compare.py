"""``reticent compare``: the noise that each attacker would allow, or two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.calibration import NoiseMultiplier
from reticent.cli._app import argument
from reticent.cli._asking import asking, made, showing
from reticent.cli._calibration import release_of, shown
from reticent.cli._options import (
    adversaries_of,
    first_line,
    mechanism_options,
    per_mechanism,
    runs_typed,
    say_if_unused,
    selection_options,
    told_apart,
    who_attacks,
)
from reticent.cli._tables import print_conditions, print_table, say, say_warnings
from reticent.kernel.adversaries.base import ALL
from reticent.kernel.mechanisms import Mechanism
from reticent.verbs.noise import Calibrations, Compare
from reticent.verbs.side_by_side import Differ, Differences

_NOISE = "noise_multiplier"


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own = [parameter for parameter in mechanism_options(kind) if parameter.name != _NOISE]

    def ask(given: dict[str, Any]) -> Compare:
        stated, _ = told_apart(kind, given["adversary"] or [ALL], given)
        return _request(release_of(kind, "noise-multiplier", stated), given)

    more = (*own, *who_attacks(own, ALL))
    return asking(kind.name, Compare, ASKED[Compare], *more, ask=ask, help=first_line(kind))


_RUN = "A finished run: its sampling and steps, with other noise."


def _of_run() -> click.Command:
    def ask(given: dict[str, Any]) -> Compare:
        from reticent.training import load_run

        return _request(load_run(given["folder"]).ledger.equal_steps(), given)

    more = (argument("folder", Path, "RUN", "A finished run directory."), *who_attacks(default=ALL))
    return asking("run", Compare, ASKED[Compare], *more, ask=ask, help=_RUN)


_TWO = "Two runs or certificates: who learns more, and what differs."

_BOTH = [argument(name.lower(), Path, name, "A run folder, a ledger or a certificate.") for name in "AB"]


def _side_by_side() -> click.Command:
    def ask(given: dict[str, Any]) -> Differ:
        who = adversaries_of(given["adversary"] or [ALL], given)
        return made(Differ, given, a=given["a"], b=given["b"], adversary=who, selection=runs_typed(given))

    more = (*_BOTH, *selection_options(), *who_attacks(default=ALL))
    return asking("files", Differ, ASKED[Differ], *more, ask=ask, help=_TWO)


def _show_two(found: Differences, given: Mapping[str, Any]) -> None:
    click.echo(str(found))


def _request(release: Mechanism, given: Mapping[str, Any]) -> Compare:
    names = given["adversary"] or [ALL]
    _, attackers = told_apart(type(release), names, given)
    return made(Compare, given, release=release, adversary=adversaries_of(names, attackers))


def _show(found: Calibrations, given: Mapping[str, Any]) -> None:
    document = found.document
    say_if_unused(given.get("dimension"), given.get("adversary") or [ALL])
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
    say_warnings(found.warnings)


ASKED = {Compare: showing(_show), Differ: showing(_show_two)}
compare = per_mechanism(
    "compare",
    "The noise that each attacker would allow.",
    _of_kind,
    {"run": (_RUN, _of_run), "files": (_TWO, _side_by_side)},
    lambda kind: _NOISE in kind.searched(),
    paths=True,
)
