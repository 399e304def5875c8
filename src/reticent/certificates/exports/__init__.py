"""What a certificate says in the form that somebody else asks for: made from the document alone, and compared with it.

The last line of an export names the document that it is made from. ``verify`` makes the export again and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from reticent.certificates.document.schema import Certificate
from reticent.certificates.exports import deployments_registry, model_card
from reticent.io.files import read_text
from reticent.io.strict import LARGEST_FILE
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import one_of

EXPORTS: Mapping[str, tuple[str, str, Callable[[Certificate], str]]] = {
    "deployments-registry": ("deployment.yaml", "# {}\n", deployments_registry.entry),
    "model-card": ("model-card.md", "\n<!-- {} -->\n", model_card.block),
}
"""By name: how the file is called, how a comment is written, and what makes the text."""

DOCUMENT = "certificate.public.json"
_MADE = re.compile(r"reticent export ([a-z-]+) of certificate\.public\.json")


def check_export(name: str) -> str:
    """The name, if there is such an export.

    Raises:
        ParameterError: there is none.
    """
    if name not in EXPORTS:
        raise ParameterError("export", name, one_of(name, EXPORTS))
    return name


def exported(certificate: Certificate, name: str) -> str:
    """The export ``name`` of the public document, with its last line."""
    _, comment, made = EXPORTS[name]
    line = f"reticent export {name} of {DOCUMENT}, content_sha256 {certificate.content_sha256}"
    return made(certificate) + comment.format(line)


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
    if said is None or said[1] not in EXPORTS:
        raise ArtifactError(f"{path} is no export of a certificate: its last line does not say so")
    if not (beside := path.with_name(DOCUMENT)).exists():
        raise ArtifactError(f"{path} is made from {DOCUMENT}, which does not lie beside it")
    document = Certificate.load(beside)
    lines, wanted = text.split("\n"), exported(document, said[1]).split("\n")
    if lines == wanted:
        return document, []
    first = next((n for n, (one, other) in enumerate(zip(lines, wanted, strict=False), 1) if one != other), None)
    where = f"from line {first} on" if first is not None else "in its length"
    return document, [f"{path.name} is not what {DOCUMENT} is exported as, {where}"]
