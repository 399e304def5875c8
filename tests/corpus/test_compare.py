"""What the corpus calls a difference, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpus.__main__ import named
from tests.corpus.compare import differences, masked
from tests.corpus.project import projected

WIDE = [0.1, 0.2]


def said(before: Any, after: Any) -> list[str]:
    return list(map(str, differences(before, after, "loops/one")))


@pytest.mark.parametrize(
    ("key", "before", "after", "where", "unsafe"),
    [
        ("advantage[]", WIDE, [0.1, 0.198], "upper", True),
        ("advantage[]", WIDE, [0.102, 0.2], "lower", True),
        ("advantage[]", WIDE, [0.1, 0.202], "upper", False),
        ("advantage[]", WIDE, [0.098, 0.2], "lower", False),
        ("mu[]", [1.0, 1.0], [1.0, 1.0 - 5e-9], "upper", True),
        ("mu[]", [1.0, None], [1.0, 7.0], "upper", True),
        ("mu[]", [None, None, 0.3], [None, None, 0.29], "claimed", True),
        ("advantage[]", WIDE, [0.1, 0.2, 0.1], "claimed", True),
        ("bayes_security[]", [0.8, 0.9], [0.8, 0.9, 0.9], "claimed", True),
        ("bayes_security[]", [0.8, 0.9, 0.9], [0.8, 0.9], "claimed", False),
    ],
)
def test_each_end_and_what_is_claimed_is_compared_by_itself(key, before, after, where, unsafe):
    (found,) = [d for d in differences({key: before}, {key: after}) if d.where.endswith(where)]
    assert found.unsafe is unsafe


@pytest.mark.parametrize(
    "days",
    [
        ("of 2026-11-27.", "of 2027-01-03."),
        ("vom 27.11.2026;", "vom 03.01.2027;"),
        ("du 27/11/2026\xa0;", "du 03/01/2027\xa0;"),
        ("on 27 November 2026", "on 3 January 2027"),
    ],
)
def test_the_day_is_no_difference_in_any_language(days):
    assert masked(days[0]) == masked(days[1])


def test_an_end_may_move_by_a_hundredth_of_the_width():
    assert not said({"mu[]": WIDE}, {"mu[]": [0.1009, 0.2]})
    assert not said({"mu[]": [1.0, 1.0]}, {"mu[]": [1.0, 1.0 + 5e-10]})


@pytest.mark.parametrize(
    ("key", "before", "after", "same"),
    [
        ("ppv[]", 0.52774117, 0.52774118, True),
        ("ppv[]", 0.52774117, 0.52774115, False),
        ("ppv[]", 0.527741170012, 0.527741180012, False),
        ("noise_multiplier", 0.52774117, 0.52774118, False),
    ],
)
def test_the_last_of_eight_stated_digits_of_an_end_may_be_its_neighbour(key, before, after, same):
    was, now = ([value, value] if key.endswith("[]") else value for value in (before, after))
    assert (said({key: was}, {key: now}) == []) is same


def test_the_slack_of_a_search_may_move_by_a_hundredth():
    assert not said({"slack": 1e-5}, {"slack": 1.005e-5})
    assert said({"slack": 1e-5}, {"slack": 1.02e-5})


def test_what_is_claimed_is_kept_where_it_is_not_the_safe_end():
    number = {"lower": 0.1, "value": 0.2, "upper": 0.2}
    risk, security = projected({"mu": number, "bayes_security": number}).values()
    assert (risk, security) == ([0.1, 0.2], [0.1, 0.2, 0.2])
    assert projected({"mu": {"lower": None, "value": 0.3, "upper": None}}) == {"mu[]": [None, None, 0.3]}


def test_a_status_that_vouches_for_more_needs_a_proof():
    before, after = ({"clipped": word} for word in ("declared", "checked"))
    assert said(before, after) == ["loops/one/clipped: 'declared' -> 'checked'  UNSAFE WITHOUT A PROOF"]
    assert said(after, before) == ["loops/one/clipped: 'checked' -> 'declared'"]
    assert "UNSAFE" in said({"a/b": "refused"}, {"a/b": "accepted"})[0]


def test_one_fault_or_theorem_less_is_named_alone():
    assert said({"faults": ["a", "b", "c"]}, {"faults": ["a", "c"]}) == ["loops/one/faults: 'b' -> nothing"]


def test_lines_that_changed_places_differ():
    assert said("one\ntwo\nthree", "two\none\nthree") != []
    assert said("one\ntwo", "one\nzwei") == ["loops/one: 'two' -> 'zwei'"]


def test_a_case_that_is_gone_and_one_that_is_new_differ():
    one = {"seconds": 0.0, "answer": 1}
    found = named({"surface": {"help; risk": one}}, {"surface": {"help; risk": None, "help; risks": one}})
    assert [str(d) for d in found] == [
        "surface/help; risk: 'a case' -> nothing",
        "surface/help; risks: nothing -> 'a new case'",
    ]


def test_a_long_text_is_shown_from_where_it_differs():
    (found,) = said("word " * 99 + "old", "word " * 99 + "new")
    assert found.endswith("word old' -> ... word word word word word word word word word word word word new'")


def test_one_attacker_less_moves_no_other():
    rows = [{"adversary": name, "neighbouring": "replace", "claim": "bound"} for name in ("a", "b")]
    (found,) = said(rows, rows[1:])
    assert found.startswith("loops/one/a, replace: {")
    assert found.endswith("-> nothing")
