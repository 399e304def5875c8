"""One field of a person, as columns of the features, with the values to compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.data import ColumnGroup
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """One field of a person, or several jointly, as columns of the features, with the values to compare.

    Attributes:
        columns: indices into one record's flattened features.
        values: candidate values in the scale that the model sees, (candidates, columns); at least two.

    Raises:
        ParameterError: columns that are no distinct positions, or values that do not fit them or do not differ.
    """

    columns: tuple[int, ...]
    values: np.ndarray

    def __post_init__(self) -> None:
        columns, values = self.columns, self.values
        if not isinstance(columns, tuple) or not all(type(c) is int or isinstance(c, np.integer) for c in columns):
            raise ParameterError("columns", columns, "a tuple of whole numbers")
        if not columns or min(columns) < 0 or len(set(columns)) != len(columns):
            raise ParameterError("columns", columns, "one or more distinct positions >= 0")
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
            raise ParameterError("values", type(values).__name__, "an array of numbers, (candidates, columns)")
        if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] != len(columns):
            raise ParameterError("values", values.shape, f"two or more rows of {len(columns)} columns")
        if not np.all(np.isfinite(values)):
            raise ParameterError("values", "NaN or infinity", "finite")
        if bool(np.all(values == values[:1])):
            raise ParameterError("values", "the same in every row", "at least two different rows")

    @classmethod
    def from_group(cls, group: ColumnGroup) -> SensitiveAttribute:
        """All values of an attribute of a data set."""
        return cls(group.columns, np.asarray(group.encoded, dtype=float))

    @classmethod
    def number(cls, column: int, low: float, high: float, count: int) -> SensitiveAttribute:
        """``count`` >= 2 equally spaced values from ``low`` to ``high``, both included.

        Raises:
            ParameterError: ``count`` is below 2.
        """
        if checks.count(count=count) < 2:
            raise ParameterError("count", count, "at least 2")
        return cls((column,), np.linspace(checks.finite(low=low), checks.finite(high=high), count)[:, None])
