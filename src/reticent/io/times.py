"""Dates and times as documents state them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:\d{2}))?", re.ASCII)


def moment(text: str) -> datetime:
    """The moment that an ISO 8601 date, or time with offset, names; a date is its first moment in UTC.

    Raises:
        ValueError: it is neither.
    """
    if not _TIME.fullmatch(text):
        raise ValueError("must be a date (2026-11-22) or a time with offset (2026-11-22T10:00:00Z)")
    known = datetime.fromisoformat(text)
    return known if known.tzinfo else known.replace(tzinfo=UTC)


def _date(text: str) -> str:
    moment(text)
    return text


Date = Annotated[str, AfterValidator(_date)]
"""Text that ``moment`` understands."""
