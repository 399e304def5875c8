"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.calibration import NoiseScale, unknowns_of
from reticent.cli._app import argument
from reticent.cli._asking import asking, made, showing
from reticent.cli._calibration import MEAN_RUNS, release_of, runs_searched, shown, unknown_of
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
from reticent.cli._tables import print_conditions, say, say_warnings
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.adversaries.base import ALL
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import Mechanism
from reticent.verbs.noise import Calibrate, Calibrated
from reticent.verbs.samplers import CalibrateSamplers, SamplerChoices
from reticent.verbs.targets import TARGET

_SCALE = "noise-scale"
_FILE = "What a file says: a ledger, a schedule, an event. All its noise is scaled by one factor."
_LEDGER = argument(
    "file",
    Path,
    "FILE",
    "A ledger (of reticent train or rt.watch), a DpEvent, or a mechanism as risk --json shows it; in JSON.",
)


def _of_file() -> click.Command:
    def ask(given: dict[str, Any]) -> Calibrate:
        name = unknown_of({_SCALE: NoiseScale()}, given["unknown"])
        runs = runs_typed(given if name == _SCALE else runs_searched(given))
        who = _one_attacker(given["adversary"], given)
        return made(Calibrate, given, release=given["file"], adversary=who, unknown=name, selection=runs)

    searched = f"What is searched: {_SCALE}, or with --selection {MEAN_RUNS}. Default: {_SCALE}."
    more = (_LEDGER, *selection_options(), *who_attacks(many=False))
    return _searching(asking("ledger", Calibrate, ASKED[Calibrate], *more, ask=ask, help=_FILE), searched)


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own, names = mechanism_options(kind), list(unknowns_of(kind))
    searched = f"What is searched: {', '.join(names)}; with --selection also {MEAN_RUNS}. Default: {names[0]}."

    def ask(given: dict[str, Any]) -> Calibrate:
        TARGET.read("target", given["target"])  # before fields are missed that it may need
        name = unknown_of(unknowns_of(kind), given["unknown"])
        stated, attackers = told_apart(kind, [given["adversary"]], given)
        release, who = release_of(kind, name, stated), _one_attacker(given["adversary"], attackers)
        return made(Calibrate, given, release=release, adversary=who, unknown=name)

    more = (*own, *who_attacks(own, many=False))
    return _searching(asking(kind.name, Calibrate, ASKED[Calibrate], *more, ask=ask, help=first_line(kind)), searched)


_SAMPLERS = "Which sampler gives the least noise for this data set, these epochs and this memory."


def _of_samplers() -> click.Command:
    def ask(given: dict[str, Any]) -> CalibrateSamplers:
        return made(CalibrateSamplers, given, adversary=_one_attacker(given["adversary"], given))

    who, do = who_attacks(many=False), ASKED[CalibrateSamplers]
    return asking("samplers", CalibrateSamplers, do, *who, ask=ask, help=_SAMPLERS)


def _searching(made: click.Command, searched: str) -> click.Command:
    """The same, with help on what may be searched, which depends on the release."""
    for one in made.params:
        if isinstance(one, click.Option) and one.name == "unknown":
            one.help = searched
    return made


def _one_attacker(name: str, given: Mapping[str, Any]) -> Adversary:
    if name == ALL:
        raise ParameterError("adversary", ALL, "one attacker; `reticent compare` shows all of them")
    (who,) = adversaries_of([name], given).each
    return who


def _show_samplers(found: SamplerChoices, given: Mapping[str, Any]) -> None:
    click.echo(repr(found))


def _show(found: Calibrated, given: Mapping[str, Any]) -> None:
    """The answer in sentences."""
    document, unknown = found.document, found[0].unknown
    measure, then = document.target.split("=")[0], "then" if document.value else "without it"
    say(f"{document.unknown.replace('-', ' ')}: {unknown.words(document.value, 6)}")
    say(
        f"{document.adversary} ({document.neighbouring}, {document.method}, {document.claim}) {then} has {measure} "
        f"{shown(document.achieved, document.target)}, asked for {document.target}"
    )
    if document.adversary != WorstCase.name:
        say(f"the worst case has {shown(document.worst_case.achieved, document.target)} at this value")
    many = "1 evaluation" if document.evaluations == 1 else f"{document.evaluations} evaluations"
    if not document.value:
        say(f"no less is possible; {many}")
    elif document.slack == 0.0:
        say(f"the end of what is searched; {many}")
    elif unknown.proven_edge:
        say(f"within a relative {document.slack:.1g} of the edge; {many}")
    else:
        say(f"a relative {document.slack:.1g} more would miss the target; a value beyond it is not ruled out; {many}")
    for note in document.worst_case.notes:
        say(str(note))
    print_conditions([(document.adversary, document.conditions)])
    if isinstance(unknown, NoiseScale):
        say("every noise multiplier is to be multiplied by the noise scale")
    say_warnings(found.warnings)
    say_if_unused(given.get("dimension"), [document.adversary])


ASKED = {Calibrate: showing(_show), CalibrateSamplers: showing(_show_samplers)}
calibrate = per_mechanism(
    "calibrate",
    "The parameter that keeps an attacker below a target.",
    _of_kind,
    {"ledger": (_FILE, _of_file), "samplers": (_SAMPLERS, _of_samplers)},
)
