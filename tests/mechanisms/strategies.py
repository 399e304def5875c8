"""Matrices as the text that a mechanism takes, and as what a file is read as."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from reticent.mechanisms import MatrixMechanism


def rows(matrix: np.ndarray) -> str:
    """Of the lower triangle."""
    return json.dumps([[float(x) for x in row[: index + 1]] for index, row in enumerate(matrix)])


def read(file: Path, steps: int | None = None) -> str:
    """The strategy that a file holds."""
    return MatrixMechanism.resolved({"steps": steps, "strategy_file": str(file)})["strategy"]
