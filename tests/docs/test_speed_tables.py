"""The table of the page of measured times has the rows that are kept."""

from __future__ import annotations

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


def shown(monkeypatch, *rows: dict[str, object]) -> str:
    kept = {"glir": {"measured": "2026-01-01", "load": [0.1, 1.0], "rows": list(rows)}}
    monkeypatch.setattr(page, "stored_rows", kept.get)
    return page.text()


def test_the_page_shows_every_benchmark_that_is_kept() -> None:
    kept = {path.stem for path in page.RESULTS.glob("*.json")}
    assert kept <= set(page.NAMES)
    told = page.text()
    for name in kept:
        assert told.count(f"\n| {name} |") == 1 + len(page.stored_rows(name)["rows"])


def test_a_row_shows_its_numbers_and_whether_the_goal_is_met(monkeypatch) -> None:
    told = shown(monkeypatch, row(1234.5, met=False))
    assert "| glir | a map | theirs | 617 | 1,234 | 2,469 | 10 times | **no** |" in told
    assert "| glir | 2026-01-01 | 0.1, 1.0 |" in told


def test_a_row_without_a_goal_is_neither_met_nor_missed(monkeypatch) -> None:
    assert "| 10 times | no goal |" in shown(monkeypatch, row(8.0, met=None))
    assert "no goal" in row_as_text(row(8.0, met=None))


def test_limit_and_moonshot_stand_beside_what_was_reached(monkeypatch) -> None:
    reached = row(8.0, met=True) | {"limit": {"what": "one product", "ratio": 12.5}, "moonshot": 25.0}
    told = shown(monkeypatch, reached, row(8.0, met=True))
    assert "| 10 times | yes | 12.5 | **25** |" in told
    assert told.count("one product") == 1


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
