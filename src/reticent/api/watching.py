"""``watch`` and ``lint``: what a training loop really does, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.api.table import Cell, Table
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanism.watch_faults import Fault
from reticent.mechanism.watched_run import PublicWatchedRun

if TYPE_CHECKING:
    from reticent.watch.session import Watch


def watch(
    model: Any,
    optimizer: Any = None,
    loader: Any = None,
    *,
    clipping: str | None = None,
    sampler: str | None = None,
) -> Watch:
    """Observe a training loop; see ``reticent.watch.session.Watch`` for the arguments.

    ``with rt.watch(model, optimizer, loader) as ledger:`` around the loop is all that a loop of Opacus needs. Another
    loop calls ``ledger.step(noise_multiplier=...)`` after each step. ``rt.certify(ledger)`` afterwards.

    Raises:
        UnsupportedError: torch is not installed.
        ParameterError: what is declared contradicts what is seen.
    """
    try:
        from reticent.watch.session import Watch
    except ImportError as error:
        raise UnsupportedError(f"watching needs an extra: pip install 'reticent[train]' ({error})") from None
    return Watch(model, optimizer, loader, clipping=clipping, sampler=sampler)


class Linted(Table):
    """The faults of a watched loop, the worst first.

    Attributes:
        faults: by name; empty where there is nothing to say.
    """

    def __init__(self, ledger: PublicWatchedRun) -> None:
        found = dict.fromkeys([*ledger.faults, *ledger.demanded()])
        self.faults: tuple[Fault, ...] = tuple(fault for fault in Fault if fault in found)
        self._steps = ledger.steps

    def title(self) -> str:
        """How many steps and faults."""
        return f"{self._steps} noisy steps, {len(self.faults)} {'fault' if len(self.faults) == 1 else 'faults'}"

    def columns(self) -> tuple[str, ...]:
        """What is wrong, how bad, why, and what to do."""
        return ("fault", "severity", "reason", "mend")

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each fault."""
        told = ((fault, fault.explanation) for fault in self.faults)
        return [(fault.value, said.severity.value, said.reason, said.mend) for fault, said in told]

    def __repr__(self) -> str:
        lines = [self.title()]
        for name, severity, reason, mend in self.rows():
            lines += [f"{severity}: {name}", f"  {reason}", f"  -> {mend}"]
        return "\n".join(lines)


def lint(ledger: Any) -> Linted:
    """What is wrong with a watched loop: each fault with its severity, the reason, and what mends it.

    Args:
        ledger: of ``rt.watch``, or the path of its file.

    Raises:
        ArtifactError, ParameterError: it is no such ledger.
    """
    return Linted(watched_run(ledger))


def watched_run(ledger: Any) -> PublicWatchedRun:
    """The ledger of a watched loop, from a file or an object.

    Raises:
        ArtifactError, ParameterError: it is none.
    """
    if isinstance(ledger, (str, Path)):
        from reticent.mechanism.any_ledger import read_ledger

        ledger = read_ledger(Path(ledger))
    found = ledger if isinstance(ledger, PublicWatchedRun) else getattr(ledger, "ledger", None)
    if not isinstance(found, PublicWatchedRun):
        raise ParameterError("ledger", type(ledger).__name__, "the ledger of a watched loop, or its file")
    return found
