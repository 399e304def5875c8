"""Everything that the page is set to, as text: what is typed, what the address says, what Undo goes back to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from reticent.adversaries import Adversary
from reticent.calibration import Target, Unknown
from reticent.calibration.targets import TARGETS as KINDS
from reticent.dashboard.catalogue import (
    ATTACKERS,
    OF_RUNS,
    OF_SAMPLERS,
    ONE_RUN,
    PARAMETERS,
    PLACES,
    RELEASED,
    TARGETS,
    UNKNOWNS,
)
from reticent.dashboard.released import MOST_STEPS, release_of
from reticent.errors import ParameterError
from reticent.mechanisms import DPSGD, Mechanism, Neighbouring, Selection
from reticent.mechanisms.codec import within_reach
from reticent.mechanisms.selection import runs_called
from reticent.registry import parameters_of
from reticent.samplers import INDEPENDENT, SAMPLERS

OWN_RELATION = "own"
"""Each attacker's own neighbouring relation."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that the page is set to, as text.

    Attributes:
        start: before anybody sets it.
        choices: what can be chosen, and what the page calls it; none where it is typed or written by the page.
        longest: letters that it may have.
        compared: it is kept of setting A in a comparison.
        control: a control of the page holds it; the page's script keeps the others.
    """

    start: str
    choices: Mapping[str, str] = field(default_factory=dict)
    longest: int = 40
    compared: bool = False
    control: bool = True


_PANELS = {"explore": "Explore", "calibrate": "Calibrate", "compare": "Compare", "open": "Open"}
_VIEWS = {"curves": "Trade-off", "roc": "Log-log", "profile": "ε – δ", "guesses": "Guesses", "table": "Table"}
_MECHANISMS = {name: each.label for name, each in RELEASED.items()}
_SAMPLERS = {name: kind.title for name, kind in SAMPLERS.items()}
_LAWS = {ONE_RUN: "no", **{name: name.replace("-", " ") for name in OF_RUNS}}
_RELATIONS = {
    OWN_RELATION: "each attacker's own",
    "add-remove": "add/remove",
    "replace": "replace",
    "zero-out": "zero out",
}
SETTINGS: dict[str, Setting] = {
    "panel": Setting("explore", _PANELS),
    "mechanism": Setting("dpsgd", _MECHANISMS, compared=True),
    "by": Setting("rate", {"rate": "Rate · steps", "data": "Records · epochs"}, compared=True),
    **{p.name: Setting(p.start, compared=True, control=False) for p in PARAMETERS.values()},
    "sampler": Setting(INDEPENDENT.name, _SAMPLERS, compared=True),
    "selection": Setting(ONE_RUN, _LAWS, compared=True),
    "relation": Setting(OWN_RELATION, _RELATIONS, compared=True),
    "attackers": Setting("relaxed", longest=600),
    "view": Setting("curves", _VIEWS),
    "target": Setting("advantage", {name: label for name, (label, *_) in TARGETS.items()}),
    "goal": Setting("0.1"),
    "place": Setting(""),
    "unknown": Setting("noise-multiplier", {name: label for name, (label, *_) in UNKNOWNS.items()}),
    "ledger": Setting("", longest=6_000, compared=True, control=False),
    "policy": Setting("", longest=6_000, control=False),
    "pinned": Setting("", longest=20_000, control=False),
}
DEFAULTS = {name: setting.start for name, setting in SETTINGS.items()}
_LONGEST_ADDRESS = 60_000


@dataclass(frozen=True, slots=True)
class State:
    """The settings of one page.

    Attributes:
        values: text by name; every name of ``DEFAULTS``, and no other.
    """

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Any) -> State:
        """From whatever a browser sent: unknown names are dropped, what cannot be chosen is the default.

        Raises:
            ParameterError: something is not a text, or longer than any sensible one.
        """
        if not isinstance(given, Mapping):
            raise ParameterError("settings", type(given).__name__, "names with texts")
        values = dict(DEFAULTS)
        for name in SETTINGS.keys() & given.keys():
            text, setting = given[name], SETTINGS[name]
            if isinstance(text, (int, float)) and not isinstance(text, bool):
                text = repr(text)
            if not isinstance(text, str) or len(text) > setting.longest:
                raise ParameterError(name, _shown(text), f"a text of at most {setting.longest} characters")
            if not setting.choices or text in setting.choices:
                values[name] = text.strip()
        return cls(values)

    @classmethod
    def of_address(cls, query: str) -> State:
        """From the part of an address after the question mark."""
        return cls.of(
            dict(parse_qsl(query.removeprefix("?")[:_LONGEST_ADDRESS], keep_blank_values=True, max_num_fields=64))
        )

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def address(self) -> str:
        """The part of an address after the question mark: only what is not the default."""
        return urlencode({name: text for name, text in self.values.items() if text != DEFAULTS[name]})

    def address_of(self, *names: str) -> str:
        """Those values, whether they are the default or not: laid over other settings they change them."""
        return urlencode({name: self.values[name] for name in names})

    @property
    def picture(self) -> str:
        """The view that is drawn: the trade-off curves where a table is shown."""
        return "curves" if self["view"] == "table" else self["view"]

    def pinned(self) -> State | None:
        """Setting A of a comparison, or None where none is pinned."""
        return State.of_address(self["pinned"]) if self["pinned"] else None


def mechanism_of(state: State) -> Mechanism:
    """What was released: one run, or the best of several.

    Raises:
        ParameterError: a field is empty, no number, or out of its domain.
        ArtifactError: the file says nothing that can be assessed.
    """
    run = _one_run(state)
    if state["selection"] == ONE_RUN:
        return run
    law = runs_called(state["selection"])
    return Selection(run, law(**{own: number(state, name) for name, own in OF_RUNS[law.name].items()}))


def _one_run(state: State) -> Mechanism:
    """What one run releases."""
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
    given = {p.name: _value(state, p.name) for p in (*parameters_of(DPSGD), *DPSGD.extras) if p.name in needed | filled}
    made = DPSGD.resolved({**given, "sampler": sampler.name, "num_parameters": _num_parameters(state)})
    if made["steps"] > MOST_STEPS:
        raise ParameterError("epochs", state["epochs"], f"so few that the run has at most {MOST_STEPS} steps")
    return DPSGD(**made)


def _value(state: State, name: str) -> Any:
    """What a field says, as its kind is."""
    if PARAMETERS[name].text:
        return state[name]
    return count(state, name) if PARAMETERS[name].whole else number(state, name)


def _num_parameters(state: State) -> int | None:
    """The dimension, where no attacker asks in how many the direction is unknown, or one needs that of the release."""
    wanted = [ATTACKERS[name] for name in set(state["attackers"].split(",")) & set(ATTACKERS)]
    asked = any(one.parameter == "dimension" for one in wanted)
    counted = any(one.kind.counts_parameters for one in wanted)
    return count(state, "dimension") if state["dimension"] and (counted or not asked) else None


def adversaries_of(state: State) -> tuple[Adversary, ...]:
    """Who attacks, in the order of the page; the worst case is always the first.

    Raises:
        ParameterError: the number that an attacker takes cannot be read.
    """
    wanted = set(state["attackers"].split(","))
    chosen = [(name, a) for name, a in ATTACKERS.items() if name in wanted or name == "worst-case"]
    own = {"dpsgd": (), "ledger": ("dimension",)}.get(state["mechanism"], RELEASED[state["mechanism"]].parameters)
    # a number that is the mechanism's, or left empty, is not the attacker's
    asked = {a.parameter for _, a in chosen if a.parameter and a.parameter not in own and state[a.parameter]}
    return tuple(a.make(_value(state, a.parameter) if a.parameter in asked else None) for _, a in chosen)


def relation_of(state: State) -> Neighbouring | None:
    """Between which data sets; None leaves it to each attacker."""
    return None if state["relation"] == OWN_RELATION else Neighbouring(state["relation"])


def target_of(state: State) -> Target:
    """What a calibration must reach.

    Raises:
        ParameterError: a number cannot be read or cannot be reached by anybody.
    """
    goal, kind = number(state, "goal"), KINDS[state["target"]]
    stated = (state["place"] or PLACES.get(kind.name, "")).split(";") if kind.places else []
    if len(stated) != len(kind.places):
        wanted = f"{len(kind.places)} numbers, such as {PLACES[kind.name]}"
        raise ParameterError("place", _shown(state["place"]), wanted)
    found: Target = kind(goal, *(_number("place", text) for text in stated))
    return found


def unknown_of(state: State) -> Unknown:
    """What a calibration searches."""
    return UNKNOWNS[state["unknown"]][2]


def number(state: State, name: str) -> float:
    """A finite number from a field."""
    return _number(name, state[name])


def count(state: State, name: str) -> int:
    """A whole number from 1 to a billion from a field."""
    value = _number(name, state[name])
    if not (1 <= value <= MOST_STEPS and value == int(value)):
        raise ParameterError(name, state[name], "a whole number from 1 to a billion")
    return int(value)


def _number(name: str, text: str) -> float:
    value = parsed(text)
    if not math.isfinite(value):
        raise ParameterError(name, _shown(text), "a number, such as 1.5, 1e-5, 10% or 1/100")
    return value


def numbers_of(state: State) -> dict[str, float]:
    """What is typed for each parameter, where it is a number: the place of its slider."""
    found = {name: parsed(state[name]) for name in PARAMETERS}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def parsed(text: str) -> float:
    """A number as people type it: 1.5 or 1,5, 10%, 1/100; NaN where it is none."""
    plain = text.replace(" ", "").replace("_", "x")  # Python reads 1_000, people do not write it
    if "." not in plain and plain.count(",") == 1:
        plain = plain.replace(",", ".")
    above, slash, below = plain.partition("/")
    try:
        if slash:
            return float(above) / float(below)
        return float(plain[:-1]) / 100.0 if plain.endswith("%") else float(plain)
    except (ValueError, ZeroDivisionError):
        return math.nan


def _shown(value: object) -> str:
    return str(value)[:60]
