"""Formulas as MathML, which docutils makes of LaTeX: browsers draw it without scripts, fonts or a network."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

_LONG = 40
"""Characters of LaTeX from which a formula in a line may be wider than a phone."""


def inline(writer: Any, node: Any) -> None:
    """A formula in a line of text. A long one scrolls, because it cannot be broken."""
    written = node.astext()
    shown = tex2mathml(written, as_block=False)
    scrolls = '<span class="formula" role="region" aria-label="formula" tabindex="0">'
    writer.body.append(f"{scrolls}{shown}</span>" if len(written) > _LONG else shown)
    raise SkipNode


def block(writer: Any, node: Any) -> None:
    """A formula of its own: it scrolls where it is wider than the page, with the keyboard too."""
    shown = tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="formula" role="region" aria-label="formula" tabindex="0">{shown}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register as the renderer of Sphinx's formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
