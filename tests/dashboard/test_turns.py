"""One computation for each page; the newest question wins; nobody waits without an end."""

from __future__ import annotations

import threading

import pytest

from reticent.dashboard.turns import BusyError, SupersededError, Turns
from reticent.kernel.stopping import checkpoint


def test_a_newer_question_ends_a_computation_at_its_next_checkpoint() -> None:
    turns, began = Turns(), threading.Event()
    ended: list[type] = []

    def endless() -> None:
        try:
            with turns.turn("page", 1):
                while True:
                    checkpoint()
                    began.set()
        except SupersededError as error:
            ended.append(type(error))

    computing = threading.Thread(target=endless, daemon=True)
    computing.start()
    assert began.wait(60)
    turns.note("other", 9)
    assert computing.is_alive(), "another page does not end it"
    turns.note("page", 2)
    computing.join(timeout=60)
    assert ended == [SupersededError]
    with pytest.raises(SupersededError), turns.turn("page", 1):
        pass
    with turns.turn("page", 3):
        pass


def test_pages_do_not_disturb_each_other() -> None:
    turns = Turns()
    with turns.turn("one", 5), turns.turn("other", 1):
        checkpoint()


def test_what_is_no_longer_asked_reaches_no_page() -> None:
    turns = Turns()
    with pytest.raises(SupersededError), turns.turn("page", 1):
        turns.note("page", 2)


def test_only_so_many_run_and_wait() -> None:
    turns = Turns(at_once=1, waiting=0)
    with turns.turn("one", 1), pytest.raises(BusyError, match="many pages"), turns.turn("other", 1):
        pass
    with turns.turn("other", 1):
        pass


def test_pages_are_forgotten_and_not_kept_for_ever() -> None:
    turns = Turns(pages=3)
    for k in range(50):
        with turns.turn(str(k), 1):
            pass
    assert len(turns._pages) == 3
