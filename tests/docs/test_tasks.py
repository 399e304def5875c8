"""The fifteen tasks: each answer is near the README, and each mistake ends as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from reticent.cli import main
from tests.docs.follow import ROOT, links, pages

PAGE = ROOT / "docs/development/fifteen-tasks.md"
TEXT = PAGE.read_text(encoding="utf-8")
TASKS = re.findall(r"^\| (\d+)\. .*\| \[[^\]]+\]\(([^)#]+)\) \|$", TEXT, re.MULTILINE)
MISTAKES = re.findall(r"^\| `(--[^`]+)` \| (.+) \|$", TEXT, re.MULTILINE)
RIGHT = {"--noise-multiplier": "1.1", "--sample-rate": "0.01", "--steps": "10"}
CLICKS = 2

pytestmark = pytest.mark.docs


def near(start: Path, clicks: int) -> set[Path]:
    """What a reader reaches from ``start`` by as many clicks."""
    reached = {start}
    for _ in range(clicks):
        reached |= {target for page in reached for target in links(page) if pages.is_made(target) or target.exists()}
    return reached


def test_the_answers_are_near_the_landing_page() -> None:
    start = ROOT / "README.md"
    assert [int(number) for number, _ in TASKS] == list(range(1, 16))
    answers = {(PAGE.parent / target).resolve() for _, target in TASKS}
    assert not {page.name for page in answers - near(start, CLICKS)}
    assert answers - near(start, 0)


@pytest.mark.parametrize(("mistake", "says"), MISTAKES)
def test_a_mistake_ends_in_one_line_and_exit_code_two(
    mistake: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    option, value = shlex.split(mistake)
    words = [word for pair in ({**RIGHT, option: value}).items() for word in pair]
    with pytest.raises(SystemExit) as ended:
        main(["risk", "dpsgd", *words])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert told.err.strip().startswith("reticent: ")
    assert says in told.err
    assert len(told.err.strip().splitlines()) == 1
