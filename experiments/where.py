"""Where an experiment keeps what takes minutes: beside it, or where the gallery's ``--again`` computes it."""

import os
from pathlib import Path


def results(script: str) -> Path:
    """Folder of the results of a script, given its ``__file__``."""
    folder = Path(script).parent
    anew = os.environ.get("RETICENT_RESULTS")
    found = Path(anew) / folder.name if anew else folder / "results"
    found.mkdir(parents=True, exist_ok=True)
    return found
