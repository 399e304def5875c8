"""Data sets with checksums and splits: arrays of numpy, no torch.

A file here reads one data set, or a table of the user. Models and training are in ``reticent.training``.
"""

from reticent.data.dataset import ColumnGroup as ColumnGroup
from reticent.data.dataset import ColumnKind as ColumnKind
from reticent.data.dataset import Dataset as Dataset
from reticent.data.registry import NAMES as NAMES
from reticent.data.registry import load as load
