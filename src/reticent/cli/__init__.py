"""The command line: one file per verb."""

from reticent.cli import audit, certify, dashboard, risk, train
from reticent.cli._app import app, main

__all__ = ["app", "audit", "certify", "dashboard", "main", "risk", "train"]
