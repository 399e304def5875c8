"""Data sets with checksums and splits: arrays of numpy, no torch.

A file here reads one data set, or a table of the user. Models and training are in ``reticent.training``.
"""

from reticent.data.dataset import ColumnGroup, ColumnKind, Dataset
from reticent.data.registry import NAMES, load

__all__ = ["NAMES", "ColumnGroup", "ColumnKind", "Dataset", "load"]
