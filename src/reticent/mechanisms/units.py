"""Whom a run protects: one record, or one client with everything that it holds."""

from __future__ import annotations

from enum import StrEnum

CLIENT_NOTE = (
    "Whole clients are protected: what a round adds up are updates of clients, each clipped as one, and sample_rate is "
    "that of a client. A person with several clients is not covered."
)


class Unit(StrEnum):
    """What is drawn into a batch, clipped as one, and protected."""

    RECORD = "record"
    """One row of the data."""
    CLIENT = "client"
    """One client of federated learning, with all its records and whatever it computes from them in a round."""
