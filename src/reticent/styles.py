"""One look for each attacker: the same colour and dash in every picture, on the page and in the browser.

Colours are Okabe and Ito's, darkened where thin lines need it; each pairs with a dash of its own, so that curves can be
told apart without colour and where they coincide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Style:
    """How the curve of one attacker is drawn.

    Attributes:
        colour: a hexadecimal colour that can be read on white and on black, for pictures whose ground is not known.
        dashes: lengths of strokes and gaps in points; empty for a solid line.
        light: the colour on a light ground.
        dark: the colour on a dark ground.
    """

    colour: str
    dashes: tuple[int, ...]
    light: str
    dark: str

    def matplotlib(self) -> dict[str, Any]:
        """Keywords for ``Axes.plot``."""
        return {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "-", "linewidth": 1.7}

    @property
    def dash(self) -> str:
        """The dashes as plotly and SVG write them; empty for a solid line."""
        return ",".join(f"{n}px" for n in self.dashes)


ATTACKER_STYLES: dict[str, Style] = {
    "worst-case": Style("#7f7f7f", (), "#111111", "#f2f2f2"),
    "relaxed": Style("#c95f1c", (8, 3), "#b84700", "#ff9a5c"),
    "mixed": Style("#2b83ba", (3, 3), "#0067a8", "#6bb8f2"),
    "membership": Style("#1b8f68", (12, 3, 3, 3), "#00724f", "#5fd0a5"),
    "membership-game": Style("#b0578f", (2, 2), "#98467a", "#e59ac8"),
    "attribute": Style("#9c7a1a", (14, 4), "#7a5600", "#e0b34d"),
    "final-model": Style("#2f7d6d", (7, 2, 2, 2), "#1b5c4f", "#6fd3bd"),
    "norm-only": Style("#c44a55", (5, 2), "#a3202f", "#ff8f98"),
}
"""By ``Adversary.name``."""

OTHER = Style("#6066d0", (6, 2, 2, 2), "#3a3fae", "#a7abff")


def style_of(attacker: str) -> Style:
    """The style of the attacker with this name; one common style for every name that is not known."""
    return ATTACKER_STYLES.get(attacker, OTHER)
