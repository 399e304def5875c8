"""The command line: one file per verb, read when the verb is called."""

from reticent.cli._app import app, main

__all__ = ["app", "main"]
