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
GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu"),
    *("phi", "rho", "sigma", "tau", "Phi", "Sigma", "Delta"),
)
KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title, nodes.raw, nodes.comment)
"""What holds no prose."""

_INNER = r"(?:[^(){}]|\((?:[^(){}]|\([^(){}]*\))*\))*"
_LETTER = r"A-Za-zα-ωΑ-Ωℓ"
_NAMED_INDEX = rf"[-−+]?\d+(?![{_LETTER}])|[{_LETTER}\d]{{1,7}}(?![{_LETTER}\d])|\*"
_SCRIPT = rf"[_^](?:sqrt\([^()]*\)|\{{{_INNER}\}}|\({_INNER}\)|{_NAMED_INDEX})"
_BASE = rf"(?!rho_form)(?:(?<![{_LETTER}\d])(?:{'|'.join(GREEK)}|[^\W\d_]|∂|\d+)'*|(?<=\)))"
SCRIPTED = rf"{_BASE}(?:{_SCRIPT})+(?:'(?!s\b))*"
ROOT = rf"\bsqrt\({_INNER}\)"
FORMULA = re.compile(f"{ROOT}|{SCRIPTED}")
SIGNS = {"<=": "≤", ">=": "≥", "->": "→"}
NAMED = {
    "∂": "partial",
    "→": "to",
    "×": "times",
    "∓": "mp",
    "±": "pm",
    "·": "cdot",
    "⟨": "langle",
    "⟩": "rangle",
    "∈": "in",
    "≤": "le",
    "≥": "ge",
}
FUNCTIONS = ("sum", "log", "ln", "exp", "max", "min", "inf", "sup", "sinh", "cosh", "arg", "pi", *GREEK)


def latex(formula: str) -> str:
    """One formula in LaTeX. A number in brackets keeps them, because it counts derivatives or moments."""
    text = re.sub(r"([_^])\((\d+)\)", "\\1{\ue000\\2\ue001}", _signs(formula))
    text = re.sub(r"([_^])(sqrt\([^()]*\))", r"\1{\2}", text)
    text = re.sub(rf"([_^])\(({_INNER})\)", r"\1{\2}", text).replace("\ue000", "(").replace("\ue001", ")")
    text = re.sub(rf"([_^])([-−+]?\d+(?![{_LETTER}])|[{_LETTER}\d]+|\*)", r"\1{\2}", text)
    text = re.sub(r"([_^])\{([^{}]*)\}('+)", r"\1{\2\3}", text)  # a prime after an index is the index's
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
        if not drawable(written):
            continue
        found += [nodes.Text(_signs(text[end : match.start()])), nodes.math("", written)]
        end = match.end()
    return [*found, nodes.Text(_signs(text[end:]))]


def drawable(formula: str) -> bool:
    """Whether docutils can draw this LaTeX."""
    try:
        tex2mathml(formula, as_block=False)
    except (MathError, IndexError):
        return False
    return True


def _signs(text: str) -> str:
    return re.sub("<=|>=|->", lambda match: SIGNS[match.group()], text)


def is_formula(code: str) -> bool:
    """Whether what is set as code is a formula: it has an index, a power or a root, and is no name of the library."""
    name = re.fullmatch(r"\w{2,}_\w+|_\w+", code) and not re.match(r"[^\W\d_]_", code)
    return bool(FORMULA.search(code)) and not name and not re.search(r"\w\.\w|::|--|\"|\.py|[a-z]{3,}_[a-z]{4,}_", code)


def typeset(app: Any, doctree: nodes.document, name: str) -> None:
    """Change the prose of one page."""
    if not name.startswith(PAGES):
        return
    for literal in list(doctree.findall(nodes.literal)):
        if name.startswith("theory/") and is_formula(literal.astext()) and drawable(latex(literal.astext())):
            literal.parent.replace(literal, nodes.math("", latex(literal.astext())))
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
