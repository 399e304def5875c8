"""``assess_each``: many releases, each by itself, shared out among workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent import __version__
from reticent.adversaries import Method
from reticent.errors import ArtifactError, ParameterError
from reticent.keywords import hinting
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.mechanisms.short import in_short
from reticent.risk.report import MEASURES, AssessmentRecord, RiskDocument
from reticent.tasks import Engine, Kept, Local, Progress, Store, Task, execute
from reticent.verbs.names import Who
from reticent.verbs.request import PATH
from reticent.verbs.risks import Assess
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND, _RESULT = "assess", "document"


class Grid(Table):
    """Assessments of many releases, each by itself: nothing here is about several of them together.

    Attributes:
        mechanisms: what was released, in the order given.
        documents: of each release every number with its enclosure, as ``rt.assess(...).document``.
        request: what was asked of the first; of the others all but the release is the same.
    """

    def __init__(self, mechanisms: Sequence[Mechanism], documents: Sequence[RiskDocument], request: Assess) -> None:
        self.mechanisms, self.documents, self.request = tuple(mechanisms), tuple(documents), request
        self._differ = _differing([document.mechanism for document in documents])
        asked = [(name, at) for name, at in request.shown() if name in ("advantage", "tpr", "epsilon")]
        self._asked = [(MEASURES[name], at) for name, at in asked]
        self._leading, self._claim = len(self._differ) + 3, len(self._differ) + 2

    def title(self) -> str:
        return f"{len(self.mechanisms)} releases, each by itself"

    def columns(self) -> tuple[str, ...]:
        """In what the releases differ, who attacks under which relation, the claim, and the numbers."""
        numbers = [measure.at(*at) for measure, at in self._asked]
        return (*self._differ, "attacker", "neighbouring", "claim", *numbers)

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each release and attacker; ``inf`` where no finite number is proven."""
        rows: list[tuple[Cell, ...]] = []
        for mechanism, document in zip(self.mechanisms, self.documents, strict=True):
            facts = {"release": in_short(mechanism), **document.mechanism}
            for one in document.assessments:
                numbers = [measure.of(one, *at).value for measure, at in self._asked]
                shown = [float("inf") if number is None else number for number in numbers]
                rows.append((*(facts[name] for name in self._differ), one.label, one.neighbouring, one.claim, *shown))
        return rows

    def to_latex(self, *, interval: bool = False) -> str:
        """As of other tables; with ``interval``, each number has behind it both ends of what is proven about it."""
        numbers = ([measure.of(one, *at) for measure, at in self._asked] for one in self._records())
        return self._tabular(numbers if interval else ())

    def theorems(self) -> list[str]:
        return [key for one in self._records() for key in one.theorems]

    def plot(
        self,
        ax: Sequence[Axes] | Axes | None = None,
        panels: Sequence[str] | str | None = None,
        *,
        style: str = "attackers",
        legend: bool = True,
    ) -> list[Any]:
        """Draw the numbers of each attacker over the one in which the releases differ, such as ``noise_multiplier``.

        Args:
            ax: matplotlib axes, one for each panel; None makes a figure.
            panels: columns of this table, such as ``"advantage"``; by default all numbers, or as many as there are
                axes.
            style, legend: as for ``reticent.verbs.plots.plot``.

        Returns:
            The axes, as a list.

        Raises:
            ParameterError: the releases do not differ in one number, a panel or the style is unknown, or there are not
                as many axes as panels.
            UnsupportedError: matplotlib is not installed.
        """
        from reticent.verbs.plots import plot_numbers

        columns = dict(zip(self.columns(), zip(*self.rows(), strict=True), strict=True))
        over = columns[self._differ[0]]
        if len(self._differ) > 1 or not all(isinstance(value, int | float) for value in over):
            raise ParameterError("mechanisms", ", ".join(self._differ), "releases that differ in one number")
        whose = [(one.adversary, one.label, one.neighbouring, one.claim) for one in self._records()]
        numbers = {name: columns[name] for name in self.columns()[self._leading :]}
        return plot_numbers((self._differ[0], over), whose, numbers, ax, panels, style, legend)

    def _records(self) -> list[AssessmentRecord]:
        return [one for document in self.documents for one in document.assessments]

    def notes(self) -> list[str]:
        skipped = (item for document in self.documents for item in document.skipped.items())
        return [f"{name} left out: {reason}" for name, reason in dict.fromkeys(skipped)]


@hinting
def assess_each(
    mechanisms: Sequence[Mechanism],
    adversary: Who | Sequence[Who] | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    fpr: float | Sequence[float] | None = None,
    delta: float | Sequence[float] | None = None,
    engine: Engine | None = None,
    work: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Grid:
    """What ``assess`` says of each release by itself; for several of the same records together, give ``rt.Ledger``.

    Args:
        mechanisms: the releases; what is said twice is computed once. No ledger of a run: ``assess`` answers it, with
            what was seen of the run.
        adversary, neighbouring, method, fpr, delta: as for ``assess``.
        engine: who computes: ``reticent.tasks.Local(workers)``, ``Dask(address)``, ``Ray(address)`` or any
            ``concurrent.futures.Executor``; None: this process.
        work: a folder that keeps what was computed and that all workers see under this path; what is there is not
            computed again. None: nothing is kept.
        progress: called after each release.

    Raises:
        ArtifactError: the folder holds something else.
        ParameterError: a name is unknown, a number is outside its domain, or there is no release.
        UnsupportedError: nothing is proven for one of the combinations, or the engine cannot be reached.
        WorkerError: as ``reticent.tasks.execute``.
    """
    said = dict(locals())
    releases, work = _plain(said.pop("mechanisms")), said.pop("work")
    folder = None if work is None else PATH.read("work", work)
    engine, progress = said.pop("engine"), said.pop("progress")
    requests = [Assess.of(release=one, **said) for one in releases]
    tasks = [Task(_KIND, {"version": __version__, **one.document()}) for one in requests]
    plan, again = {"kind": _KIND, "releases": len(tasks)}, "" if folder is None else "the same call goes on with them"
    with ExitStack() as stack:
        if folder is None and engine not in (None, Local()):
            folder = Path(stack.enter_context(TemporaryDirectory()))
        store = Kept() if folder is None else Store(folder)
        execute(tasks, _document, store, engine, progress, plan=plan, again=again)
        found = [RiskDocument.model_validate_json(store.load(task)[_RESULT].tobytes()) for task in tasks]
    return Grid(releases, found, requests[0])


def _document(store: Store, task: Task) -> Mapping[str, np.ndarray]:
    """The work of one task: the JSON of a risk document, as bytes."""
    if task.kind != _KIND:
        raise ArtifactError(f"unknown kind of task {task.kind!r}")
    request = {name: value for name, value in task.inputs.items() if name != "version"}
    text = Assess.of_document(request, "the task").answer().document.model_dump_json(by_alias=True)
    return {_RESULT: np.frombuffer(text.encode(), dtype=np.uint8)}


def _plain(mechanisms: Any) -> list[Mechanism]:
    """The releases. What was seen of a run does not travel to workers, and an answer must not go without it."""
    if isinstance(mechanisms, str) or not isinstance(mechanisms, Sequence) or not mechanisms:
        raise ParameterError("mechanisms", mechanisms, "a list of one release or more")
    for one in mechanisms:
        if not isinstance(one, Mechanism):
            hint = "mechanisms such as rt.dpsgd(...); rt.assess answers a ledger of a run, with what it saw"
            raise ParameterError("mechanisms", type(one).__name__, hint)
    return list(mechanisms)


def _differing(records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Parameters in which releases of one kind differ; of several kinds, or where lists differ, the release itself."""
    names = records[0].keys()
    same = all(record.keys() == names for record in records)
    differ = tuple(name for name in names if same and len({repr(record[name]) for record in records}) > 1)
    flat = all(isinstance(record[name], str | int | float | None) for record in records for name in differ)
    return differ if differ and flat and "kind" not in differ else ("release",)
