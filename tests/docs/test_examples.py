"""Documentation runs: Python blocks execute, and commands print what a page shows below them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from reticent.cli import main
from tests.docs.follow import BLOCK, PAGES, ROOT, each_page, follow
from tests.docs.test_howtos import LONG, SHORT

FOLLOWED = [ROOT / "docs" / page for page in SHORT | LONG]
"""Pages that are followed from the first block to the last, by another test."""

pytestmark = pytest.mark.docs


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.filterwarnings("ignore::UserWarning:opacus", "ignore:Full backward hook:UserWarning")
@each_page([page for page in PAGES if page not in FOLLOWED])
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    """Each block runs; a text block after a line that ends with "prints" is what the block before printed."""
    follow(page, tmp_path, languages=("python", "text"))


@each_page(PAGES)
def test_commands_answer(page: Path, capsys, monkeypatch) -> None:
    """Lines ``$ reticent risk|calibrate|compare ...`` in console blocks; training and audits are tested elsewhere.

    What a page shows below such a line is what the command prints; a last line "..." leaves the rest out.
    """
    monkeypatch.setenv("COLUMNS", "100")
    for block in blocks(page, "console"):
        for command in ("\n" + block.replace("\\\n", " ")).split("\n$ ")[1:]:
            line, *shown = command.rstrip().split("\n")
            words = shlex.split(line, comments=True)
            if words[0] == "reticent" and words[1] in {"risk", "calibrate", "compare"}:
                with pytest.raises(SystemExit) as stopped:
                    main(words[1:])
                told = capsys.readouterr()
                assert stopped.value.code == 0, (line, told.err)
                printed = [each.rstrip() for each in told.out.splitlines()]
                many = len(shown) - 1 if shown[-1:] == ["..."] else len(printed) if shown else 0
                assert shown[:many] == printed[:many], f"{page.name} shows other lines than\n{told.out}"
