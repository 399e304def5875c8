"""Whom a run protects: one record, or one client with everything that it holds."""

from __future__ import annotations

from enum import StrEnum


class Unit(StrEnum):
    """What is drawn into a batch, clipped as one, and protected."""

    RECORD = "record"
    """One row of the data."""
    CLIENT = "client"
    """One client of federated learning, with all its records and whatever it computes from them in a round."""
