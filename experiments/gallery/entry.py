"""One figure or table of a paper: what is printed, what comes out here, and how the two compare.

A script under ``experiments/<paper>/`` builds one ``Entry``. The verdict is never typed: it follows from comparing
every published number with ours within its stated tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from reticent.kernel.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPERS = {
    "glrt": "KAISSIS2022",
    "relaxed-threat-model": "KAISSIS2023",
    "closed-form-bounds": "CHERUBIN2024",
    "gaussian-mip": "LEEMANN2023",
}
"""The first half of every id, and the key of the paper in ``reticent.kernel.proofs.references.PAPERS``."""

OWN = "utility"
"""The first half of the ids of our own study, which tests what the papers say about utility."""

GROUPS = PAPERS | {OWN: "RETICENT"}


class Verdict(Enum):
    """How a figure or table compares with what is printed."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT_RUN = "cannot be run here"


class Relation(Enum):
    """What the paper says about a number: that it is a value, or that it stays on one side of it."""

    IS = "is"
    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Published:
    """A number that the paper prints, or a statement of the paper put as a number.

    Attributes:
        name: of the number; ours has the same name.
        value: as printed, in the same unit as ours.
        where: the place in the paper.
        tolerance: absolute; for a printed value half a unit of its last digit unless the entry says why more.
        relation: equality or a one-sided statement.
    """

    name: str
    value: float
    where: str
    tolerance: float = 0.0
    relation: Relation = Relation.IS

    def holds(self, ours: Measured) -> bool:
        """Whether our interval (one-sided statements: our value), widened by the tolerance, allows the statement."""
        if self.relation is Relation.IS:
            return ours.low - self.tolerance <= self.value <= ours.high + self.tolerance
        above = ours.value - self.value if self.relation is Relation.AT_MOST else self.value - ours.value
        return above <= self.tolerance


@dataclass(frozen=True, slots=True)
class Measured:
    """A number of ours.

    Attributes:
        value: the number.
        low, high: its interval; both equal ``value`` where the number is deterministic.
        about: what the interval is, in words; empty where there is none.
        drift: by how much (absolute) a new run may differ from the stored one; infinite for wall times. None: 1e-6 of
            the value.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    about: str = ""
    drift: float | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.low) and math.isnan(self.high):
            object.__setattr__(self, "low", self.value)
            object.__setattr__(self, "high", self.value)
        if not self.low <= self.value <= self.high:
            raise ParameterError("value", self.value, f"within its interval [{self.low}, {self.high}]")

    def drifted(self, stored: Measured) -> bool:
        """Whether this run is further from ``stored`` than allowed."""
        allowed = 1e-6 * abs(stored.value) + 1e-12 if self.drift is None else self.drift
        return not abs(self.value - stored.value) <= allowed


Numbers = Mapping[str, Measured | float]


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure or table, as its script declares it.

    Attributes:
        id: ``<paper>/<figure or table>``, also the place of the script.
        title: what it shows, in a few words.
        run: draws into the figure in the paper's layout and returns our numbers.
        published: what to compare with; at least one.
        reason: one sentence: why it differs, or what agrees.
        settings: parameters, and whether the paper prints them.
        needs: what is missing for the published numbers that were not measured.
        stored: commands, after ``python -m``, whose results are drawn; empty where ``run`` computes everything.
        slow: True for what takes more than a minute, which ``--quick`` leaves out.
        inches: width and height of the figure.
    """

    id: str
    title: str
    run: Callable[[Figure], Numbers]
    published: tuple[Published, ...]
    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""
    stored: tuple[str, ...] = ()
    slow: bool = False
    inches: tuple[float, float] = (7.0, 3.4)

    def __post_init__(self) -> None:
        if self.id.partition("/")[0] not in GROUPS:
            raise ParameterError("id", self.id, f"<paper>/<figure or table> with a paper of {', '.join(GROUPS)}")
        if not self.published or not self.reason:
            raise ParameterError("entry", self.id, "one with published numbers and a reason")


@dataclass(frozen=True, slots=True)
class Result:
    """An entry after it ran, as it is stored.

    Attributes:
        id, title, settings, published, reason, needs, stored: of the entry.
        ours: our numbers by name.
    """

    id: str
    title: str
    settings: Mapping[str, Any]
    published: tuple[Published, ...]
    ours: Mapping[str, Measured]
    reason: str
    needs: str = ""
    stored: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """Key of the paper in ``reticent.kernel.proofs.references.PAPERS``."""
        return GROUPS[self.id.partition("/")[0]]

    @property
    def failing(self) -> tuple[Published, ...]:
        """The published numbers that ours do not allow; those that could not be measured are left out."""
        return tuple(p for p in self.published if p.name in self.ours and not p.holds(self.ours[p.name]))

    @property
    def verdict(self) -> Verdict:
        """Follows from the numbers; where none of the published ones was measured, the entry cannot be run here."""
        if not any(p.name in self.ours for p in self.published):
            return Verdict.CANNOT_RUN
        return Verdict.DIFFERS if self.failing else Verdict.AGREES

    def drift(self, stored: Result) -> tuple[str, ...]:
        """What differs from ``stored`` by more than allowed, one line each; empty where nothing does."""
        lines = [f"verdict: {stored.verdict.value} is now {self.verdict.value}"] * (self.verdict != stored.verdict)
        for name in sorted(self.ours.keys() | stored.ours.keys()):
            new, old = self.ours.get(name), stored.ours.get(name)
            if new is None or old is None:
                lines.append(f"{name}: {'no longer measured' if new is None else 'not in the stored result'}")
            elif new.drifted(old):
                lines.append(f"{name}: {old.value:.6g} is now {new.value:.6g}")
        return tuple(lines)


def result_of(entry: Entry, numbers: Numbers) -> Result:
    """The result of a run.

    Raises:
        ParameterError: a published number was not measured, and the entry does not say what it needs for it.
    """
    ours = {name: m if isinstance(m, Measured) else Measured(float(m)) for name, m in numbers.items()}
    missing = [p.name for p in entry.published if p.name not in ours]
    if missing and not entry.needs:
        raise ParameterError("numbers", sorted(ours), f"those of {entry.id}, {missing[0]!r} included")
    return Result(entry.id, entry.title, entry.settings, entry.published, ours, entry.reason, entry.needs, entry.stored)
