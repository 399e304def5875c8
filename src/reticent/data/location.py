"""Location-30: which of 446 places a person visited; 30 clusters of people."""

from __future__ import annotations

import gzip
import zlib

from reticent.data.binary_table import parse_binary_table
from reticent.data.dataset import Dataset, binary_group
from reticent.data.files import data_root, read_checked
from reticent.kernel.errors import DataError

SHA256 = "233b6bfa0f717d45f83854a70f8d201a3201efef08c20d702e888938702d0267"
COLUMNS = 446


def load_location30() -> Dataset:
    """Location-30: 5,010 people, 446 binary features, 30 classes; 80% training by seed 0.

    Raises:
        DataError: ``RETICENT_DATA`` is unset, or the file is missing or corrupt.
    """
    content = read_checked(data_root() / "location30" / "bangkok.gz", SHA256)
    try:
        text = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError("location30/bangkok.gz: not a gzip file") from None
    features, labels = parse_binary_table(text, COLUMNS, classes=30, where="location30/bangkok.gz")
    return Dataset.pooled(
        0.8,
        name="location-30",
        source="Location-30 (privacytrustlab, from Foursquare check-ins in Bangkok; research use)",
        features=features,
        labels=labels,
        classes=30,
        groups=tuple(binary_group(f"place-{i}", i) for i in range(COLUMNS)),
    )
