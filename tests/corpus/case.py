"""One case of the corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A name that is one of its kind in the section, and what answers, as JSON that is projected."""

    name: str
    answer: Callable[[], Any]
