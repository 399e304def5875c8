"""Many releases, each by itself: the same numbers as one by one, whoever computes."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import reticent as rt
from reticent.errors import ArtifactError, ParameterError
from reticent.tasks import Local
from tests.certificates.ledgers import poisson
from tests.conftest import as_users_get_it

RELEASES = [rt.DPSGD(noise, 0.01, steps) for noise in (0.8, 2.0) for steps in (1, 100)]


def test_each_row_is_what_assess_says_of_that_release():
    grid = rt.assess_each(RELEASES, ["relaxed"], fpr=(0.001, 0.01), delta=1e-6)
    assert grid.columns()[:5] == ("noise_multiplier", "steps", "attacker", "neighbouring", "claim")
    alone = [row for one in RELEASES for row in rt.assess(one, ["relaxed"], fpr=(0.001, 0.01), delta=1e-6).rows()]
    assert [row[2:5] for row in grid.rows()] == [row[:3] for row in alone]
    assert [row[:2] for row in grid.rows()] == [(one.noise_multiplier, one.steps) for one in RELEASES for _ in range(2)]
    for ours, one in zip(grid.rows(), alone, strict=True):
        assert ours[5:] == pytest.approx(one[3:], rel=1e-12, abs=0)
    assert grid.ways(grid.rows()[1])[4:] == [None, True, True, True, True]


def test_relation_and_method_reach_the_workers():
    how = {"neighbouring": "replace", "method": "clt"}
    grid, alone = rt.assess_each(RELEASES[:1], "membership", **how), rt.assess(RELEASES[0], "membership", **how)
    for ours, one in zip(grid.rows(), alone.rows(), strict=True):
        assert ours[1:4] == one[:3]
        assert ours[4:] == pytest.approx(one[3:], rel=1e-12, abs=0)


def test_two_processes_give_the_numbers_of_one_and_a_folder_keeps_them(tmp_path):
    as_users_get_it(curve=True)  # as other processes have it
    done = []
    here = rt.assess_each(RELEASES[:2], work=tmp_path / "grid")
    there = rt.assess_each(RELEASES[:2], engine=Local(2))
    again = rt.assess_each(RELEASES[:2], work=tmp_path / "grid", progress=done.append)
    for ours, theirs, kept in zip(here.rows(), there.rows(), again.rows(), strict=True):
        assert ours[:5] == theirs[:5] == kept[:5]
        assert theirs[5:] == pytest.approx(ours[5:], rel=1e-12, abs=0)
        assert kept[5:] == ours[5:]  # read, not computed
    assert [progress.done for progress in done] == [2]


def test_all_attackers_of_releases_of_several_kinds_and_infinite_numbers():
    grid = rt.assess_each([rt.Gaussian(2.0), rt.Laplace(1.0), rt.DPSGD(1e-3, 1.0, 1)], "all")
    assert grid.columns()[0] == "release"
    assert {row[0] for row in grid.rows()} == {one.title() for one in map(rt.assess, grid.mechanisms)}
    assert math.isinf(grid.rows()[-1][-1]) or grid.rows()[-1][-1] > 1e5
    assert grid.documents[1].skipped
    assert {note.split(" left out: ")[0] for note in grid.notes()} >= set(grid.documents[1].skipped)


def test_a_ledger_is_not_answered_without_what_it_saw():
    """Its mechanism alone would be answered where ``assess`` refuses, or says who vouches for a condition."""
    for ledger in (poisson(), SimpleNamespace(mechanism=lambda: RELEASES[0])):
        with pytest.raises(ParameterError, match=r"rt\.assess answers a ledger"):
            rt.assess_each([RELEASES[0], ledger])


def test_mistakes_end_in_one_line(tmp_path):
    for wrong in ([], "dpsgd", rt.Gaussian(1.0)):
        with pytest.raises(ParameterError, match="a list of one release or more"):
            rt.assess_each(wrong)
    with pytest.raises(ParameterError, match="did you mean"):
        rt.assess_each(RELEASES, "relaxd")
    with pytest.raises(ParameterError, match=r"rt\.assess_each\(\[a, b\]\) each by itself"):
        rt.assess(RELEASES)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ArtifactError):
        rt.assess_each(RELEASES, work=tmp_path)
    with pytest.raises(ParameterError, match="gradient_change"):
        rt.assess_each(RELEASES, rt.Attribute())
