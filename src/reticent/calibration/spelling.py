"""Targets as people type them: ``advantage=0.1``, ``epsilon=3@1e-5``."""

from __future__ import annotations

from reticent.calibration.targets import TARGETS, Target
from reticent.errors import ParameterError
from reticent.text import nearest

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
        raise ParameterError("target", text, f"stated with its place: write {name}={rest}@{kind.place[1]}")
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
    near = MEANT.get(name) or nearest(name, TARGETS)
    if name in TARGETS or not name or near is None:
        return ""
    value, place = rest or "V", TARGETS[near].place
    return f" (did you mean {near}={value}{f'@{place[1]}' if place and '@' not in value else ''}?)"
