"""A verdict follows from the numbers; drift is told; results survive their file."""

from __future__ import annotations

import json

import pytest

from experiments.gallery import Entry, Measured, Published, Relation, Result, Verdict, document
from experiments.gallery.entry import result_of
from experiments.gallery.store import _from_json
from reticent.kernel.errors import ParameterError


def result(value: float, published: Published, needs: str = "") -> Result:
    entry = Entry("glrt/figure-1", "t", lambda figure: {}, (published,), "because", needs=needs)
    return result_of(entry, {published.name: value})


@pytest.mark.parametrize(
    ("relation", "value", "agrees"),
    [
        (Relation.IS, 1.004, True),
        (Relation.IS, 1.006, False),
        (Relation.IS, 0.994, False),
        (Relation.AT_MOST, 1.004, True),
        (Relation.AT_MOST, 1.006, False),
        (Relation.AT_MOST, -5.0, True),
        (Relation.AT_LEAST, 0.996, True),
        (Relation.AT_LEAST, 0.994, False),
        (Relation.AT_LEAST, 9.0, True),
    ],
)
def test_verdict_follows_from_the_tolerance(relation: Relation, value: float, agrees: bool) -> None:
    found = result(value, Published("n", 1.0, "caption", 0.005, relation))
    assert found.verdict is (Verdict.AGREES if agrees else Verdict.DIFFERS)


def test_not_a_number_agrees_with_nothing() -> None:
    with pytest.raises(ParameterError):
        Measured(float("nan"))
    with pytest.raises(ParameterError):
        Measured(1.0, 2.0, 3.0, "seeds")


def test_an_interval_agrees_if_it_holds_the_printed_value() -> None:
    printed = Published("n", 1.0, "caption", 0.01)
    assert printed.holds(Measured(1.2, 1.005, 1.4, "seeds"))
    assert not printed.holds(Measured(1.2, 1.02, 1.4, "seeds"))


def test_one_sided_statements_look_at_the_value_not_at_the_kinder_end() -> None:
    assert not Published("n", 1.0, "text", 0.0, Relation.AT_MOST).holds(Measured(1.2, 0.5, 1.4, "seeds"))


def test_what_was_measured_has_a_verdict_though_something_is_missing() -> None:
    """An entry of which no published number was measured cannot be run here."""
    assert result(1.0, Published("n", 1.0, "caption"), needs="a GPU").verdict is Verdict.AGREES
    assert result(2.0, Published("n", 1.0, "caption"), needs="a GPU").verdict is Verdict.DIFFERS
    entry = Entry("glrt/figure-1", "t", lambda figure: {}, (Published("n", 1.0, "c"),), "because", needs="a GPU")
    assert result_of(entry, {"other": 1.0}).verdict is Verdict.CANNOT_RUN


def test_a_published_number_must_be_measured_or_named_as_missing() -> None:
    printed = (Published("n", 1.0, "caption"),)
    with pytest.raises(ParameterError, match="'n'"):
        result_of(Entry("glrt/figure-1", "t", lambda figure: {}, printed, "because"), {})
    assert result_of(Entry("glrt/figure-1", "t", lambda figure: {}, printed, "because", needs="x"), {}).ours == {}


def test_entries_need_a_known_paper_and_something_to_compare() -> None:
    printed = (Published("n", 1.0, "caption"),)
    for bad in (
        ("other/figure-1", printed, "because"),
        ("glrt/figure-1", (), "because"),
        ("glrt/figure-1", printed, ""),
    ):
        with pytest.raises(ParameterError):
            Entry(bad[0], "t", lambda figure: {}, bad[1], bad[2])


def test_drift_names_what_moved() -> None:
    printed = Published("n", 1.0, "caption", 0.005)
    old = result(1.0, printed)
    assert result(1.0 + 5e-7, printed).drift(old) == ()
    assert result(1.001, printed).drift(old) == ("n: 1 is now 1.001",)
    assert result(1.1, printed).drift(old)[0] == "verdict: agrees is now differs"


@pytest.mark.parametrize("drift", [None, 0.25, float("inf")])
def test_results_survive_their_file(drift: float | None) -> None:
    entry = Entry("glrt/figure-1", "t", lambda figure: {}, (Published("n", 1.0, "caption", 0.1),), "because")
    found = result_of(entry, {"n": Measured(1.0, 0.9, 1.1, "five seeds", drift), "m": 2.0})
    assert _from_json(json.loads(json.dumps(document(found), allow_nan=False))) == found
