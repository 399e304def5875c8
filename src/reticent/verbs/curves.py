"""Answers with a curve each: a sequence, a table, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from reticent.kernel.adversaries import Assessment
from reticent.kernel.proofs import conditions_by_whom
from reticent.verbs.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

One = TypeVar("One")


class Curves(Table, Sequence[One]):
    """A table that is a sequence of its answers; a subclass gives them, and the curve of each."""

    def _each(self) -> Sequence[One]:
        raise NotImplementedError

    def _curves(self) -> Sequence[Assessment]:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> One: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[One]: ...

    def __getitem__(self, index: int | slice) -> One | Sequence[One]:
        return self._each()[index]

    def __len__(self) -> int:
        return len(self._each())

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first: one sentence each."""
        return conditions_by_whom((one.adversary.name, one.conditions) for one in self._curves())

    def theorems(self) -> list[str]:
        return [key for one in self._curves() for key in one.theorems]

    def plot(
        self,
        ax: Sequence[Axes] | Axes | None = None,
        panels: Sequence[str] | str | None = None,
        *,
        style: str = "attackers",
        legend: bool = True,
    ) -> list[Any]:
        """Draw each attacker's curve, of a calibration at its own answer; see ``reticent.verbs.plots.plot``."""
        from reticent.verbs.plots import plot

        return plot(self._curves(), ax, panels, style=style, legend=legend)
