"""One question of one page, read from what a browser sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reticent.dashboard.readings import Answer, answer
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of
from reticent.errors import ParameterError, ReticentError

FAILURES = (ReticentError, ArithmeticError, MemoryError, RecursionError, ValueError)
"""What is shown as one line: an error of ours, and what numbers beyond all use end in, deep inside."""
_SHORT = 80


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of one page.

    Attributes:
        settings: of the page.
        page: which page asks; random text.
        turn: grows with each question of that page.
        theme: ``light`` or ``dark``.
    """

    settings: State
    page: str
    turn: float
    theme: str

    @classmethod
    def of(cls, sent: Any, theme: Any) -> Asked:
        """From what a browser sent.

        Raises:
            ParameterError: it is not what the page sends.
        """
        if not isinstance(sent, dict) or not isinstance(sent.get("session"), str) or len(sent["session"]) > _SHORT:
            raise ParameterError("settings", type(sent).__name__, "what the page sends")
        turn = sent.get("turn")
        if isinstance(turn, bool) or not isinstance(turn, int) or not 0 <= turn < 2**53:
            raise ParameterError("turn", str(turn)[:_SHORT], "a whole number")
        return cls(State.of(sent.get("settings")), sent["session"], turn, "dark" if theme == "dark" else "light")

    def sent(self) -> dict[str, Any]:
        """As the browser sends it: the question again."""
        return {"settings": dict(self.settings.values), "session": self.page, "turn": self.turn}


def answer_to(settings: State) -> Answer:
    """What the settings ask: each attacker against the release."""
    return answer(adversaries_of(settings), mechanism_of(settings), relation_of(settings))
