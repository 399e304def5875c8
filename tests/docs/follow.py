"""Do literally what a page says: save its files, run its Python, run its commands, compare what it prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest

from reticent.cli import main

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import generate_reference  # noqa: E402
import pages  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts and not pages.is_made(page)]
"""Every page that is kept in the repository."""
MADE = [ROOT / "docs" / name for name in pages.PAGES if name not in generate_reference.PAGES]
"""Every page that is made in full before Sphinx reads it; the others Sphinx fills."""

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAVE = re.compile(r"Save this as `([^`]+)`")
EXIT = re.compile(r"# exit code (\d)")
PRINTS = re.compile(r"\bprints\b[^\n]*\s*\Z")
PROGRAMS = {"reticent": [sys.executable, "-m", "reticent"], "python": [sys.executable]}
"""As they are called; ``reticent`` answers in this process, unless it goes on behind others. Programs share no seed."""


def each_page(some: Iterable[Path]) -> pytest.MarkDecorator:
    """A test of each of them, with its place for a name."""
    return pytest.mark.parametrize("page", some, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def text_of(page: Path) -> str:
    """The text of a page, kept or made; what an earlier build left in the folder is not read."""
    for name, text in pages.PAGES.items():
        if page == ROOT / "docs" / name:
            return text()
    return page.read_text(encoding="utf-8")


def links(page: Path) -> Iterator[Path]:
    """The pages to which a page leads."""
    for target in re.findall(r"\]\(([^)\s#:]+\.md)[^)]*\)", text_of(page)):
        yield (page.parent / target).resolve()


def follow(
    page: Path,
    folder: Path,
    programs: Mapping[str, list[str]] = PROGRAMS,
    limit: float = 280.0,
    end: str | None = None,
    languages: Container[str] = ("python", "sh", "text"),
) -> list[str]:
    """Follow ``page`` in ``folder``; what each command and each Python block printed, in order.

    A block after "Save this as `name`" is a file. ``python`` blocks run in one name space. Each line of a ``sh`` block
    is a command that must end with exit code 0, or with the one after "# exit code"; with "&" at its end it runs until
    the page is done. A ``text`` block after a sentence with "prints" is what the block before must have printed. What
    comes from the heading ``end`` on is left out, and what is of no such language and no file.
    """
    told: list[str] = []
    names: dict[str, object] = {"__name__": "__main__"}
    with chdir(folder), ExitStack() as running:
        for before, language, body in steps(page):
            if end and end in before:
                break
            saved = SAVE.findall(before)
            if saved:
                (folder / saved[-1]).write_text(body, encoding="utf-8")
            elif language not in languages:
                continue
            elif language == "python":
                with redirect_stdout(StringIO()) as out:
                    exec(compile(body, str(page), "exec", dont_inherit=True), names)  # noqa: S102 (our own page)
                told.append(out.getvalue())
            elif language == "sh":
                told += [run(line, folder, programs, running, limit) for line in body.replace("\\\n", " ").splitlines()]
            elif language == "text" and PRINTS.search(before):
                printed = [line.rstrip() for line in told[-1].splitlines()]
                assert body.rstrip().splitlines() == printed, f"{page.name} shows\n{body}\nand it prints\n{told[-1]}"
    return told


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """(text since the last block, language, body) of every fenced block."""
    text, end = page.read_text(encoding="utf-8"), 0
    for match in BLOCK.finditer(text):
        yield text[end : match.start()], *match.groups()
        end = match.end()


def run(line: str, folder: Path, programs: Mapping[str, list[str]], running: ExitStack, limit: float) -> str:
    """What the command in ``line`` printed."""
    expected = int(found[1]) if (found := EXIT.search(line)) else 0
    name, *words = shlex.split(line, comments=True)
    behind = words[-1:] == ["&"]
    command = [*programs.get(name, [name]), *(words[:-1] if behind else words)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "100"}
    if programs is not PROGRAMS:
        environment.pop("PYTHONPATH", None)  # another environment must find its own package
    elif name == "reticent" and not behind:
        code, out, err = answered(words)
        assert code == expected, f"{line}: exit code {code}\n{out}\n{err}"
        return out
    if behind:
        process = running.enter_context(
            subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        running.callback(process.terminate)
        return ""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    assert done.returncode == expected, f"{line}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def answered(words: list[str]) -> tuple[object, str, str]:
    """Exit code and both outputs of the command line, as a person with a terminal of 100 columns has it."""
    code: object = 0
    with pytest.MonkeyPatch.context() as patch, catch_warnings(), redirect_stdout(StringIO()) as out:
        patch.setenv("COLUMNS", "100")
        simplefilter("ignore")
        with redirect_stderr(StringIO()) as err:
            try:
                main(words)
            except SystemExit as ended:
                code = ended.code or 0
    return code, out.getvalue(), err.getvalue()
