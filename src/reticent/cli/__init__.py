"""The command line: one file per verb."""

from reticent.cli import risk
from reticent.cli._app import app, main

__all__ = ["app", "main", "risk"]
