"""BibTeX of this program and of the papers behind numbers, made from the list of papers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import reticent
from reticent.kernel.proofs.references import PAPERS, Paper
from reticent.kernel.text import in_latex

_OWN = "RETICENT"


def bibtex(theorems: Iterable[str]) -> str:
    """An entry for this program, and one for each paper; above each, a comment says which theorems are meant.

    Args:
        theorems: keys of ``reticent.kernel.proofs.references``.
    """
    places: dict[str, list[str]] = {_OWN: []}
    for key in dict.fromkeys(theorems):
        paper, _, place = key.partition(":")
        places.setdefault(paper, []).append(place)
    found = []
    for key, named in places.items():
        found += [f"% {key}: {', '.join(named)}"] if named else []
        found.append(entry(program() if key == _OWN else PAPERS[key]))
    return "\n".join(found)


def program() -> Paper:
    """This version of reticent, as ``CITATION.cff`` names it."""
    title = (reticent.__doc__ or "reticent").partition("\n")[0]
    version = f"Software, version {reticent.__version__}"
    return replace(PAPERS[_OWN], authors="The reticent maintainers", title=title, version=version)


def entry(paper: Paper) -> str:
    """The entry of a paper; its arXiv number, where the version has one, is an address, too."""
    names = (in_latex(name.strip()) for name in paper.authors.split(","))
    fields = {
        "author": " and ".join(f"{{{name}}}" if " " in name else name for name in names),
        "title": f"{{{in_latex(paper.title)}}}",
        "year": str(paper.year),
        "note": in_latex(paper.version),
    }
    if number := re.search(r"arXiv (\S+)", paper.version):
        fields["url"] = f"https://arxiv.org/abs/{number[1]}"
    return f"@misc{{{paper.key},\n" + "".join(f"  {name} = {{{text}}},\n" for name, text in fields.items()) + "}"
