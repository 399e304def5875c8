"""Documentation runs: Python blocks execute, commands answer, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from reticent.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.docs


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec", dont_inherit=True), names)  # noqa: S102 (our own documentation)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_answer(page: Path, capsys) -> None:
    """Lines ``$ reticent risk|calibrate|compare ...`` in console blocks; training and audits are tested elsewhere."""
    for block in blocks(page, "console"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True) if line.startswith("$ reticent ") else []
            if words[1:2] and words[1] in {"risk", "calibrate", "compare"}:
                with pytest.raises(SystemExit) as stopped:
                    main(words[1:])
                assert stopped.value.code == 0, (line, capsys.readouterr().err)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
