"""The requests that the settings make, what a file says was released among them: what each panel asks of the verbs."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import Any

from reticent.calibration import Target
from reticent.calibration.targets import TARGETS as KINDS
from reticent.certificates.document.schema import CALIBRATED, OF_THE_DASHBOARD, SETTINGS
from reticent.dashboard.catalogue import (
    ASKED,
    ATTACKERS,
    CHOICES,
    OF_RUNS,
    OF_SAMPLERS,
    ONE_RUN,
    OWN,
    PARAMETERS,
    PLACES,
    RELEASED,
)
from reticent.dashboard.state import State, number, numbers
from reticent.io.strict import loads
from reticent.kernel.adversaries import Adversary
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.registry import parameters_of, typed
from reticent.kernel.risk.questions import Questions
from reticent.kernel.samplers import SAMPLERS
from reticent.mechanisms.codec import mechanism_of, within_reach
from reticent.pairs.runs import runs_called
from reticent.verbs import Assess, Calibrate, Certify, Differ, Request
from reticent.verbs.names import USUAL, Attackers
from reticent.verbs.releases import Release
from reticent.verbs.request import spelling_of

MOST_STEPS = 10**9
"""Counts above this are not computed here: they would keep the server busy for minutes."""
_NONE = "a file that says what was released: choose a ledger, a certificate or a DpEvent"


def release_of(text: str) -> Mechanism:
    """The mechanism that the settings hold as JSON.

    Raises:
        ParameterError: no file was chosen, or it counts beyond all use.
        ArtifactError: the text describes no mechanism.
    """
    if not text:
        raise ParameterError("file", "", _NONE)
    document = loads(text, "the settings")
    if not isinstance(document, dict):
        raise ParameterError("file", text[:60], _NONE)
    release = mechanism_of(document)
    for part in release.singles:
        if part.steps > MOST_STEPS:
            raise ParameterError("steps", part.steps, "a whole number up to a billion")
    return release


def as_text(release: Mechanism) -> str:
    """The mechanism as the settings keep it; what is not stated is left out."""
    return json.dumps(Release(release).written(), separators=(",", ":"))


def release_in(document: Any, name: str) -> Mechanism:
    """What a file says was released: a ledger, a certificate, a mechanism as ``risk --json`` shows it, or a DpEvent.

    Raises:
        ArtifactError: it says nothing of the kind, or a ledger contradicts itself.
        UnsupportedError: an event has no counterpart here.
    """
    inner = document.get("mechanism") if isinstance(document, dict) else None
    return Release.of(inner if isinstance(inner, dict) else document, name).mechanism


def assess_of(state: State) -> Assess:
    """What each attacker can learn.

    Raises:
        ParameterError: a field is empty, no number, or out of its domain.
        ArtifactError: the file says nothing that can be assessed.
    """
    who = Attackers(_adversaries(state))
    return Assess.of(release=Release(_released(state)), adversary=who, **_asked(state, Assess))


@cache
def usual() -> Questions:
    """Where curves are read before anybody says so."""
    return assess_of(State.of({})).questions


def calibrate_of(state: State) -> tuple[Calibrate, ...]:
    """What each attacker would allow, the worst case first.

    Raises:
        ParameterError, ArtifactError: as for ``assess_of``; or nobody can reach the target.
    """
    release, target, more = Release(_released(state)), _target(state), _asked(state, Calibrate)
    shared = {"release": release, "target": target, "unknown": state["unknown"], **more}
    return tuple(Calibrate.of(adversary=who, **shared) for who in _adversaries(state))


def differ_of(a: State, b: State) -> Differ:
    """What the worst case learns more from which of two settings, asked as the second say.

    Raises:
        ParameterError, ArtifactError: as for ``assess_of``.
    """
    return Differ.of(a=_released(a), b=_released(b), adversary=USUAL, **_asked(b, Differ))


def certify_of(state: State, found: Mechanism | None = None) -> Certify:
    """The certificate of the settings, or of the answer of a search that was ``found``: nobody saw a run.

    Raises:
        ParameterError, ArtifactError: as for ``assess_of``.
    """
    subject = OF_THE_DASHBOARD.format(SETTINGS if found is None else CALIBRATED)
    release, who = _released(state) if found is None else found, Attackers(_adversaries(state))
    return Certify.of(release=release, subject=subject, adversary=who, **_asked(state, Certify))


def _asked(state: State, request: type[Request]) -> dict[str, Any]:
    """The fields of a request that are asked for, as they are typed or chosen."""
    taken = {one.name for one in fields(request)}  # type: ignore[arg-type]
    said = {name: state[name] for name in ASKED if name in taken and state[name] not in ("", OWN)}
    return {name: _said(name, text) for name, text in said.items()}


def _said(name: str, text: str) -> Any:
    way = spelling_of(ASKED[name])
    if way.typed not in (int, float):
        return text
    found = numbers(name, text)
    return found if way.many else found[0]


def _released(state: State) -> Mechanism:
    """One run, or the best of several."""
    run = _run(state)
    if state["selection"] == ONE_RUN:
        return run
    law = runs_called(state["selection"])
    return Release(run).best_of(law(**{own: number(name, state[name]) for name, own in OF_RUNS[law.name].items()}))


def _run(state: State) -> Mechanism:
    if state["mechanism"] == "ledger":
        return release_of(state["ledger"])
    known = RELEASED[state["mechanism"]]
    if known.kind is not None and known.kind is not DPSGD:
        asked = [p for p in parameters_of(known.kind) if p.name in known.parameters]
        return within_reach(known.kind(**{p.name: _value(state, p.name) for p in asked if state[p.name] or p.required}))
    sampler = SAMPLERS[state["sampler"]]
    drawn = ("sample_rate", "steps") if state["by"] == "rate" else ("batch_size", "dataset_size", "epochs")
    needed = {"noise_multiplier", *drawn, *(("dataset_size",) if sampler.counts_records else ())}
    filled = {name for name in ("records_per_user", *OF_SAMPLERS[sampler.name]) if state[name]}
    given = {name: _value(state, name) for name in needed | filled}
    made = DPSGD.resolved({**given, "sampler": sampler.name, "num_parameters": _num_parameters(state)})
    if made["steps"] > MOST_STEPS:
        raise ParameterError("epochs", state["epochs"], f"so few that the run has at most {MOST_STEPS} steps")
    return DPSGD(**made)


def _value(state: State, name: str) -> Any:
    """What a field says, as its kind is."""
    if PARAMETERS[name].text:
        return state[name]
    value = number(name, state[name])
    if not PARAMETERS[name].whole:
        return value
    if not (1 <= value <= MOST_STEPS and value == int(value)):
        raise ParameterError(name, state[name], "a whole number from 1 to a billion")
    return int(value)


def _num_parameters(state: State) -> int | None:
    """The dimension, where no attacker asks in how many the direction is unknown, or one needs that of the release."""
    wanted = [ATTACKERS[name] for name in set(state["attackers"].split(",")) & set(ATTACKERS)]
    asked = any(p.name == "dimension" for one in wanted for p in one.fields)
    counted = any(one.kind.counts_parameters for one in wanted)
    return _value(state, "dimension") if state["dimension"] and (counted or not asked) else None


def _adversaries(state: State) -> tuple[Adversary, ...]:
    """Who attacks, in the order of the page; the worst case is always the first."""
    wanted = set(state["attackers"].split(","))
    chosen = [(name, a) for name, a in ATTACKERS.items() if name in wanted or name == "worst-case"]
    own = () if state["mechanism"] in (DPSGD.name, "ledger") else RELEASED[state["mechanism"]].parameters
    # a number that is the mechanism's, or left empty, is not the attacker's
    asked = [[p for p in a.fields if p.name not in own and state[p.name] not in ("", OWN)] for _, a in chosen]
    return tuple(
        a.kind(**{p.name: typed(p, state[p.name]) if p.name in CHOICES else _value(state, p.name) for p in taken})
        for (_, a), taken in zip(chosen, asked, strict=True)
    )


def _target(state: State) -> Target:
    """What a calibration must reach; what is wrong is said of the field that says it."""
    kind = KINDS[state["target"]]
    goal, usual = number("goal", state["goal"]), PLACES.get(kind.name, "")
    places = numbers("place", state["place"] or usual) if usual else []
    if len(places) != len(kind.places):
        raise ParameterError("place", state["place"], f"{len(kind.places)} numbers, such as {usual}")
    try:
        found: Target = kind(goal, *places)
    except ParameterError as error:
        place = error.name in dict(kind.places)
        raise ParameterError("place" if place else "goal", error.value, error.allowed) from None
    return found
