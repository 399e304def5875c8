"""``assess_each``: many releases, each by itself, shared out among workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from reticent import __version__
from reticent.adversaries.report import AssessmentRecord, Number, Record, RiskDocument
from reticent.kernel.adversaries import Method
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError, UnsupportedError
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import conditions_by_whom
from reticent.kernel.risk.questions import MEASURES, Measure
from reticent.kernel.text import listed, owners
from reticent.mechanisms.short import in_short
from reticent.tasks import Engine, Kept, Local, Progress, Store, Task, execute
from reticent.verbs.names import Who
from reticent.verbs.releases import WHAT, Release
from reticent.verbs.request import PATH, asked, several
from reticent.verbs.risks import Asking, Assess
from reticent.verbs.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RELEASES = several(WHAT)
_KIND, _RESULT, _REFUSED = "assess", "document", "refused"
_NAMED = 4
"""So many runs of which a note is true are named."""


@dataclass(frozen=True)
class Run:
    """One of many releases.

    Attributes:
        name: a file or a folder by its path, as far as these differ; whatever else by its place.
        release: what was released.
        among_others: whether it is one of several files: if it cannot be answered, the others still are.
    """

    name: str
    release: Release
    among_others: bool


class RunRisk(RiskDocument):
    """One of several runs: what ``rt.assess`` says of it, and its name."""

    name: str


class Risks(Record):
    """What ``reticent risk`` prints of several runs; ``left_out`` says why a file is not among them."""

    schema_: str = Field(default="reticent.risks/1", alias="schema")
    runs: list[RunRisk]
    left_out: dict[str, str]


class Grid(Table):
    """Assessments of many releases, each by itself: nothing here is about several of them together.

    Attributes:
        request: what was asked.
        runs: what was released, in the order given, and what to call it.
        documents: of each release every number with its enclosure, as ``rt.assess(...).document``.
        left_out: files that could not be read or answered, with the reason.
    """

    def __init__(
        self,
        request: Asking,
        runs: Sequence[Run],
        documents: Sequence[RiskDocument],
        left_out: Mapping[str, str],
    ) -> None:
        self.request, self.runs, self.documents, self.left_out = request, tuple(runs), tuple(documents), left_out
        named = bool(left_out) or [run.name for run in runs] != [f"release {n}" for n in range(1, len(runs) + 1)]
        self._differ = _differing([document.mechanism for document in self.documents], () if named else ("release",))
        self._first: tuple[str, ...] = ("run",) if named else self._differ
        self._last: tuple[str, ...] = self._differ if named else ()
        self._asked = [(MEASURES[name], at) for name, at in request.shown()]
        self._claim = len(self._first) + 2
        self._leading = self._claim + 1

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What was released, in the order given."""
        return tuple(run.release.best_of(self.request.selection) for run in self.runs)

    @cached_property
    def document(self) -> Risks:
        """Every number of every run, as ``reticent risk RUNS --json`` prints it."""
        each = zip(self.runs, self.documents, strict=True)
        runs = [RunRisk(**dict(found), name=run.name) for run, found in each]
        return Risks(runs=runs, left_out=dict(self.left_out))

    def title(self) -> str:
        return f"{len(self.runs)} releases, each by itself"

    def columns(self) -> tuple[str, ...]:
        """Which run or in what they differ, who attacks under which relation, the claim, and the numbers."""
        numbers = [measure.at(*at) for measure, at in self._asked]
        return (*self._first, "attacker", "neighbouring", "claim", *numbers, *self._last)

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """A parameter is no bound."""
        end = len(row) - len(self._last)
        return [*super().ways(row)[:end], *(None for _ in self._last)]

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each release and attacker; ``inf`` where no finite number is proven."""
        rows: list[tuple[Cell, ...]] = []
        for run, released, document in zip(self.runs, self.mechanisms, self.documents, strict=True):
            facts = {"run": run.name, "release": in_short(released), **document.mechanism}
            for one in document.assessments:
                shown = [None if (x := _number(m, one, at)) is None else x.most for m, at in self._asked]
                first, last = ([facts[name] for name in names] for names in (self._first, self._last))
                rows.append((*first, one.label, one.neighbouring, one.claim, *shown, *last))
        return rows

    def to_latex(self, *, interval: bool = False) -> str:
        """As of other tables; with ``interval``, each number has behind it both ends of what is proven about it."""
        numbers = ([_number(measure, one, at) for measure, at in self._asked] for one in self._records())
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
        """Who was left out, and the warnings of the ledgers, each with the runs that it is about."""
        skipped = (item for document in self.documents for item in document.skipped.items())
        told = ((run.name, run.release.warnings.items()) for run in self.runs)
        warned = owners((name, (f"! {key}: {text}" for key, text in warnings)) for name, warnings in told)
        return [
            *(f"{name} left out: {reason}" for name, reason in self.left_out.items()),
            *(f"{name} left out: {reason}" for name, reason in dict.fromkeys(skipped)),
            *(f"{note}{_whose(names)}" for note, names in warned.items()),
        ]

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first: one sentence each, with the attackers that need it."""
        found = (one for document in self.documents for one in document.assessments)
        return conditions_by_whom((one.adversary, [kept.known for kept in one.conditions]) for one in found)


@dataclass(frozen=True, kw_only=True)
class AssessEach(Asking):
    """What each attacker can learn from each of many releases, each by itself."""

    verb = "assess_each"
    releases: tuple[Any, ...] = asked(RELEASES, "The releases: paths of runs, ledgers or certificates, or mechanisms.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.releases:
            raise ParameterError("releases", (), "a list of one release or more", shown=False)

    def answer(self, progress: Callable[[str], None] | None = None) -> Grid:
        """``on`` in this process."""
        told = None if progress is None else lambda seen: progress(f"{seen.done} of {seen.total}")
        return self.on(progress=told)

    def on(
        self,
        engine: Engine | None = None,
        work: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Grid:
        """Each attacker against each release.

        Args:
            engine, work, progress: as for ``assess_each``.

        Raises:
            ArtifactError, ParameterError, UnsupportedError, WorkerError: as for ``assess_each``.
        """
        folder = None if work is None else PATH.read("work", work)
        left_out: dict[str, str] = {}
        runs = list(_read(self.releases, left_out))
        tasks = [Task(_KIND, self._task(run)) for run in runs]
        plan, again = {"kind": _KIND, "releases": len(tasks)}, "the same call goes on with them" if folder else ""
        with ExitStack() as stack:
            if folder is None and engine not in (None, Local()):
                folder = Path(stack.enter_context(TemporaryDirectory()))
            store = Kept() if folder is None else Store(folder)
            execute(tasks, _document, store, engine, progress, plan=plan, again=again)
            texts = [{kind: text.tobytes() for kind, text in store.load(task).items()} for task in tasks]
        told = list(zip(runs, texts, strict=True))
        found = [(run, text) for run, text in told if _RESULT in text]
        left_out |= {run.name: text[_REFUSED].decode() for run, text in told if _REFUSED in text}
        if not found:
            first = next(iter(left_out.values()))
            raise ArtifactError(f"none of {len(self.releases)} releases can be answered; the first: {first}")
        documents = [RiskDocument.model_validate_json(text[_RESULT]) for _, text in found]
        return Grid(self, [run for run, _ in found], documents, left_out)

    def _task(self, run: Run) -> dict[str, Any]:
        """What a worker is told: the question about what was read, not about a path that may hold something else."""
        request = Assess.about(replace(run.release, said=None), self)
        return {"version": __version__, "request": request.document(), "among_others": run.among_others}


@hinting
def assess_each(
    mechanisms: Sequence[Any],
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
        mechanisms: the releases, each whatever ``assess`` takes: a mechanism, a ledger, a run, or a path of one or of
            a certificate. What is said twice is computed once. What a ledger saw goes to the workers with it. Of
            several, a file that cannot be read or answered is a line in ``left_out``, and loses no other.
        adversary, neighbouring, method, fpr, delta: as for ``assess``.
        engine: who computes: ``reticent.tasks.Local(workers)``, ``Dask(address)``, ``Ray(address)`` or any
            ``concurrent.futures.Executor``; None: this process.
        work: a folder that keeps what was computed and that all workers see under this path; what is there is not
            computed again. None: nothing is kept.
        progress: called after each release.

    Raises:
        ArtifactError: the folder holds something else, or no file could be read.
        ParameterError: a name is unknown, a number is outside its domain, or there is no release.
        UnsupportedError: nothing is proven for one of the combinations, or the engine cannot be reached.
        WorkerError: as ``reticent.tasks.execute``.
    """
    if isinstance(mechanisms, str) or not isinstance(mechanisms, Sequence) or not mechanisms:
        raise ParameterError("mechanisms", mechanisms, "a list of one release or more")
    asked = {"neighbouring": neighbouring, "method": method, "fpr": fpr, "delta": delta}
    request = AssessEach.of(releases=tuple(mechanisms), adversary=adversary, **asked)
    return request.on(engine, work, progress)


def _document(store: Store, task: Task) -> Mapping[str, np.ndarray]:
    """The work of one task: the JSON of a risk document, as bytes; or why there is none, where others go on."""
    if task.kind != _KIND:
        raise ArtifactError(f"unknown kind of task {task.kind!r}")
    request = Assess.of_document(task.inputs["request"], "the task")
    try:
        found = request.answer()
    except (ParameterError, UnsupportedError) as error:
        if not task.inputs["among_others"]:
            raise
        return {_REFUSED: _bytes(str(error))}
    return {_RESULT: _bytes(found.document.model_dump_json(by_alias=True))}


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _read(what: Sequence[Any], left_out: dict[str, str]) -> Iterator[Run]:
    """Each release; a file that cannot be read among others goes to ``left_out``, with the reason."""
    for name, one in zip(names_of(what), what, strict=True):
        among_others = len(what) > 1 and _path_of(one) is not None
        try:
            release = Release.of(one)
        except ReticentError as error:
            if not among_others:
                raise
            left_out[name] = str(error)
        else:
            yield Run(name, release, among_others)


def names_of(what: Sequence[Any]) -> list[str]:
    """What to call each: a file or a folder by its path, as far as these differ; whatever else by its place."""
    paths = [None if (path := _path_of(one)) is None else _absolute(path) for one in what]
    folder = os.path.commonpath([str(path.parent) for path in paths if path is not None] or ["/"])
    return [f"release {n}" if path is None else str(path.relative_to(folder)) for n, path in enumerate(paths, 1)]


def _absolute(path: Path) -> Path:
    """Its text can be written as JSON, whatever bytes a system allows."""
    text = str(path.absolute()).encode(errors="backslashreplace").decode()
    return Path("/" + text.lstrip("/")) if text.startswith("/") else Path(text)


def _path_of(what: Any) -> Path | None:
    """Where it lies: a path, or the folder of a run."""
    path = what if isinstance(what, (str, Path)) else getattr(what, "path", None)
    return Path(path) if isinstance(path, (str, Path)) else None


def _whose(names: Sequence[str]) -> str:
    """The runs that a note is about, in brackets; nothing where it is about all."""
    rest = len(names) - _NAMED
    more = [*names[:_NAMED], f"{rest} more"] if rest > 1 else list(names)
    return f" ({listed(more)})" if names else ""


def _number(measure: Measure, record: AssessmentRecord, at: tuple[float, ...]) -> Number | None:
    """The number of a record; None where this attacker has none."""
    return measure.of(record, *at) if at in [tuple(map(float, known)) for known in measure.stated(record)] else None


def _differing(records: Sequence[Mapping[str, Any]], otherwise: tuple[str, ...]) -> tuple[str, ...]:
    """Parameters in which releases of one kind differ; ``otherwise`` where kinds, lists or nothing differ."""
    names = records[0].keys()
    same = all(record.keys() == names for record in records)
    differ = tuple(name for name in names if same and len({repr(record[name]) for record in records}) > 1)
    flat = all(isinstance(record[name], str | int | float | None) for record in records for name in differ)
    return differ if differ and flat and "kind" not in differ else otherwise
