"""Targets as people type them: ``advantage=0.1``, ``epsilon=3@1e-5``."""

from __future__ import annotations

from difflib import get_close_matches

from reticent.calibration.targets import TARGETS, Target
from reticent.errors import ParameterError

MEANT = {"eps": "epsilon", "e": "epsilon", "adv": "advantage", "bayes": "bayes-security", "security": "bayes-security"}
MEANT |= {"gdp": "mu", "power": "tpr", "accuracy": "success", "rero": "reconstruction"}
"""Targets as other tools call them."""


def target_of(text: str | None) -> Target:
    """A target from its text.

    Args:
        text: such as ``epsilon=3@1e-5``; None is refused.

    Raises:
        ParameterError: the text is not ``NAME=VALUE`` or ``NAME=VALUE@PLACE`` with a known name; the message has the
            nearest name.
    """
    typed, _, rest = (text or "").partition("=")
    name = typed.strip().lower().replace("_", "-")
    kind, numbers = TARGETS.get(name), rest.split("@")
    if kind is None or not rest or len(numbers) > (2 if kind.place else 1):
        forms = (f"{n}=V@{known.place[0].upper()}" if known.place else f"{n}=V" for n, known in TARGETS.items())
        allowed = ", ".join(forms)
        raise ParameterError("target", text, f"one of {allowed}{_nearest(name, rest)}")
    if kind.place and len(numbers) == 1:
        raise ParameterError("target", text, f"told where it is read: write {name}={rest}@{kind.place[1]}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ParameterError("target", text, "a name and decimal numbers") from None
    try:
        found: Target = kind(*values)
    except ParameterError as error:
        raise ParameterError("target", text, f"given with {error.name} as {error.allowed}") from None
    return found


def _nearest(name: str, rest: str) -> str:
    """What was probably meant, spelt out, where the name is not known."""
    if name in TARGETS or not name:
        return ""
    near = [MEANT[name]] if name in MEANT else get_close_matches(name, list(TARGETS), 1, 0.5)
    if not near:
        return ""
    value, place = rest or "V", TARGETS[near[0]].place
    return f" (did you mean {near[0]}={value}{f'@{place[1]}' if place and '@' not in value else ''}?)"
