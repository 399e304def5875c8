"""The command line: one file per verb, read when the verb is called."""

from reticent.cli._app import main
from reticent.cli._app import whole as app

__all__ = ["app", "main"]
