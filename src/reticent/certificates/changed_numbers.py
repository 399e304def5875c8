"""*Changed numbers* of the changelog as data: which stated values a newer version states differently, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

VERSIONS: tuple[str, ...] = ("0.1.0",)
"""Every version that wrote certificates of this schema, oldest first; the last is this one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry under *Changed numbers*.

    Attributes:
        version: in which the leaf changed; one of ``VERSIONS``.
        leaf: path with ``*`` for any part, such as ``assessments.*.mu.*``.
        why: the entry of the changelog, in one sentence.
        adversary: whose assessment it is about, or None for every one.
    """

    version: str
    leaf: str
    why: str
    adversary: str | None = None


CHANGES: tuple[Change, ...] = ()
"""Nothing yet: 0.1.0 is the first version with this schema."""


def explanation(written_by: str, leaf: str, adversary: str | None) -> str | None:
    """The entry that explains why a leaf of a document of an older version differs, or None.

    Args:
        written_by: version that wrote the document.
        leaf: path inside the document, parts joined by dots.
        adversary: whose assessment the leaf belongs to, if any.
    """
    if written_by not in VERSIONS:
        return None
    for change in CHANGES:
        newer = change.version in VERSIONS and VERSIONS.index(change.version) > VERSIONS.index(written_by)
        if newer and change.adversary in (None, adversary) and fnmatchcase(leaf, change.leaf):
            return f"{change.version}: {change.why}"
    return None
