"""Several releases from the same records: all of them together, and each alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reticent.adversaries import WorstCase
from reticent.api.risks import mechanism_of
from reticent.errors import ParameterError
from reticent.mechanisms import Ledger, Mechanism, Neighbouring
from reticent.mechanisms.ledger import parts_of
from reticent.risk import advantage, epsilon_at_delta
from reticent.text import digits, printable

_DELTA = 1e-5


def released_together(releases: Sequence[Any]) -> tuple[Ledger, list[str]]:
    """All releases as one ledger, and a line about each alone.

    Args:
        releases: mechanisms, ledgers, runs, or paths of these; at least two.

    Raises:
        ArtifactError, ParameterError: one is none of these, or they protect different units.
    """
    if len(releases) < 2:
        raise ParameterError("what", len(releases), "two releases or more")
    found = [(_name(one, place), _opened(one)) for place, one in enumerate(releases, 1)]
    together = Ledger(tuple(part for _, mechanism in found for part in parts_of(mechanism)))
    return together, [f"alone, {name}: {_numbers(mechanism)}" for name, mechanism in found]


def _opened(release: Any) -> Mechanism:
    if isinstance(release, (str, Path)) and (Path(release) / "ledger.json").is_file():
        return mechanism_of(Path(release) / "ledger.json")
    return mechanism_of(release)


def _name(release: Any, place: int) -> str:
    return printable(str(release)) if isinstance(release, (str, Path)) else f"release {place}"


def _numbers(mechanism: Mechanism) -> str:
    found = WorstCase().assess(mechanism, Neighbouring.ADD_REMOVE)
    most = found.measure(advantage).value, found.measure(epsilon_at_delta, _DELTA).value
    shown = [digits(value, 4, up=True) for value in most]
    return f"advantage at most {shown[0]}, epsilon at most {shown[1]} at delta {_DELTA:g} (worst case, add-remove)"
