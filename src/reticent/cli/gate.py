"""``reticent gate``: stop a release whose certificate breaches a policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.certificates.gate_report import JUNIT_MARK, MARKDOWN_MARK
from reticent.cli._app import option
from reticent.cli._asking import asking, in_lines, told
from reticent.cli._limits import limited
from reticent.cli._options import TIMEOUT
from reticent.cli.progress import waiting
from reticent.io.outputs import refuse_foreign, write_output
from reticent.kernel.errors import ParameterError
from reticent.verbs.gating import Gate, Gated


def _do(request: Gate, given: Mapping[str, Any], json: bool) -> None:
    """Judge, and write the reports; of several certificates, the worst exit code counts."""
    markdown = given["markdown"]
    printed = str(markdown) == "-"
    if printed and json:
        raise ParameterError("markdown", "-", "a file, or left out: --json prints nothing else")
    outputs = [(None if printed else markdown, MARKDOWN_MARK), (given["junit"], JUNIT_MARK)]
    for path, mark in outputs:
        if path is not None:
            refuse_foreign(path, mark)
    with waiting("deriving") as progress:
        found = request.answer(progress, lambda path: limited(path, given["timeout"]))
    for (path, mark), text in zip(outputs, (found.reports.markdown, found.reports.junit), strict=True):
        if path is not None:
            write_output(path, text.encode(), mark)
    told(found, given, json, _as_markdown if printed else in_lines)


def _as_markdown(found: Gated, given: Mapping[str, Any]) -> None:
    click.echo(found.reports.markdown, nl=False)


ASKED = {Gate: _do}
SHOWN_BY = (
    option("markdown", Path, "Write the outcome as Markdown; - prints it."),
    option("junit", Path, "Write the outcome as JUnit XML."),
    TIMEOUT,
)
gate = asking(
    "gate",
    Gate,
    _do,
    after=SHOWN_BY,
    help="""Verify a certificate and check it against a policy; exit code 1 on a breach, 2 when nothing can be checked.

    Of several, the worst exit code counts.
    """,
)
