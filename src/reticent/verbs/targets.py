"""How a target is said: as an object, as its text, or by keywords."""

from __future__ import annotations

from collections.abc import Mapping

from reticent.calibration.spelling import MEANT
from reticent.calibration.spelling import target_of as spelt
from reticent.calibration.targets import STATED, Target
from reticent.kernel.errors import ParameterError
from reticent.kernel.text import one_of
from reticent.verbs.request import Spelling


def target_of(target: Target | str | None, limits: Mapping[str, float]) -> Target:
    """The target that is meant, from an object, from its text, or from keywords.

    Raises:
        ParameterError: there is none, more than one, or a keyword that goes with it is missing.
    """
    partners = {place for _, places in STATED.values() for place in places}
    for name in limits:
        if name not in STATED and name not in partners:
            spelt_name = MEANT.get(name, name).replace("-", "_")
            words = [*STATED, *sorted(partners), "unknown", "neighbouring", "method", "progress"]
            raise ParameterError("keyword", name, one_of(spelt_name, words))
    named = [name for name in limits if name in STATED]
    if target is not None:
        if isinstance(target, str) and not limits:
            return spelt(target)
        if limits or not isinstance(target, Target):
            raise ParameterError(
                "target", target, "a target such as 'epsilon=3@1e-5', or keywords such as advantage=0.1"
            )
        return target
    if len(named) != 1:
        raise ParameterError("target", named, "exactly one of " + ", ".join(STATED))
    kind, places = STATED[named[0]]
    wanted = [named[0], *places]
    if set(limits) != set(wanted):
        raise ParameterError("target", sorted(limits), f"given as {', '.join(f'{name}=...' for name in wanted)}")
    found: Target = kind(*(limits[name] for name in wanted))
    return found


TARGET = Spelling(lambda name, said: target_of(said, {}), str, {"type": "string"}, str)
