"""What pictures are drawn on, in both themes, and how the two settings of a comparison are drawn.

Attackers state their own style; black (white in the dark) and solid is the worst case, everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from reticent.adversaries import WorstCase, style_of
from reticent.styles import Style

SETTINGS = {"A": Style("#6066d0", (8, 3), "#3a3fae", "#a7abff"), "B": style_of(WorstCase.name)}
"""The two settings of a comparison."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a picture is drawn on."""

    ink: str
    quiet: str
    line: str
    accent: str
    label: str
    target: str


GROUNDS = {
    "light": Ground("#1b1b1b", "#5a5f66", "#e3e5e8", "#00508a", "#ffffff", "#b84700"),
    "dark": Ground("#ececec", "#a9afb7", "#343a42", "#7cc0f5", "#1d2126", "#ffb27d"),
}
