"""The table of the page of measured times has the rows that are kept."""

from __future__ import annotations

import pytest

from benchmarks import page
from benchmarks._rows import forget, row_as_text
from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.kernel.accountants import compose, worst_case
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring


def row(median: float, *, met: bool | None) -> dict[str, object]:
    ratio = {"min": median / 2.0, "median": median, "max": 2.0 * median}
    return {"work": "a map", "peer": "theirs", "ratio": ratio, "error": None, "goal": "10 times", "met": met}


def test_the_page_shows_every_benchmark_that_is_kept() -> None:
    kept = {path.stem for path in page.RESULTS.glob("*.json")}
    assert kept <= set(page.NAMES)
    told = page.text()
    for name in kept:
        assert told.count(f"\n| {name} |") == 1 + len(page.stored_rows(name)["rows"])


REACHED = row(8.0, met=True) | {"limit": {"what": "one product", "ratio": 12.5}, "moonshot": 25.0}


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([row(1234.5, met=False)], ["| glir | a map | theirs | 617 | 1,234 | 2,469 | 10 times | **no** |"]),
        ([row(8.0, met=None)], ["| 10 times | no goal |", "| glir | 2026-01-01 | 0.1, 1.0 |"]),
        ([REACHED, row(8.0, met=True)], ["| 10 times | yes | 12.5 | **25** |", "one product"]),
    ],
    ids=["missed", "without a goal", "limit and moonshot"],
)
def test_a_row_shows_its_numbers_and_how_they_stand(monkeypatch, rows, lines) -> None:
    kept = {"glir": {"measured": "2026-01-01", "load": [0.1, 1.0], "rows": rows}}
    monkeypatch.setattr(page, "stored_rows", kept.get)
    assert [page.text().count(line) for line in lines] == [1] * len(lines)
    assert ("no goal" in row_as_text(rows[0])) == (rows[0]["met"] is None)


def test_what_is_timed_again_is_computed_again() -> None:
    run = DPSGD(4.0, 0.5, 1)
    asked = (
        lambda: compose(run, Neighbouring.ADD_REMOVE),
        lambda: worst_case(run, Neighbouring.ADD_REMOVE),
        lambda: unknown_sign(run, part=Part.ADDITION),
        lambda: relaxed_in(run, 3),
    )
    before = [ask() for ask in asked]
    assert all(ask() is answer for ask, answer in zip(asked, before, strict=True))
    forget()
    assert all(ask() is not answer for ask, answer in zip(asked, before, strict=True))
