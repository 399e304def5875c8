"""Formulas within a sentence of the theory: what has an index, a power or a root is typeset on the site.

The source stays plain, as in `e^(-x/2)` or `P_{Ru}`, so that it reads in any editor and in a diff.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

PAGES = ("theory/", "concepts/", "evidence/")
GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "mu", "phi", "Phi", "rho", "sigma")
KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title, nodes.raw, nodes.comment)
"""What holds no prose."""

_INNER = r"(?:[^(){}]|\((?:[^(){}]|\([^(){}]*\))*\))*"
_LETTER = r"A-Za-zα-ωΑ-Ωℓ"
_SCRIPT = rf"[_^](?:\{{{_INNER}\}}|\({_INNER}\)|[-−+]?\d+(?![{_LETTER}])|[{_LETTER}\d]{{1,3}}(?![{_LETTER}\d])|\*)"
_BASE = rf"(?:(?<![{_LETTER}\d])(?:{'|'.join(GREEK)}|[^\W\d_]|\d+)'*|(?<=\)))"
SCRIPTED = rf"{_BASE}(?:{_SCRIPT})+'*"
ROOT = rf"\bsqrt\({_INNER}\)"
FORMULA = re.compile(f"{ROOT}|{SCRIPTED}")
SIGNS = {"<=": "≤", ">=": "≥"}
NAMED = {"×": "times", "∓": "mp", "±": "pm", "·": "cdot", "⟨": "langle", "⟩": "rangle", "∈": "in", "≤": "le", "≥": "ge"}
FUNCTIONS = ("log", "ln", "exp", "max", "min", "inf", "sup", "sinh", "cosh", "arg", "pi", *GREEK)


def latex(formula: str) -> str:
    """One formula in LaTeX. A number in brackets keeps them, because it counts derivatives or moments."""
    text = re.sub(r"([_^])\((\d+)\)", r"\1{[\2]}", formula)
    text = re.sub(rf"([_^])\(({_INNER})\)", r"\1{\2}", text).replace("[", "(").replace("]", ")")
    text = re.sub(rf"([_^])([-−+]?\d+(?![{_LETTER}])|[{_LETTER}\d]+|\*)", r"\1{\2}", text)
    text = re.sub(r"\bsqrt\(((?:[^()]|\([^()]*\))*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√(\w)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\A-Za-z])([A-Za-z]{2,})(?![A-Za-z])", lambda found: _word(found[1]), text)
    text = text.replace("₊", "_{+}").replace("₋", "_{-}").replace("−", "-")
    text = "".join(f"\\{NAMED[sign]} " if sign in NAMED else sign for sign in text)
    return f"{{}}{text}" if text[0] in "_^" else text


def _word(word: str) -> str:
    """A function or a Greek letter by its name; a word upright; letters side by side are a product."""
    if word in FUNCTIONS:
        return f"\\{'varepsilon' if word == 'epsilon' else word} "
    return rf"\mathrm{{{word}}}" if word == "Var" or (word.islower() and len(word) > 2) else word


def pieces(text: str) -> list[nodes.Node]:
    """The text in order: words as they are, formulas as formulas. What cannot be read as one stays as it is."""
    found: list[nodes.Node] = []
    end = 0
    for match in FORMULA.finditer(text):
        written = latex(match.group())
        try:
            tex2mathml(written, as_block=False)
        except (MathError, IndexError):
            continue
        found += [nodes.Text(_signs(text[end : match.start()])), nodes.math("", written)]
        end = match.end()
    return [*found, nodes.Text(_signs(text[end:]))]


def _signs(text: str) -> str:
    return re.sub("<=|>=", lambda match: SIGNS[match.group()], text)


def typeset(app: Any, doctree: nodes.document, name: str) -> None:
    """Change the prose of one page."""
    if not name.startswith(PAGES):
        return
    for text in list(doctree.findall(nodes.Text)):
        parents, above = [], text.parent
        while above is not None:
            parents.append(above)
            above = above.parent
        if not any(isinstance(each, KEPT) for each in parents):
            text.parent.replace(text, pieces(text.astext()))


def setup(app: Any) -> dict[str, bool]:
    """When all links are resolved, so that no name of a link changes."""
    app.connect("doctree-resolved", typeset)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
