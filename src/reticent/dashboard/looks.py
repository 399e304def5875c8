"""How curves look: one colour and dash for each attacker, and the colours of the page in both themes.

The palette of ``reticent.styles``; black (white in the dark) and solid is the worst case, everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from reticent.styles import ATTACKER_STYLES, Style
from reticent.styles import OTHER as _OTHER


@dataclass(frozen=True, slots=True)
class Look:
    """Colour on light and on dark ground, and the dash as plotly and SVG write it (empty: solid)."""

    light: str
    dark: str
    dash: str = ""

    def colour(self, theme: str) -> str:
        """On this ground."""
        return self.dark if theme == "dark" else self.light

    def line(self, theme: str, width: float = 2.0) -> dict[str, object]:
        """The ``line`` of a plotly trace."""
        return {"color": self.colour(theme), "dash": self.dash or "solid", "width": width}


def _look(style: Style) -> Look:
    return Look(style.light, style.dark, style.dash)


LOOKS = {name: _look(style) for name, style in ATTACKER_STYLES.items()}
OTHER = _look(_OTHER)
SETTINGS = {"A": Look("#3a3fae", "#a7abff", "8px,3px"), "B": LOOKS["worst-case"]}
"""The two settings of a comparison."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a picture is drawn on."""

    ink: str
    quiet: str
    line: str
    accent: str
    label: str


GROUNDS = {
    "light": Ground("#1b1b1b", "#5a5f66", "#e3e5e8", "#00508a", "#ffffff"),
    "dark": Ground("#ececec", "#a9afb7", "#343a42", "#7cc0f5", "#1d2126"),
}


def look_of(attacker: str) -> Look:
    """The look of an attacker; one common look for a name that is not known."""
    return LOOKS.get(attacker, OTHER)
