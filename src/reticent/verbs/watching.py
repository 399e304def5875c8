"""``watch`` and ``lint``: what a training loop really does, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from reticent import facts
from reticent.adversaries.report import Record
from reticent.facts import Fact, Severity, all_facts
from reticent.interop.documents import read_statement, statement
from reticent.kernel.errors import ParameterError, needing
from reticent.kernel.keywords import hinting
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.text import printable
from reticent.records.ledger import RunLedger, held
from reticent.verbs.releases import WHOLE
from reticent.verbs.request import Request, asked, path_said
from reticent.verbs.table import Answer, Cell, Table

if TYPE_CHECKING:
    from reticent.watching.live import Log
    from reticent.watching.session import Watch


@hinting
def watch(
    model: Any,
    optimizer: Any = None,
    loader: Any = None,
    *,
    clipping: str | None = None,
    sampler: str | None = None,
    sensitive: Any = None,
    records_per_user: int | None = None,
    start: str | None = None,
    continues: Any = None,
    planned_steps: int | None = None,
    stop_at: str | None = None,
    log: Log | Sequence[Log] | None = None,
    log_every: int = 50,
    unit: str = "record",
    sign: Any = None,
) -> Watch:
    """Observe a training loop; see ``reticent.watching.session.Watch`` for the arguments.

    ``with rt.watch(model, optimizer, loader) as ledger:`` around the loop is all that a loop of Opacus needs. Another
    loop calls ``ledger.step(noise_multiplier=...)`` after each step. ``rt.certify(ledger)`` afterwards.

    ``sensitive`` is a ``reticent.sensitivity.SensitiveAttribute``: how far it can move clipped gradients is recorded,
    privately. ``records_per_user`` states how many records one person has at most: the numbers then cover all of them
    together, and are about a person. ``continues`` is the ledger of the loop that ended at these weights in another
    process; ``start="declared"`` states that the start weights do not depend on these records, ``start="base-model"``
    that they are those of a model that was trained on others.
    ``sign`` is a private key, or the path of its file, that signs the ledger when the loop ends.

    ``ledger.risk()`` says during training what the steps so far reveal at most. ``stop_at="advantage=0.1"`` ends the
    loop before the step that would exceed it, ``planned_steps`` says how many there are to be at most, and ``log``
    takes functions of ``reticent.watching.loggers``. With ``unit="client"`` the numbers are about whole clients.

    Raises:
        UnsupportedError: torch is not installed, or ``sensitive`` is asked for a loop that cannot be measured.
        ParameterError: what is declared contradicts what is seen.
    """
    given = dict(locals())
    with needing("watching", "train"):
        from reticent.watching.session import Watch
    if loader is not None and (isinstance(loader, (str, bytes)) or not hasattr(loader, "__iter__")):
        raise ParameterError("loader", loader, "a loader of batches")
    return Watch(**given)


@hinting
def random_allocation(loader: Any, *, uses_per_epoch: int = 1) -> Any:
    """A loader that draws the batches of each record anew in each epoch; see ``reticent.watching.allocation``.

    Args:
        loader: of torch, that shuffles. The new one has as many batches, of varying size.
        uses_per_epoch: in how many of these each record is; batches are so many times as large.

    Raises:
        UnsupportedError: torch is not installed.
        ParameterError: it is no such loader, or has fewer batches than uses.
    """
    with needing("random allocation", "train"):
        from reticent.watching import allocation
    return allocation.random_allocation(loader, uses_per_epoch=uses_per_epoch)


@hinting
def secure_noise(optimizer: Any) -> Any:
    """Let a private optimizer of Opacus draw its noise from a stream cipher; see ``reticent.watching.secure_noise``.

    The keys come from the operating system, so no seed of the program gives the noise away.

    Args:
        optimizer: that ``make_private`` returned; it is changed and returned.

    Raises:
        UnsupportedError: torch is not installed, or clipping is adaptive.
        ParameterError: it is no private optimizer of Opacus.
    """
    with needing("secure noise", "train"):
        from reticent.watching import secure_noise as source
    return source.secure_noise(optimizer)


class Fault(Record):
    """One thing that a reader must know, and what to do about it."""

    fault: str
    severity: Severity
    reason: str
    remedy: str


class LintDocument(Record):
    """What ``reticent lint --json`` prints, the worst first."""

    schema_: str = Field(default="reticent.lint/1", alias="schema")
    faults: list[Fault]


class Linted(Table):
    """The faults of a loop or a run, the worst first.

    Attributes:
        faults: facts that a reader must know; empty where there is nothing to say.
        worst: the severity of the worst line, or None.
    """

    def __init__(self, ledger: RunLedger | Mechanism) -> None:
        self._steps = ledger.steps
        self.faults = _stated(ledger) if isinstance(ledger, Mechanism) else ledger.faults
        wrong = [*_wrong(ledger), *_about_whom(ledger)]
        order = [severity.value for severity in Severity]
        self._rows = sorted([*wrong, *map(_told, self.faults)], key=lambda row: order.index(str(row[1])))

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst line, or None without any."""
        found = {row[1] for row in self._rows}
        return next((severity for severity in Severity if severity.value in found), None)

    def title(self) -> str:
        found = [str(row[1]) for row in self._rows]
        each = [(found.count(severity.value), severity.value) for severity in Severity]
        counted = [f"{many} {name}{'' if many == 1 else 's'}" for many, name in each if many]
        return f"{self._steps} noisy steps, {', '.join(counted) or 'no faults'}"

    def columns(self) -> tuple[str, ...]:
        return ("fault", "severity", "reason", "remedy")

    def rows(self) -> list[tuple[Cell, ...]]:
        return list(self._rows)

    @property
    def document(self) -> LintDocument:
        """The rows."""
        each = (dict(zip(self.columns(), map(str, row), strict=True)) for row in self.rows())
        return LintDocument(faults=[Fault(**row) for row in each])

    @property
    def exit_code(self) -> int:
        """1 where there is an error."""
        return 1 if self.worst is Severity.ERROR else 0

    def lines(self) -> list[str]:
        """The title; then for each fault its severity and name, the reason, and the remedy."""
        found = [self.title()]
        for name, severity, reason, remedy in self.rows():
            found += [f"{severity}: {name}", f"  {printable(reason)}", *([f"  -> {remedy}"] if remedy else [])]
        return found

    def indent(self, line: str) -> int:
        return 5 if line.startswith("  ->") else 2

    __repr__ = Answer.__repr__


def _stated(mechanism: Mechanism) -> tuple[Fact, ...]:
    """Of what nobody saw run: what its parameters say."""
    found = {facts.DECLARED.key, *(part.sampler.warning for part in mechanism.parts if part.sample_rate < 1.0)}
    found |= {facts.NO_NOISE.key} if any(part.noise_multiplier == 0.0 for part in mechanism.parts) else set()
    drawn = {(part.noise_multiplier, part.sample_rate) for part in mechanism.parts}
    found |= {facts.CHANGED_NOISE.key} if len(drawn) > 1 else set()
    return tuple(fact for fact in all_facts().values() if fact.key in found)


def _told(fact: Fact) -> tuple[Cell, ...]:
    return fact.key, fact.severity.value, str(fact.reason), str(fact.remedy)


def _about_whom(ledger: RunLedger | Mechanism) -> list[tuple[Cell, ...]]:
    """The stop sign of a page, where nobody stated whom the numbers protect."""
    from reticent.certificates.document.sentences import STOP

    alone = getattr(ledger, "unit", None) != Unit.CLIENT and ledger.records_per_user is None
    key = "records-per-person"
    return [(key, Severity.WARNING.value, " ".join(map(str, STOP)), CONDITIONS[key].remedy)] if alone else []


def _wrong(ledger: RunLedger | Mechanism) -> list[tuple[Cell, ...]]:
    remedy = "The ledger contradicts itself: it is not as it was written."
    return [
        (f"ledger.{where}", Severity.ERROR.value, f"{where} {problem}", remedy)
        for where, problem in getattr(ledger, "contradictions", tuple)()
    ]


def _loop(name: str, said: Any) -> Any:
    """A ledger or a mechanism, whether or not it agrees with itself; of a document, what a file holds."""
    if isinstance(said, (str, Path)):
        path_said(name, said)
    return statement(said, name) if isinstance(said, dict) else said


@dataclass(frozen=True, kw_only=True)
class Lint(Request):
    """Every fault of a loop or a run, with its severity, the reason and the remedy."""

    verb = "lint"
    ledger: Any = asked(
        replace(WHOLE, read=_loop, typed=Path), "A ledger, a run, a mechanism or an event, or the path of one."
    )

    def answer(self, progress: Callable[[str], None] | None = None) -> Linted:
        """The faults, the worst first; they are there before a word about progress could be read.

        Raises:
            ArtifactError, ParameterError: it is no ledger, no run, no mechanism and no event.
            UnsupportedError: the event has no counterpart.
        """
        what = self.ledger
        if isinstance(what, (str, Path)):
            path = Path(what)
            what = read_statement(path / "ledger.json" if path.is_dir() else path)
        found = held(what, Mechanism)
        if found is None:
            raise ParameterError("ledger", type(what).__name__, "the ledger of a watched loop, or its file")
        return Linted(found)


def lint(ledger: Any) -> Linted:
    """What is wrong with a watched loop or a run: each fault with its severity, the reason, and the remedy.

    Args:
        ledger: of ``rt.watch`` or of a run of ``reticent train``, or the path of its file or of the run; or a mechanism
            or an event of dp_accounting, or the path of one in JSON.

    Raises:
        ArtifactError, ParameterError, UnsupportedError: as for ``Lint.answer``.
    """
    return Lint.of(ledger=ledger).answer()
