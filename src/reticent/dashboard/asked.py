"""One question of one page, read from what a browser sent, and what the page gets to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reticent.dashboard.readings import answer
from reticent.dashboard.requests import assess_of
from reticent.dashboard.state import State
from reticent.kernel.errors import ParameterError
from reticent.verbs import Assessments

_SHORT = 80


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of one page.

    Attributes:
        settings: of the page.
        page: which page asks; random text.
        turn: grows with each change of that page.
        stage: what is asked.
        theme: ``light`` or ``dark``.
        files: chosen files, each its content as browsers send it and its name.
        path: of a file of this machine.
        local: whether the page is served to this machine alone.
    """

    settings: State
    page: str
    turn: int
    stage: str
    theme: str = "light"
    files: tuple[tuple[str, str], ...] = ()
    path: str = ""
    local: bool = False

    @classmethod
    def of(cls, sent: Any, *, local: bool = False) -> Asked:
        """From what a browser sent.

        Raises:
            ParameterError: it is not what the page sends.
        """
        stage = sent.get("stage") if isinstance(sent, dict) else None
        if not isinstance(stage, str):
            raise ParameterError("stage", type(sent).__name__, "one that the page asks for")
        page, turn, files, path = (sent.get(name) for name in ("session", "turn", "files", "path"))
        if not isinstance(page, str) or len(page) > _SHORT:
            raise ParameterError("settings", type(sent).__name__, "what the page sends")
        if isinstance(turn, bool) or not isinstance(turn, int) or not 0 <= turn < 2**53:
            raise ParameterError("turn", str(turn)[:_SHORT], "a whole number")
        theme = "dark" if sent.get("theme") == "dark" else "light"
        given = State.of(sent.get("settings")), page, turn, stage[:_SHORT], theme
        return cls(*given, _files(files), path if isinstance(path, str) else "", local)


def _files(sent: Any) -> tuple[tuple[str, str], ...]:
    """Contents and names of what was chosen; nothing where it is not sent as the page sends it."""
    pairs = sent if isinstance(sent, list) else []
    found = (one for one in pairs if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str))
    return tuple((content, str(name)) for content, name in found)


@dataclass(frozen=True, slots=True)
class Shown:
    """What an answer changes on the page.

    Attributes:
        parts: pieces by the id of their place.
        figures: pictures by the id of theirs.
        waiting: attackers that are still computed.
        next: what is asked then; None where nothing is.
        address: settings that change, as part of an address.
        file: what the browser saves: a name and a text.
        field: the setting that is wrong.
    """

    parts: Mapping[str, Any]
    figures: Mapping[str, Any] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    next: str | None = None
    address: str = ""
    file: tuple[str, str] | None = None
    field: str = ""


def answer_to(settings: State) -> Assessments:
    """What the settings ask: each attacker against the release."""
    return answer(assess_of(settings))
