"""``reticent reproduce``: where the gallery is."""

from __future__ import annotations

from reticent.cli._app import argument, command
from reticent.kernel.errors import ArtifactError


@command("reproduce", argument("entry", str, "[ID|all]", "An id of the gallery.", required=False))
def reproduce(entry: str | None) -> None:
    """The gallery of the papers is in the repository: run python -m experiments.gallery there."""
    raise ArtifactError(f"clone the repository and run there: python -m experiments.gallery {entry or ''}".rstrip())
