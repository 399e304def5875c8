"""Targets as people type them: ``advantage=0.1``, ``epsilon=3@1e-5``."""

from __future__ import annotations

from reticent.calibration.targets import TARGETS, Target
from reticent.kernel.errors import ParameterError
from reticent.kernel.text import nearest

MEANT = {"eps": "epsilon", "e": "epsilon", "adv": "advantage", "bayes": "bayes-security", "security": "bayes-security"}
MEANT |= {"precision": "ppv", "posterior": "ppv"}
MEANT |= {"gdp": "mu", "power": "tpr", "accuracy": "success", "rero": "recovered", "pin": "secret"}
"""Targets as other tools call them."""


def target_of(text: str) -> Target:
    """A target from its text.

    Args:
        text: such as ``epsilon=3@1e-5`` or ``ppv=0.4@0.1,0.01``.

    Raises:
        ParameterError: the text is not ``NAME=VALUE``, or ``NAME=VALUE@PLACE`` with its places, with a known name; the
            message has the nearest name.
    """
    typed, _, rest = text.partition("=")
    name = typed.strip().lower().replace("_", "-")
    kind, (limit, _, at) = TARGETS.get(name), rest.partition("@")
    numbers = [limit, *at.split(",")] if at else [limit]
    if kind is None or not rest or len(numbers) > 1 + len(kind.places):
        raise ParameterError("target", text, f"one of {', '.join(map(_form, TARGETS))}{_nearest(name, rest)}")
    if not at and "," in limit and kind.places:  # a comma for the @
        raise ParameterError("target", text, f"stated with its place: write {name}={limit.replace(',', '@', 1)}")
    if len(numbers) <= len(kind.places):
        raise ParameterError("target", text, f"stated with its place: write {name}={limit}{_example(kind)}")
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
    value = rest or "V"
    return f" (did you mean {near}={value}{'' if '@' in value else _example(TARGETS[near])}?)"


def _form(name: str) -> str:
    """How a target is typed."""
    at = ",".join(place.upper() for place, _ in TARGETS[name].places)
    return f"{name}=V{f'@{at}' if at else ''}"


def _example(kind: type[Target]) -> str:
    """The places of a target, for an example."""
    at = ",".join(example for _, example in kind.places)
    return f"@{at}" if at else ""


def forms() -> str:
    """How each target is typed."""
    *most, last = map(_form, TARGETS)
    return f"{', '.join(most)} or {last}"
