"""A table of one's own, from what its file holds."""

from __future__ import annotations

import pytest

from reticent.data.own import load_table
from reticent.kernel.errors import DataError, ParameterError


@pytest.fixture
def read(tmp_path):
    def loaded(content: str | bytes, declared=None, label="income", name="people.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_table(tmp_path / name, label, declared)

    return loaded


@pytest.fixture
def refused(read):
    """Sees that a table is refused in one line, which holds each of ``wanted`` in this order."""

    def sees(wanted: str, *given, **more) -> None:
        with pytest.raises((DataError, ParameterError)) as caught:
            read(*given, **more)
        told = str(caught.value)
        assert "\n" not in told
        at = 0
        for part in wanted.split(" ... "):
            assert part in told[at:], told
            at = told.index(part, at) + len(part)

    return sees
