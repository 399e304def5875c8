"""Audit statistics: arrays in, results out."""

from reticent.audit.scores import Design, Scores

__all__ = ["Design", "Scores"]
