"""``assess_each``: many releases, each by itself, shared out among workers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import Field

from reticent import __version__, _check
from reticent.adversaries import Adversary, Method
from reticent.adversaries.base import ALL
from reticent.adversaries.codec import adversary_of, parameters
from reticent.adversaries.report import risk_document
from reticent.adversaries.witness import Witness
from reticent.errors import ArtifactError, ParameterError, ReticentError, UnsupportedError
from reticent.io.strict import portable
from reticent.keywords import hinting
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.mechanisms.codec import mechanism_of as mechanism_in
from reticent.mechanisms.codec import mechanism_record
from reticent.mechanisms.short import in_short
from reticent.pairs.neighbouring import relation_of
from reticent.proofs import conditions_by_whom
from reticent.risk.report import MEASURES, SPOKEN, AssessmentRecord, Measure, Questions, Record, RiskDocument
from reticent.tasks import Engine, Kept, Local, Progress, Store, Task, execute
from reticent.text import listed, owners
from reticent.verbs.names import Who, adversaries, asks_for_all, path_given, several
from reticent.verbs.risks import DEFAULT_DELTA, DEFAULT_FPR, answered, released
from reticent.verbs.table import Cell, Table

_KIND, _RESULT, _REFUSED = "assess", "document", "refused"
_NAMED = 4
"""So many runs of which a note is true are named."""


@dataclass(frozen=True)
class Run:
    """One of many releases.

    Attributes:
        name: a file or a folder by its path, as far as these differ; whatever else by its place.
        mechanism: what was released; of a ledger, the safe reading of what ran.
        warnings: what a reader of the ledger must know, text by name.
        ledger: that saw it, where there is one.
        among_others: whether it is one of several files: if it cannot be answered, the others still are.
    """

    name: str
    mechanism: Mechanism
    warnings: Mapping[str, str]
    ledger: Witness | None
    among_others: bool


class RunRisk(RiskDocument):
    """One of several runs: what ``rt.assess`` says of it, its name, and the warnings of its ledger."""

    name: str
    warnings: dict[str, str]


class Risks(Record):
    """What ``reticent risk`` prints of several runs; ``left_out`` says why a file is not among them."""

    schema_: str = Field(default="reticent.risks/1", alias="schema")
    runs: list[RunRisk]
    left_out: dict[str, str]


class Grid(Table):
    """Assessments of many releases, each by itself: nothing here is about several of them together.

    Attributes:
        runs: what was released, in the order given, and what to call it.
        mechanisms: of these.
        documents: of each release every number with its enclosure, as ``rt.assess(...).document``.
        questions: where the curves are read.
        left_out: files that could not be read or answered, with the reason.

    ``more`` names measures that the table shows besides.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        documents: Sequence[RiskDocument],
        questions: Questions,
        left_out: Mapping[str, str],
        more: Sequence[str] = (),
    ) -> None:
        self.runs, self.documents, self.questions, self.left_out = tuple(runs), tuple(documents), questions, left_out
        self.mechanisms = tuple(run.mechanism for run in runs)
        named = bool(left_out) or [run.name for run in runs] != [f"release {n}" for n in range(1, len(runs) + 1)]
        differ = _differing([document.mechanism for document in self.documents], () if named else ("release",))
        self._first: tuple[str, ...] = ("run",) if named else differ
        self._last: tuple[str, ...] = differ if named else ()
        asked = [MEASURES[name] for name in ("advantage", "tpr", *more, "epsilon", "secret")]
        self._asked = [(measure, at) for measure in asked for at in measure.asked(questions)]
        self._claim = len(self._first) + 2
        self._leading = self._claim + 1

    @cached_property
    def document(self) -> Risks:
        """Every number of every run, as ``reticent risk RUNS --json`` prints it."""
        each = zip(self.runs, self.documents, strict=True)
        runs = [RunRisk(**dict(found), name=run.name, warnings=dict(run.warnings)) for run, found in each]
        return Risks(runs=runs, left_out=dict(self.left_out))

    def to_json(self) -> str:
        """The document ``reticent.risks/1`` as strict JSON text; null is an infinite number."""
        return self.document.model_dump_json(by_alias=True, indent=2, context=SPOKEN)

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
        for run, document in zip(self.runs, self.documents, strict=True):
            facts = {"run": run.name, "release": in_short(run.mechanism), **document.mechanism}
            for one in document.assessments:
                shown = [_cell(measure, one, at) for measure, at in self._asked]
                first, last = ([facts[name] for name in names] for names in (self._first, self._last))
                rows.append((*first, one.label, one.neighbouring, one.claim, *shown, *last))
        return rows

    def notes(self) -> list[str]:
        """Who was left out, and the warnings of the ledgers, each with the runs that it is about."""
        skipped = (item for document in self.documents for item in document.skipped.items())
        warned = owners((run.name, (f"! {key}: {text}" for key, text in run.warnings.items())) for run in self.runs)
        return [
            *(f"{name} left out: {reason}" for name, reason in self.left_out.items()),
            *(f"{name} left out: {reason}" for name, reason in dict.fromkeys(skipped)),
            *(f"{note}{_whose(names)}" for note, names in warned.items()),
        ]

    def conditions(self) -> list[str]:
        """What the numbers rest on, worst status first: one sentence each, with the attackers that need it."""
        found = (one for document in self.documents for one in document.assessments)
        return conditions_by_whom((one.adversary, [kept.known for kept in one.conditions]) for one in found)


@dataclass(frozen=True)
class Asked:
    """What is asked of each release.

    Attributes:
        who: the attackers.
        everybody: whether those that cannot be answered are left out.
        between: which data sets; None means each attacker's own.
        how: curves are evaluated; None means each attacker's own way.
        questions: where the curves are read.
    """

    who: tuple[Adversary, ...]
    everybody: bool
    between: Neighbouring | None
    how: Method | None
    questions: Questions

    def record(self) -> dict[str, Any]:
        """For a task, as JSON values."""
        return {
            "version": __version__,
            "adversaries": [[one.name, parameters(one)] for one in self.who],
            ALL: self.everybody,
            "neighbouring": self.between,
            "method": self.how,
            "questions": {name: list(values) for name, values in asdict(self.questions).items()},
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Asked:
        """Back from a record."""
        questions = Questions(**{name: tuple(values) for name, values in record["questions"].items()})
        who = tuple(adversary_of(*one) for one in record["adversaries"])
        how = None if record["method"] is None else Method(record["method"])
        return cls(who, record[ALL], relation_of(record["neighbouring"]), how, questions)


@hinting
def assess_each(
    mechanisms: Sequence[Any],
    adversary: Who | Sequence[Who] | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str = Method.EXACT,
    fpr: float | Sequence[float] = DEFAULT_FPR,
    delta: float | Sequence[float] = DEFAULT_DELTA,
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
    between, how = relation_of(neighbouring), _check.member(Method, method=method)
    questions = Questions(fprs=several(fpr=fpr), deltas=several(delta=delta))
    asked = Asked(adversaries(adversary), asks_for_all(adversary), between, how, questions)
    return answered_each(mechanisms, asked, engine=engine, work=work, progress=progress)


def answered_each(
    what: Sequence[Any],
    asked: Asked,
    more: Sequence[str] = (),
    taken: Callable[[Mechanism], Mechanism] = lambda mechanism: mechanism,
    *,
    engine: Engine | None = None,
    work: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Grid:
    """``assess_each`` with everything that can be asked.

    Args:
        more: measures that the table shows besides.
        taken: what was taken of each release, such as the best of several runs of it.
    """
    if isinstance(what, str) or not isinstance(what, Sequence) or not what:
        raise ParameterError("mechanisms", what, "a list of one release or more")
    folder, known = path_given(work=work), asked.record()
    left_out: dict[str, str] = {}
    read = _read(what, left_out)
    runs = [replace(run, mechanism=taken(run.mechanism)) for run in read]
    tasks = [Task(_KIND, {**_said(run), **known}) for run in runs]
    plan, again = {"kind": _KIND, "releases": len(tasks)}, "" if folder is None else "the same call goes on with them"
    with ExitStack() as stack:
        if folder is None and engine not in (None, Local()):
            folder = Path(stack.enter_context(TemporaryDirectory()))
        store = Kept() if folder is None else Store(folder)
        execute(tasks, _document, store, engine, progress, plan=plan, again=again)
        texts = [{kind: text.tobytes() for kind, text in store.load(task).items()} for task in tasks]
    found = [(run, text) for run, text in zip(runs, texts, strict=True) if _RESULT in text]
    left_out |= {run.name: text[_REFUSED].decode() for run, text in zip(runs, texts, strict=True) if _REFUSED in text}
    if not found:
        raise ArtifactError(f"none of {len(what)} releases can be answered; the first: {next(iter(left_out.values()))}")
    documents = [RiskDocument.model_validate_json(text[_RESULT]) for _, text in found]
    return Grid([run for run, _ in found], documents, asked.questions, left_out, more)


def _document(store: Store, task: Task) -> Mapping[str, np.ndarray]:
    """The work of one task: the JSON of a risk document, as bytes; or why there is none, where others go on."""
    if task.kind != _KIND:
        raise ArtifactError(f"unknown kind of task {task.kind!r}")
    release, asked = mechanism_in(task.inputs["mechanism"]), Asked.of(task.inputs)
    try:
        found, skipped = answered(release, asked.who, asked.everybody, asked.between, asked.how, _witness(task.inputs))
    except (ParameterError, UnsupportedError) as error:
        if not task.inputs["among_others"]:
            raise
        return {_REFUSED: _bytes(str(error))}
    return {_RESULT: _bytes(risk_document(release, found, asked.questions, skipped).model_dump_json(by_alias=True))}


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _said(run: Run) -> dict[str, Any]:
    """What was released, and the public form of the ledger that saw it, from which the same follows, as JSON values.

    Raises:
        ParameterError: what saw it is no ledger that can be written down.
    """
    ledger: Any = run.ledger
    if ledger is not None and not callable(getattr(ledger, "public", None)):
        hint = "mechanisms, ledgers, runs or files of these; rt.assess answers what was seen by something else"
        raise ParameterError("mechanisms", type(ledger).__name__, hint)
    stated = None if ledger is None else portable(ledger.public())
    return {"mechanism": mechanism_record(run.mechanism), "ledger": stated, "among_others": run.among_others}


def _witness(stated: Mapping[str, Any]) -> Witness | None:
    if stated["ledger"] is None:
        return None
    from reticent.records.ledger import ledger_of

    return ledger_of(stated["ledger"], "ledger")


def _read(what: Sequence[Any], left_out: dict[str, str]) -> Iterator[Run]:
    """Each release; a file that cannot be read among others goes to ``left_out``, with the reason."""
    for name, one in zip(names_of(what), what, strict=True):
        among_others = len(what) > 1 and _path_of(one) is not None
        try:
            mechanism, ledger = released(one)
        except ReticentError as error:
            if not among_others:
                raise
            left_out[name] = str(error)
        else:
            warnings = {fact.key: str(fact.text) for fact in getattr(ledger, "faults", ())}
            yield Run(name, mechanism, warnings, ledger, among_others)


def names_of(what: Sequence[Any]) -> list[str]:
    """What to call each: a file or a folder by its path, as far as these differ; whatever else by its place."""
    paths = [None if (path := _path_of(one)) is None else path.absolute() for one in what]
    folder = os.path.commonpath([str(path.parent) for path in paths if path is not None] or ["/"])
    return [f"release {n}" if path is None else str(path.relative_to(folder)) for n, path in enumerate(paths, 1)]


def _path_of(what: Any) -> Path | None:
    """Where it lies: a path, or the folder of a run."""
    path = what if isinstance(what, (str, Path)) else getattr(what, "path", None)
    return Path(path) if isinstance(path, (str, Path)) else None


def _whose(names: Sequence[str]) -> str:
    """The runs that a note is about, in brackets; nothing where it is about all."""
    rest = len(names) - _NAMED
    more = [*names[:_NAMED], f"{rest} more"] if rest > 1 else list(names)
    return f" ({listed(more)})" if names else ""


def _cell(measure: Measure, record: AssessmentRecord, at: tuple[float, ...]) -> float | None:
    """The number of a record; None where this attacker has none."""
    if at not in [tuple(map(float, known)) for known in measure.stated(record)]:
        return None
    value = measure.of(record, *at).value
    return math.inf if value is None else value


def _differing(records: Sequence[Mapping[str, Any]], otherwise: tuple[str, ...]) -> tuple[str, ...]:
    """Parameters in which releases of one kind differ; ``otherwise`` where kinds, lists or nothing differ."""
    names = records[0].keys()
    same = all(record.keys() == names for record in records)
    differ = tuple(name for name in names if same and len({repr(record[name]) for record in records}) > 1)
    flat = all(isinstance(record[name], str | int | float | None) for record in records for name in differ)
    return differ if differ and flat and "kind" not in differ else otherwise
