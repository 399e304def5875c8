"""Two runs or certificates side by side: who learns more from which, and everything that they do not say alike."""

from __future__ import annotations

import json
import math

import pytest

import reticent as rt
from reticent.certificates.build import public
from tests.certificates.ledgers import poisson, shuffled

MANY, FEW = rt.DPSGD(10.0, 1.0, 100), rt.DPSGD(10.0, 1.0, 10)  # no composition


def test_the_summary_says_who_learns_more_and_by_how_much():
    found = rt.differences(FEW, MANY, ["relaxed"], delta=(1e-5, 1e-6))
    alone = [rt.assess(one, ["relaxed"], delta=(1e-5, 1e-6), method="exact") for one in (FEW, MANY)]
    numbers = [[(row[0], row[1], *row[3:4], *row[5:]) for row in one.rows()] for one in alone]
    expected = []
    for a, b in zip(*numbers, strict=True):
        for name, x, y in zip(("advantage", "epsilon@1e-05", "epsilon@1e-06"), a[2:], b[2:], strict=True):
            expected.append((a[0], a[1], name, x, y, y - x))
    rows = found.summary.rows()
    assert [row[:6] for row in rows] == expected
    assert {row[6] for row in rows} == {"B"}
    assert {row[6] for row in rt.differences(MANY, FEW).summary.rows()} == {"A"}
    assert [*rt.differences(FEW, FEW).document.differences] == []
    assert {one.more for one in rt.differences(FEW, FEW).summary.learnt} == {"same"}


def test_enclosures_that_meet_do_not_tell_and_infinity_is_no_number_to_subtract():
    found = rt.differences(shuffled(), shuffled(segments=[{"noise_multiplier": 1.2, "steps": 18, "passes": 3}]))
    assert {row[6] for row in found.summary.rows()} == {"A by its bound"}
    lost = rt.differences(rt.Gaussian(0.0), rt.Gaussian(0.0), "worst-case").summary.rows()[1]
    assert lost[3:7] == (math.inf, math.inf, None, "same")
    assert rt.differences(rt.Gaussian(1.0), rt.Gaussian(0.0), "worst-case").summary.rows()[1][3:] == (
        *(pytest.approx(4.377, rel=1e-3, abs=0), math.inf, math.inf, "B by its bound", "bound"),
    )


def test_bounds_are_rounded_up_and_a_difference_of_bounds_is_not():
    summary = rt.differences(FEW, MANY, "worst-case").summary
    assert summary.ways(summary.rows()[0])[3:] == [True, True, None, None, None]


def test_only_what_differs_is_a_row_and_secrets_are_none(tmp_path):
    (tmp_path / "ledger.json").write_text(poisson(divisor=12.0, records_per_user=1).to_json())
    found = rt.differences(poisson(), tmp_path, "worst-case")
    assert found.rows()[:2] == [("records_per_user", "not stated", "1"), ("ledger.divisor", "10.0", "12.0")]
    named = [row[0] for row in found.rows()]
    assert "worst-case, add-remove: public-divisor" not in named
    assert not [name for name in named if "digest" in name or "batch_sizes" in name or "seeds" in name]
    assert ("worst-case, add-remove: records-per-person", "not there", "declared") in found.rows()
    assert not [name for name in named if "advantage" in name], "its number is the same"


def test_two_certificates_are_compared_as_they_are_stated_and_one_is_computed(tmp_path):
    one, other = (rt.certify(run, subject=name) for run, name in ((poisson(), "a"), (poisson(divisor=12.0), "b")))
    (tmp_path / "a.json").write_text(one.to_json())
    (tmp_path / "b.json").write_text(public(other.certificate).to_json())
    stated = rt.differences(tmp_path / "a.json", tmp_path / "b.json")
    assert stated.summary.names == ("a.json", "b.json")
    assert stated.rows()[:2] == [("Subject", "a", "b"), ("divisor of the noisy sum", "10", "12")]
    assert rt.differences(one, other).rows() == stated.rows()
    forged = json.loads(one.to_json())
    forged["assessments"][0]["advantage"]["value"] = 0.125
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    told = rt.differences(tmp_path / "a.json", tmp_path / "forged.json").rows()
    assert [row[0] for row in told] == ["worst-case, add-remove: advantage"]
    assert not rt.differences(tmp_path / "a.json", tmp_path / "forged.json", "worst-case").rows(), "computed"
    assert [row[0] for row in rt.differences(poisson(), tmp_path / "b.json", "worst-case").rows()] == ["ledger.divisor"]


def test_it_prints_and_exports():
    found = rt.differences(FEW, MANY, "worst-case")
    text = repr(found).splitlines()
    assert max(map(len, text)) <= 80
    assert text[0] == "A is release 1, B is release 2"
    assert "steps: 10 | 100" in text
    assert "<td>100</td>" in found._repr_html_()
    document = json.loads(found.to_json())
    assert (document["schema"], document["a"], document["b"]) == ("reticent.differences/1", "release 1", "release 2")
    assert document["summary"][0]["a"] == json.loads(rt.assess(FEW).to_json())["assessments"][0]["advantage"]
    assert document["summary"][0] | {"apart": True, "more": "b"} == document["summary"][0]
    assert document["differences"][0] == {"what": "steps", "a": "10", "b": "100"}
