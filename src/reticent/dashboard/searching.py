"""What each attacker would allow, asked of the library and kept for the next question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from reticent.adversaries import Adversary, WorstCase
from reticent.calibration import Calibration, Target, Unknown, UnreachableError, calibrate, of_release
from reticent.errors import NumericalError, ParameterError, UnsupportedError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.stopping import checkpoint


@dataclass(frozen=True, slots=True)
class Searched:
    """What each attacker would allow, the worst case first; and why some allow nothing that is known."""

    found: tuple[Calibration, ...]
    skipped: dict[str, str]


_solved = lru_cache(maxsize=128)(calibrate)


@lru_cache(maxsize=128)
def worst_there(calibration: Calibration) -> float:
    """The risk that the target limits, under the worst case, at the answer."""
    return calibration.worst_case().value


def search(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    adversaries: tuple[Adversary, ...],
    relation: Neighbouring | None,
) -> Searched:
    """Search for each attacker in turn.

    Raises:
        UnsupportedError: the mechanism has no such parameter.
        ParameterError: a number is missing for the worst case.
    """
    of_release(unknown, mechanism).put(mechanism, 1.0)
    found, skipped = [], {}
    for who in adversaries:
        checkpoint()
        try:
            found.append(_solved(mechanism, unknown, target, who, relation))
        except (UnsupportedError, UnreachableError, ParameterError, NumericalError) as error:
            skipped[who.name] = str(error)
    return Searched(tuple(found), skipped)


def for_anybody(mechanism: Mechanism, unknown: Unknown, target: Target, relation: Neighbouring | None) -> Calibration:
    """What the worst case allows.

    Raises:
        UnsupportedError: nothing that is known.
    """
    found = search(mechanism, unknown, target, (WorstCase(),), relation)
    if not found.found:
        raise UnsupportedError("; ".join(found.skipped.values()))
    return found.found[0]
