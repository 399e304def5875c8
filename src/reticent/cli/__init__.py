"""The command line: one file per verb."""

from reticent.cli import certify, dashboard, risk
from reticent.cli._app import app, main

__all__ = ["app", "certify", "dashboard", "main", "risk"]
