"""Real data inside scikit-learn's wheel: no download, no ``RETICENT_DATA``."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.data.dataset import Dataset, numeric_group, to_unit
from reticent.kernel.errors import needing

# Summary table of the published description of the Wisconsin diagnostic breast cancer data, rounded
# outwards. Fixed here, so no range is computed from the loaded records.
_LOWEST = (
    "6.5 9 43 140 0.05 0.01 0 0 0.1 0.04 "
    "0.1 0.3 0.7 6 0.001 0.002 0 0 0.007 0.0008 "
    "7.5 12 50 180 0.07 0.02 0 0 0.15 0.05"
)
_HIGHEST = (
    "29 40 190 2510 0.17 0.35 0.43 0.21 0.31 0.1 "
    "2.9 4.9 22 545 0.032 0.136 0.4 0.053 0.08 0.03 "
    "37 50 252 4260 0.23 1.06 1.26 0.3 0.67 0.21"
)
"""Of the 30 measurements: of ten features the means, the standard errors and the worst values."""
_TRAIN_FRACTION = 0.8
_GRID = 33


def load_breast_cancer() -> Dataset:
    """Wisconsin diagnostic breast cancer: 569 women, 30 measurements, malignant (0) or benign (1).

    Each measurement is clipped to a published range and mapped to [-1, 1]. Split: 80% training by
    seed 0 (``Dataset.split`` makes another).
    """
    bunch = _sklearn("load_breast_cancer")
    low, high = (np.array(ends.split(), dtype=float) for ends in (_LOWEST, _HIGHEST))
    features = to_unit(bunch.data, low, high)
    grids = np.linspace(low, high, _GRID)
    encoded = to_unit(grids, low, high)
    groups = tuple(
        numeric_group(str(name), i, grids[:, i].tolist(), encoded[:, i]) for i, name in enumerate(bunch.feature_names)
    )
    return Dataset.pooled(
        _TRAIN_FRACTION,
        name="breast-cancer",
        source="Wisconsin diagnostic breast cancer, UCI Machine Learning Repository, as shipped in scikit-learn",
        features=features,
        labels=bunch.target.astype(np.int64),
        classes=2,
        groups=groups,
        notes=("Measurements are clipped to the ranges of the published description and mapped to [-1, 1].",),
    )


def load_digits() -> Dataset:
    """Handwritten digits: 1,797 images of 8 x 8 pixels with 17 grey levels, scaled to [0, 1]; 10 classes."""
    bunch = _sklearn("load_digits")
    grid = np.arange(17.0)
    groups = tuple(numeric_group(f"pixel-{i}", i, grid.tolist(), grid / 16.0) for i in range(64))
    return Dataset.pooled(
        _TRAIN_FRACTION,
        name="digits",
        source="Optical recognition of handwritten digits, UCI repository, as shipped in scikit-learn",
        features=(bunch.data / 16.0).astype(np.float32),
        labels=bunch.target.astype(np.int64),
        classes=10,
        groups=groups,
        notes=("Grey levels 0 to 16 are divided by 16.",),
    )


def _sklearn(name: str) -> Any:
    with needing("this data set", "train"):
        from sklearn import datasets
    return getattr(datasets, name)()
