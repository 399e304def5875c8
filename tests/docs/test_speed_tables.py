"""The tables of docs/evidence/performance.md are the rows that are kept."""

from __future__ import annotations

from benchmarks import page
from benchmarks._rows import forget, row_as_text
from reticent.accountants import compose, worst_case
from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.mechanisms import DPSGD, Neighbouring


def row(median: float, *, met: bool | None) -> dict[str, object]:
    ratio = {"min": median / 2.0, "median": median, "max": 2.0 * median}
    return {"work": "a map", "peer": "theirs", "ratio": ratio, "error": None, "goal": "10 times", "met": met}


def test_the_page_shows_what_is_kept() -> None:
    assert page.PAGE.read_text() == page.filled(page.PAGE.read_text(), page.stored_rows)


def test_every_benchmark_has_a_place_on_the_page() -> None:
    assert all(f"<!-- rows of {name} -->" in page.PAGE.read_text() for name in page.NAMES)


def test_a_table_is_replaced_and_others_stay() -> None:
    other = "<!-- rows of watch -->\nkept\n<!-- end of rows -->\n"
    before = "a\n<!-- rows of glir -->\nold\n<!-- end of rows -->\nb\n" + other
    kept = {"glir": {"measured": "2026-01-01", "load": [0.1, 1.0], "rows": [row(1234.5, met=False)]}}
    after = page.filled(before, kept.get)
    assert "| a map | theirs | 617 | 1,234 | 2,469 | 10 times | **no** |" in after
    assert "old" not in after
    assert after.endswith("b\n" + other)


def test_a_row_without_a_goal_is_neither_met_nor_missed() -> None:
    text = page.table({"measured": "2026-01-01", "load": [0.1, 1.0], "rows": [row(8.0, met=None)]})
    assert "| 10 times | no goal |" in text
    assert "no goal" in row_as_text(row(8.0, met=None))


def test_limit_and_moonshot_stand_beside_what_was_reached() -> None:
    reached = row(8.0, met=True) | {"limit": {"what": "one product", "ratio": 12.5}, "moonshot": 25.0}
    text = page.table({"measured": "2026-01-01", "load": [0.1, 1.0], "rows": [reached, row(8.0, met=True)]})
    assert "| 10 times | yes | 12.5 | **25** |" in text
    assert text.count("one product") == 1


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
