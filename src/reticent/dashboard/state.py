"""Everything that the page is set to, as text: what is typed, what the address says, what Undo goes back to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from reticent.dashboard.catalogue import CHOICES, OF_RUNS, ONE_RUN, OWN, PARAMETERS, RELEASED, TARGETS, UNKNOWNS
from reticent.kernel.errors import ParameterError
from reticent.kernel.samplers import INDEPENDENT, SAMPLERS


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
SETTINGS: dict[str, Setting] = {
    "panel": Setting("explore", _PANELS),
    "mechanism": Setting("dpsgd", _MECHANISMS, compared=True),
    "by": Setting("rate", {"rate": "Rate · steps", "data": "Records · epochs"}, compared=True),
    **{p.name: Setting(p.start, compared=True, control=False) for p in PARAMETERS.values()},
    "sampler": Setting(INDEPENDENT.name, _SAMPLERS, compared=True),
    "selection": Setting(ONE_RUN, _LAWS, compared=True),
    **{name: Setting(OWN, choices, compared=True) for name, choices in CHOICES.items()},
    "attackers": Setting("relaxed", longest=600),
    "view": Setting("curves", _VIEWS),
    "target": Setting("advantage", {name: label for name, (label, *_) in TARGETS.items()}),
    "goal": Setting("0.1"),
    "place": Setting(""),
    "unknown": Setting("noise-multiplier", {name: label for name, (label, _) in UNKNOWNS.items()}),
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
                raise ParameterError(name, str(text)[:60], f"a text of at most {setting.longest} characters")
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


def number(name: str, text: str) -> float:
    """A finite number from a field.

    Raises:
        ParameterError: it is none; the error names the field.
    """
    value = parsed(text)
    if not math.isfinite(value):
        raise ParameterError(name, text[:60], "a number, such as 1.5, 1e-5, 10% or 1/100")
    return value


def numbers(name: str, text: str) -> list[float]:
    """Several of them, with semicolons between: a comma may be that of a number."""
    return [number(name, one) for one in text.split(";")]


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
