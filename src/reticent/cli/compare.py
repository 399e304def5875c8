"""``reticent compare``: the noise that each attacker would allow, for one run and one target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import Field

from reticent.adversaries import Adversary, Method
from reticent.adversaries.base import ALL
from reticent.calibration import NoiseMultiplier, Target, UnreachableError
from reticent.calibration.spelling import target_of
from reticent.cli._app import JSON, argument, command
from reticent.cli._calibration import TARGET, release_of, shown, with_status
from reticent.cli._options import (
    adversaries_of,
    adversary_option,
    adversary_options,
    curve_options,
    first_line,
    mechanism_options,
    method_of,
    per_mechanism,
    say_if_unused,
    told_apart,
)
from reticent.cli._tables import print_conditions, print_json, print_table, say
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.mechanisms.codec import mechanism_record
from reticent.pairs.neighbouring import relation_of
from reticent.risk.report import ConditionRecord, Record, condition_records, strict
from reticent.text import digits

SCHEMA = "reticent.comparison/1"
_NOISE = "noise_multiplier"


class ComparisonRow(Record):
    """One adversary: the least noise that keeps it within the target, and what the worst case has there.

    ``noise_ratio`` is against the worst case of the same relation, null where that is no row.
    """

    adversary: str
    neighbouring: str
    method: str
    claim: str
    conditions: list[ConditionRecord]
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


def _who(own: Sequence[click.Option] = ()) -> list[click.Option]:
    return [adversary_option(ALL), *adversary_options(own), *curve_options()]


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own = [parameter for parameter in mechanism_options(kind) if parameter.name != _NOISE]

    @command(kind.name, TARGET, *own, *_who(own), JSON, help=first_line(kind))
    def of_kind(json: bool, **given: Any) -> None:
        release, _ = told_apart(kind, given["adversary"] or [ALL], given)
        _answer(release_of(kind, "noise-multiplier", release), json, given)

    return of_kind


_RUN = "A finished run: its sampling and steps, with other noise."


def _of_run() -> click.Command:
    @command("run", argument("folder", Path, "RUN", "A finished run directory."), TARGET, *_who(), JSON, help=_RUN)
    def of_run(folder: Path, json: bool, **given: Any) -> None:
        from reticent.training import load_run  # torch is needed for a run only

        _answer(load_run(folder).ledger.equal_steps(), json, given)

    return of_run


compare = per_mechanism(
    "compare",
    "The noise that each attacker would allow.",
    _of_kind,
    {"run": (_RUN, _of_run)},
    lambda kind: hasattr(kind, _NOISE),
)


def compared(
    mechanism: Mechanism,
    target: Target,
    adversaries: tuple[Adversary, ...],
    relation: Neighbouring | None,
    method: Method | None,
    json: bool = True,
) -> ComparisonDocument:
    """Calibrate the noise against each attacker; one that cannot be answered is named with its reason."""
    rows, skipped = [], {}
    for who in adversaries:
        try:
            answer = with_status(mechanism, NoiseMultiplier(), target, who, relation, method, json)
        except (UnsupportedError, UnreachableError, ParameterError) as error:
            skipped[who.name] = str(error)
            continue
        rows.append((answer, answer.worst_case().value, answer.assessment()))
    reference = {a.neighbouring: a.value for a, _, _ in rows if a.adversary.name == "worst-case"}
    return ComparisonDocument(
        target=str(target),
        mechanism=mechanism_record(mechanism),
        rows=[
            ComparisonRow(
                adversary=a.adversary.name,
                neighbouring=a.neighbouring.value,
                method=a.method.value,
                claim=found.claim.value,
                conditions=condition_records(found.conditions),
                noise_multiplier=a.value,
                achieved=strict(a.achieved.value),
                worst_case_achieved=strict(worst),
                noise_ratio=a.value / reference[a.neighbouring] if a.neighbouring in reference else None,
            )
            for a, worst, found in rows
        ],
        skipped=skipped,
    )


def _answer(mechanism: Mechanism, json: bool, given: dict[str, Any]) -> None:
    names = given["adversary"] or [ALL]
    _, attackers = told_apart(type(mechanism), names, given)
    chosen, _ = adversaries_of(names, attackers)
    relation, method = relation_of(given["neighbouring"]), method_of(given["method"])
    document = compared(mechanism, target_of(given["target"]), chosen, relation, method, json)
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
            ("noise\nmultiplier", [digits(row.noise_multiplier, 6, up=True) for row in rows]),
            ("against\nworst case", ["" if row.noise_ratio is None else f"{row.noise_ratio:.3f}" for row in rows]),
            ("achieved", [shown(row.achieved, document.target) for row in rows]),
            ("worst case\nat this noise", [shown(row.worst_case_achieved, document.target) for row in rows]),
        ],
    )
    for name, reason in document.skipped.items():
        say(f"{name} left out: {reason}")
    print_conditions([(row.adversary, row.conditions) for row in rows])
