"""Data sets with checksums and splits: arrays of numpy, no torch."""

from reticent.data.dataset import ColumnGroup, ColumnKind, Dataset
from reticent.data.registry import NAMES, load

__all__ = ["NAMES", "ColumnGroup", "ColumnKind", "Dataset", "load"]
