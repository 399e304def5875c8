"""Several releases from the same records: all of them together, and each alone."""

from __future__ import annotations

from collections.abc import Sequence

from reticent.adversaries import WorstCase
from reticent.errors import ParameterError
from reticent.mechanisms import Ledger, Mechanism, Neighbouring
from reticent.mechanisms.ledger import parts_of
from reticent.risk import advantage, epsilon_at_delta
from reticent.text import digits, printable

_DELTA = 1e-5


def released_together(releases: Sequence[tuple[str, Mechanism]]) -> tuple[Ledger, list[str]]:
    """All releases as one ledger, and a line about each alone.

    Args:
        releases: by name; at least two.

    Raises:
        ParameterError: there are fewer, or they protect different units.
    """
    if len(releases) < 2:
        raise ParameterError("what", len(releases), "two releases or more")
    together = Ledger(tuple(part for _, mechanism in releases for part in parts_of(mechanism)))
    return together, [f"alone, {printable(name)}: {_numbers(mechanism)}" for name, mechanism in releases]


def _numbers(mechanism: Mechanism) -> str:
    found = WorstCase().assess(mechanism, Neighbouring.ADD_REMOVE)
    most = found.measure(advantage).value, found.measure(epsilon_at_delta, _DELTA).value
    shown = [digits(value, 4, up=True) for value in most]
    return f"advantage at most {shown[0]}, epsilon at most {shown[1]} at delta {_DELTA:g} (worst case, add-remove)"
