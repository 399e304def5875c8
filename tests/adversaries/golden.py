"""Reference values of tests/golden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def golden(name: str) -> Any:
    """The values of one file."""
    return json.loads((Path(__file__).parents[1] / "golden" / f"{name}.json").read_text())


GMIP = {vector["id"]: vector for vector in golden("gmip")["vectors"]}
COMPOSED = golden("relaxed_composition")["groups"]
