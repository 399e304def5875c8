"""The command line: one file per verb, read when the verb is called.

A file here reads what was typed and prints what ``reticent.verbs`` and the rooms below answer. It derives nothing.
"""

from reticent.cli._app import app as app
from reticent.cli._app import main as main
