"""Options that do not go with what else was typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reticent.errors import ParameterError


def leave_out(options: Mapping[str, Any], wanted: str) -> None:
    """Refuse the first of these options that was given.

    Raises:
        ParameterError: one of them was; ``wanted`` says where it may be.
    """
    for name, value in options.items():
        if value not in (None, ()):
            raise ParameterError(name, value, f"left out{wanted}", shown=False)
