"""Bars on long work: what a terminal shows after each picture, and that nothing is drawn where nobody watches."""

from __future__ import annotations

import io
import sys

import pytest

from reticent.cli.progress import note, progress_bar, waiting
from reticent.verbs import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def pictures(self) -> list[str]:
        """What stood in the line, one picture after the other."""
        return self.getvalue().split("\r\x1b[K")[1:]


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Of 80 columns; in the test itself, as pytest takes standard error away from fixtures."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_the_remaining_time_of_a_resumed_run_counts_what_was_done_since(monkeypatch) -> None:
    shown = terminal(monkeypatch)
    clock = iter([0.0, 60.0, 60.05, 120.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress_bar("training") as bar:
        for done in (50, 52, 53, 60):
            bar(done, 60)
    assert shown.pictures() == [
        "training ",
        f"training [{'#' * 25}     ] 50/60",
        f"training [{'#' * 26}    ] 52/60, 0:04:00 left",  # eight more at half a minute; 53 came too soon after it
        f"training [{'#' * 30}] 60/60, 0:00:00 left",
        "",
    ]


def test_a_note_stays_and_a_long_name_is_cut(monkeypatch) -> None:
    shown = terminal(monkeypatch)
    with waiting("assessing") as show:
        show("x" * 100 + "\x1b[2J")
        note("a worker is silent")
    _, long, kept, left = shown.pictures()
    assert (len(long), long[-3:], kept, left) == (79, "...", "a worker is silent\n", "")


def test_nothing_is_drawn_where_nobody_watches(capsys) -> None:
    with progress_bar("training") as bar, waiting("assessing") as show:
        note("a worker is silent")
    assert (bar, show, capsys.readouterr().err) == (None, None, "a worker is silent\n")
