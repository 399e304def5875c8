"""What a certificate says in the form that somebody else asks for: made from the document alone, and compared with it.

The last line of an export names the document that it is made from. ``verify`` makes the export again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from reticent.certificates.document.schema import Certificate
from reticent.certificates.exports import deployments_registry, lists, model_card
from reticent.io.files import read_text
from reticent.io.strict import LARGEST_FILE
from reticent.kernel.errors import ArtifactError

_YAML, _HIDDEN = "# {}\n", "\n<!-- {} -->\n"
Made = Callable[[Certificate], str]
LISTS: Mapping[str, Mapping[str, tuple[str, Made]]] = {
    name: {
        f"{name}.md": (_HIDDEN, partial(lists.markdown, name=name)),
        f"{name}.html": (_HIDDEN, partial(lists.page, name=name)),
    }
    for name in lists.lists()
}
"""Lists that officers fill, as Markdown and as a page."""
EXPORTS: Mapping[str, Mapping[str, tuple[str, Made]]] = {
    "deployments-registry": {"deployment.yaml": (_YAML, deployments_registry.entry)},
    "model-card": {"model-card.md": (_HIDDEN, model_card.block)},
}
"""What other registries and sites ask for."""
EVERY = {**EXPORTS, **LISTS}
"""By name and file: how a comment is written there, and what makes the text."""

DOCUMENT = "certificate.public.json"
_MADE = re.compile(r"reticent export ([a-z0-9-]+) of certificate\.public\.json")


def exported(certificate: Certificate, name: str) -> dict[str, str]:
    """By file the export ``name`` of the public document, each with its last line."""
    line = f"reticent export {name} of {DOCUMENT}, content_sha256 {certificate.content_sha256}"
    return {file: made(certificate) + comment.format(line) for file, (comment, made) in EVERY[name].items()}


def is_as_made(path: Path) -> bool:
    """Whether a file is an export of the document beside it, and nobody changed it."""
    try:
        return path.is_file() and not read(path, read_text(path, LARGEST_FILE))[1]
    except ArtifactError:
        return False


def read(path: Path, text: str) -> tuple[Certificate, list[str]]:
    """The document of an export, which lies beside it, and where the export shows something else than its document.

    Raises:
        ArtifactError: the text is no export, or its document is missing, or no certificate.
    """
    said = _MADE.search(text.rstrip().rpartition("\n")[2])
    if said is None or said[1] not in EVERY:
        raise ArtifactError(f"{path} is no export of a certificate: its last line does not say so")
    if not (beside := path.with_name(DOCUMENT)).exists():
        raise ArtifactError(f"{path} is made from {DOCUMENT}, which does not lie beside it")
    document = Certificate.load(beside)
    made = {Path(file).suffix: again for file, again in exported(document, said[1]).items()}
    lines, wanted = text.split("\n"), made.get(path.suffix, "").split("\n")
    if lines == wanted:
        return document, []
    first = next((n for n, (one, other) in enumerate(zip(lines, wanted, strict=False), 1) if one != other), None)
    where = f"from line {first} on" if first is not None else "in its length"
    return document, [f"{path.name} is not what {DOCUMENT} is exported as, {where}"]
