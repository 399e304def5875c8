"""How a curve is drawn: the same colour and dash in every picture, on the page and in the browser.

Each attacker states its style in its own file. Colours are those of Okabe and Ito, darkened where thin lines need it.
Each goes with a dash of its own, so curves can be distinguished without colour and where they coincide.
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
        return {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "-"}

    def on(self, theme: str) -> str:
        """The colour on this ground: ``light`` or ``dark``."""
        return self.dark if theme == "dark" else self.light

    def line(self, theme: str, width: float = 2.0) -> dict[str, Any]:
        """The ``line`` of a plotly trace."""
        return {"color": self.on(theme), "dash": self.dash or "solid", "width": width}

    @property
    def dash(self) -> str:
        """The dashes as plotly and SVG write them; empty for a solid line."""
        return ",".join(f"{n}px" for n in self.dashes)


SPARE = (
    Style("#6066d0", (6, 2, 2, 2), "#3a3fae", "#a7abff"),
    Style("#5f7f2f", (4, 2, 1, 2), "#41601b", "#a9cf74"),
    Style("#8a5a44", (10, 2), "#6b3f2a", "#d3a48d"),
    Style("#3f8791", (1, 2), "#1f6570", "#7fcbd6"),
)
"""For attackers that state no style, in turn."""
