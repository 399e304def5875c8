"""How far an audit is that still runs: read from the folder of its shadow models, which it never touches."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dash import html

from reticent.certificates.document.declared_text import inert
from reticent.dashboard import words
from reticent.dashboard.pieces import named
from reticent.kernel.errors import ArtifactError
from reticent.tasks.store import Store

_RECENT = 20
_STILL = 5.0
"""Times the usual gap between two results after which nothing seems to work any more."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Tasks of an audit.

    Attributes:
        done: with a result.
        total: planned.
        remaining: seconds at the pace of the last results; None where that is not known.
        quiet: seconds since the last result; None where there is none.
        stopped: nothing came for much longer than usual.
        plan: what the audit was asked for.
    """

    done: int
    total: int
    remaining: float | None
    quiet: float | None
    stopped: bool
    plan: dict[str, Any]


def read(folder: Path, now: float | None = None) -> Progress | None:
    """How far the audit in ``folder`` is; None where it is no such folder.

    Raises:
        ArtifactError: its manifest is damaged, or does not say how many tasks are planned.
    """
    if not (folder / "manifest.json").is_file() or not (folder / "tasks").is_dir():
        return None
    plan = Store(folder).read_manifest() or {}
    total = plan.get("models")
    if isinstance(total, bool) or not isinstance(total, int) or not 1 <= total <= 10**7:
        raise ArtifactError(f"{folder.name}: its manifest does not say how many tasks are planned")
    moments = sorted(entry.stat().st_mtime for entry in (folder / "tasks").iterdir() if entry.is_dir())
    done, recent = len(moments), moments[-_RECENT:]
    gap = (recent[-1] - recent[0]) / (len(recent) - 1) if len(recent) > 1 else None
    quiet = max((time.time() if now is None else now) - recent[-1], 0.0) if recent else None
    stopped = gap is not None and quiet is not None and done < total and quiet > max(_STILL * gap, 60.0)
    remaining = None if gap is None or stopped else gap * max(total - done, 0)
    return Progress(min(done, total), total, remaining, quiet, stopped, plan)


def page(seen: Progress, title: str) -> list[Any]:
    """Tasks done, time left, and what was asked for."""
    bar = html.Progress(value=str(seen.done), max=str(seen.total), **named("Tasks of the audit"))
    facts = [(inert(str(name), 40).replace("_", " "), inert(str(value), 200)) for name, value in seen.plan.items()]
    return [
        html.H2(f"Audit {title}: {seen.done} of {seen.total} tasks done"),
        bar,
        html.P(_left(seen)),
        words.pairs(facts),
    ]


def _left(seen: Progress) -> str:
    if seen.done == seen.total:
        return "All tasks are done. The command that started the audit writes its result."
    if seen.stopped:
        quiet = _span(seen.quiet or 0.0)
        return f"No result for {quiet}: it seems to have stopped. reticent audit --resume goes on with it."
    if seen.remaining is None:
        return "The time left is known after two results. This page looks again every four seconds."
    return f"About {_span(seen.remaining)} left at the present pace. This page looks again every four seconds."


def _span(seconds: float) -> str:
    for size, name in ((3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= 2.0 * size or name == "second":
            count = max(round(seconds / size), 1)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return ""
