"""``reticent calibrate``: how much noise keeps this attacker below that target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reticent.adversaries import Adversary, WorstCase
from reticent.adversaries.base import ALL
from reticent.calibration import NoiseScale, unknowns_of
from reticent.cli._asking import Do, asking, options_of, showing, typed_for
from reticent.cli._calibration import MEAN_RUNS, release_of, runs_searched, shown, unknown_of
from reticent.cli._ledger import LEAF, LEDGER, say_warnings
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
from reticent.cli._tables import print_conditions, say
from reticent.errors import ParameterError
from reticent.mechanisms import Mechanism
from reticent.verbs.noise import Calibrate, Calibrated
from reticent.verbs.request import Request
from reticent.verbs.samplers import CalibrateSamplers, SamplerChoices
from reticent.verbs.targets import TARGET

_SCALE = "noise-scale"
_FILE = LEAF + " All its noise is scaled by one factor."


def _of_file() -> click.Command:
    def ask(given: dict[str, Any]) -> Calibrate:
        name, _ = unknown_of({_SCALE: NoiseScale()}, given["unknown"])
        runs = runs_typed(given if name == _SCALE else runs_searched(given))
        said = {**typed_for(Calibrate, given), "unknown": name, "selection": runs}
        return Calibrate.of(release=given["file"], adversary=_one_attacker(given["adversary"], given), **said)

    searched = f"What is searched: {_SCALE}, or with --selection {MEAN_RUNS}. Default: {_SCALE}."
    more = (*selection_options(), *who_attacks(many=False), *_options(searched))
    return asking("ledger", ask, showing(_show), LEDGER, *more, help=_FILE)


def _of_kind(kind: type[Mechanism]) -> click.Command:
    own, names = mechanism_options(kind), list(unknowns_of(kind))
    searched = f"What is searched: {', '.join(names)}; with --selection also {MEAN_RUNS}. Default: {names[0]}."

    def ask(given: dict[str, Any]) -> Calibrate:
        TARGET.read("target", given["target"])  # before fields are missed that it may need
        name, _ = unknown_of(unknowns_of(kind), given["unknown"])
        stated, attackers = told_apart(kind, [given["adversary"]], given)
        release, who = release_of(kind, name, stated), _one_attacker(given["adversary"], attackers)
        return Calibrate.of(release=release, adversary=who, **{**typed_for(Calibrate, given), "unknown": name})

    more = (*own, *who_attacks(own, many=False), *_options(searched))
    return asking(kind.name, ask, showing(_show), *more, help=first_line(kind))


_SAMPLERS = "Which sampler gives the least noise for this data set, these epochs and this memory."


def _of_samplers() -> click.Command:
    def ask(given: dict[str, Any]) -> CalibrateSamplers:
        who = _one_attacker(given["adversary"], given)
        return CalibrateSamplers.of(adversary=who, **typed_for(CalibrateSamplers, given))

    more = (*who_attacks(many=False), *options_of(CalibrateSamplers))
    return asking("samplers", ask, showing(_show_samplers), *more, help=_SAMPLERS)


calibrate = per_mechanism(
    "calibrate",
    "The parameter that keeps an attacker below a target.",
    _of_kind,
    {"ledger": (_FILE, _of_file), "samplers": (_SAMPLERS, _of_samplers)},
)


def asked() -> dict[type[Request], Do]:
    """The requests that the verb takes, and what is done with them."""
    return {Calibrate: showing(_show), CalibrateSamplers: showing(_show_samplers)}


def _options(searched: str) -> list[click.Option]:
    """The options of the request; what may be searched depends on the release."""
    made = options_of(Calibrate)
    for one in made:
        one.help = searched if one.name == "unknown" else one.help
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
