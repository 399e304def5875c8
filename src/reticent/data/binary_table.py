"""Text tables of a label from 1 to K, then zeros and ones: the format of Location-30 and Purchase-100."""

from __future__ import annotations

import numpy as np

from reticent.kernel.errors import DataError


def parse_binary_table(content: bytes, columns: int, classes: int, where: str) -> tuple[np.ndarray, np.ndarray]:
    """(features float32 (records, columns), labels int64 from 0) of ``label,0,1,...`` lines.

    Args:
        content: the file; labels may be in double quotes.
        columns: number of binary columns.
        classes: number of classes K.
        where: names the file in the message of an error.

    Raises:
        DataError: a line has another number of fields, or a field is not what it should be.
    """
    lines = content.replace(b'"', b"").split()
    if not lines:
        raise DataError(f"{where}: no records")
    try:
        table = np.array([np.array(line.split(b",")).astype(np.int16) for line in lines])
        table = table.reshape(len(lines), columns + 1)
    except ValueError:
        raise DataError(f"{where}: lines must hold a label and {columns} zeros or ones") from None
    labels, bits = table[:, 0].astype(np.int64) - 1, table[:, 1:]
    if np.any((labels < 0) | (labels >= classes)):
        raise DataError(f"{where}: labels must lie in 1 to {classes}")
    if np.any((bits != 0) & (bits != 1)):
        raise DataError(f"{where}: features must be 0 or 1")
    return bits.astype(np.float32), labels
