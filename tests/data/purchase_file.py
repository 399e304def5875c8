"""A file as those have it who have Purchase-100."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reticent.data import Dataset


def write_table(dataset: Dataset, path: Path) -> None:
    """In the format that ``load_purchase100`` reads: label from 1, then bits."""
    np.savetxt(path, np.column_stack([dataset.labels + 1, dataset.features.astype(np.int64)]), fmt="%d", delimiter=",")
