"""Targets as people type them: ``advantage=0.1``, ``epsilon=3@1e-5``."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from reticent.calibrate.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
)
from reticent.errors import ParameterError

_PLAIN: dict[str, Any] = {"advantage": Advantage, "bayes-security": BayesSecurity, "mu": Mu}
_PLACED: dict[str, Any] = {
    "success": Success,
    "tpr": TprAtFpr,
    "epsilon": EpsilonAtDelta,
    "reconstruction": Reconstruction,
}
_PLACE_NAMES = {"success": "PRIOR", "tpr": "FPR", "epsilon": "DELTA", "reconstruction": "BASELINE"}
_PLACES = {"success": "0.5", "tpr": "0.01", "epsilon": "1e-5", "reconstruction": "0.1"}
"""Where the risk of a target is read, in examples."""
MEANT = {"eps": "epsilon", "e": "epsilon", "adv": "advantage", "bayes": "bayes-security", "security": "bayes-security"}
MEANT |= {"gdp": "mu", "power": "tpr", "accuracy": "success", "rero": "reconstruction"}
"""Targets as other tools call them."""


def target_of(text: str | None) -> Target:
    """A target from its text.

    Raises:
        ParameterError: the text is not ``NAME=VALUE`` or ``NAME=VALUE@PLACE`` with a known name; the message has the
            nearest name.
    """
    typed, _, rest = (text or "").partition("=")
    name = typed.strip().lower().replace("_", "-")
    numbers = rest.split("@")
    if name in _PLACED and len(numbers) == 1 and rest:
        raise ParameterError("target", text, f"told where it is read: write {name}={rest}@{_PLACES[name]}")
    wanted = 1 if name in _PLAIN else 2
    if (name not in _PLAIN and name not in _PLACED) or len(numbers) != wanted or not rest:
        allowed = ", ".join([f"{n}=V" for n in _PLAIN] + [f"{n}=V@{place}" for n, place in _PLACE_NAMES.items()])
        raise ParameterError("target", text, f"one of {allowed}{_nearest(name, rest)}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ParameterError("target", text, "a name and decimal numbers") from None
    try:
        found: Target = (_PLAIN | _PLACED)[name](*values)
    except ParameterError as error:
        raise ParameterError("target", text, f"given with {error.name} as {error.allowed}") from None
    return found


def _nearest(name: str, rest: str) -> str:
    """What was probably meant, spelt out, where the name is not known."""
    if name in _PLAIN or name in _PLACED or not name:
        return ""
    near = [MEANT[name]] if name in MEANT else get_close_matches(name, [*_PLAIN, *_PLACED], 1, 0.5)
    if not near:
        return ""
    meant = near[0]
    value = rest or "V"
    place = f"@{_PLACES[meant]}" if meant in _PLACES and "@" not in value else ""
    return f" (did you mean {meant}={value}{place}?)"
