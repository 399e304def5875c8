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
        colour: a hexadecimal colour that can be read on white and on black.
        dashes: lengths of strokes and gaps in points; empty for a solid line.
    """

    colour: str
    dashes: tuple[int, ...]

    def matplotlib(self) -> dict[str, Any]:
        """Keywords for ``Axes.plot``."""
        return {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "-", "linewidth": 1.7}

    def plotly(self) -> dict[str, str]:
        """The ``line`` of a plotly trace."""
        return {"color": self.colour, "dash": ",".join(f"{n}px" for n in self.dashes) or "solid"}


ATTACKER_STYLES: dict[str, Style] = {
    "worst-case": Style("#7f7f7f", ()),
    "relaxed": Style("#c95f1c", (8, 3)),
    "mixed": Style("#2b83ba", (3, 3)),
    "membership": Style("#1b8f68", (12, 3, 3, 3)),
    "membership-game": Style("#b0578f", (2, 2)),
    "attribute": Style("#9c7a1a", (14, 4)),
}
"""By ``Adversary.name``."""

OTHER = Style("#6066d0", (6, 2, 2, 2))


def style_of(attacker: str) -> Style:
    """The style of the attacker with this name; one common style for every name that is not known."""
    return ATTACKER_STYLES.get(attacker, OTHER)
