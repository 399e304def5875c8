"""Many releases, each by itself: the same numbers as one by one, whoever computes."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import pytest

import reticent as rt
from reticent.certificates.build import public
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.tasks import Local
from reticent.training import train
from reticent.training.config import parse_config
from reticent.verbs.grids import names_of
from reticent.verbs.releases import Release
from tests.certificates.ledgers import chain, poisson, shuffled
from tests.conftest import as_users_get_it

pytestmark = pytest.mark.usefixtures("quick_documents")

RELEASES = [rt.DPSGD(noise, 1.0, steps) for noise in (8.0, 20.0) for steps in (1, 100)]  # no composition


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


def test_all_attackers_of_releases_of_several_kinds_and_infinite_numbers():
    grid = rt.assess_each([rt.Gaussian(2.0), rt.Laplace(1.0), rt.DPSGD(1e-3, 1.0, 1)], "all")
    assert grid.columns()[0] == "release"
    assert {row[0] for row in grid.rows()} == {one.title() for one in map(rt.assess, grid.mechanisms)}
    assert math.isinf(grid.rows()[-1][-1]) or grid.rows()[-1][-1] > 1e5
    assert grid.documents[1].skipped
    assert {note.split(" left out: ")[0] for note in grid.notes()} >= set(grid.documents[1].skipped)


def saved(folder, name, thing):
    """A ledger or a certificate in a file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(thing.to_json())
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Whatever ``assess`` takes: mechanisms, ledgers, runs and certificates, as objects and as files."""
    folder = tmp_path_factory.mktemp("runs")
    config = {"data": {"name": "digits", "train_size": 200}, "model": {"kind": "logistic"}, "noise_multiplier": 2.0}
    config |= {"batch_size": 20, "steps": 4, "learning_rate": 0.1}
    trained = train(parse_config(config), folder / "trained")
    watched = shuffled(records_per_user=1, facts={"noise-not-added": "found"})
    certified = rt.certify(poisson(), subject="a loop")
    return [
        RELEASES[1],
        poisson(),
        chain(),
        saved(folder, "shuffled.json", shuffled()),
        saved(folder, "voided.json", watched),
        trained,
        folder / "trained",
        str(saved(folder, "mine/certificate.json", certified)),
        saved(folder, "mine/certificate.public.json", public(certified.certificate)),
        saved(folder, "plan/certificate.json", rt.certify(RELEASES[0], adversary="worst-case")),
    ]


def test_each_run_is_answered_as_assess_answers_it_with_all_that_was_seen(runs):
    who = ["membership", rt.Mixed(relaxed_probability=0.3)]
    grid = rt.assess_each(runs, who)
    assert grid.left_out == {}
    assert [run.name for run in grid.runs] == [
        *("release 1", "release 2", "release 3", "shuffled.json", "voided.json", "trained", "trained"),
        *("mine/certificate.json", "mine/certificate.public.json", "plan/certificate.json"),
    ]
    for one, run, document in zip(runs, grid.runs, grid.documents, strict=True):
        assert document == rt.assess(one, who).document
        ledger = Release.of(one).ledger
        assert list(run.release.warnings) == [fact.key for fact in (ledger.faults if ledger else ())]
    assert rt.assess_each(runs[1:2], "all").documents[0] == rt.assess(runs[1], "all").document
    statuses = {(kept.key, kept.status) for one in grid.documents[1].assessments for kept in one.conditions}
    assert ("poisson-draws", "checked") in statuses, "what the ledger saw"
    assert grid.documents[3].assessments[0].conditions != rt.assess(grid.mechanisms[3])[0].conditions
    assert "noise-not-added" in grid.runs[4].release.warnings
    assert {row[0] for row in grid.rows()} == {run.name for run in grid.runs}
    assert any(note.startswith("! ") and "voided.json" in note for note in grid.notes())
    document = json.loads(grid.to_json())
    assert document["schema"] == "reticent.risks/1"
    assert [(one["name"], one["schema"]) for one in document["runs"]] == [
        (run.name, "reticent.risk/2") for run in grid.runs
    ]


def test_what_was_seen_reaches_other_processes_a_folder_keeps_numbers_and_secrets_stay(runs, tmp_path):
    as_users_get_it(curve=True)  # as other processes have it
    few, done = [RELEASES[0], runs[1], runs[3], runs[6]], []
    here = rt.assess_each(few, work=tmp_path / "grid")
    there = rt.assess_each(few, engine=Local(2))
    again = rt.assess_each(few, work=tmp_path / "grid", progress=done.append)
    for ours, theirs, kept in zip(here.documents, there.documents, again.documents, strict=True):
        assert [one.conditions for one in ours.assessments] == [one.conditions for one in theirs.assessments]
        assert kept == ours  # read, not computed
    for ours, theirs in zip(here.rows(), there.rows(), strict=True):
        assert ours[:4] == theirs[:4]
        assert theirs[4:7] == pytest.approx(ours[4:7], rel=1e-12, abs=0)
    assert [progress.done for progress in done] == [4]
    for task in (tmp_path / "grid").rglob("task.json"):
        assert not re.search(r'batch_sizes|"noise": *[0-9]', task.read_text())


def test_a_file_that_cannot_be_read_loses_no_other(runs, tmp_path):
    (tmp_path / "torn.json").write_text('{"schema": "reticent.led')
    several = rt.certify([poisson(), shuffled(records_per_user=None), rt.Gaussian(2.0)])
    joint = saved(tmp_path, "joint.json", several)
    grid = rt.assess_each([runs[3], tmp_path / "torn.json", tmp_path / "missing", joint, runs[1]])
    assert [name.rpartition("/")[2] for name in grid.left_out] == ["torn.json", "missing", "joint.json"]
    assert len(grid.documents) == 2
    assert sum("left out: " in note for note in grid.notes()) == 3
    assert "holds none of their ledgers" in next(reversed(grid.left_out.values()))
    for path in (tmp_path / "torn.json", tmp_path / "missing"):
        with pytest.raises(ArtifactError, match=path.name):
            rt.assess_each([path])
    with pytest.raises(ArtifactError, match=r"none of 2 releases can be answered; the first: .*torn\.json"):
        rt.assess_each([tmp_path / "torn.json", tmp_path / "missing"])


def test_a_file_that_cannot_be_answered_loses_no_other(runs, tmp_path):
    """Of mechanisms that somebody gave it is an error, as before."""
    laplace = saved(tmp_path, "laplace.json", rt.certify(rt.Laplace(2.0), adversary="worst-case"))
    who = rt.Relaxed(dimension=9)
    grid = rt.assess_each([laplace, runs[8], RELEASES[0]], who)
    assert [name.rpartition("/")[2] for name in grid.left_out] == ["laplace.json"]
    for alone in ([rt.Laplace(2.0), RELEASES[0]], [laplace]):
        with pytest.raises(ParameterError, match="at most 1, the number of released coordinates"):
            rt.assess_each(alone, who)


def test_runs_are_named_as_far_as_their_paths_differ():
    assert names_of(["/a/b/1", "/a/b/2/ledger.json", rt.Gaussian(1.0)]) == ["1", "2/ledger.json", "release 3"]
    assert names_of(["runs/1"]) == ["1"]
    assert names_of([rt.Gaussian(1.0)]) == ["release 1"]


def test_what_something_else_saw_is_not_left_behind():
    """Its mechanism alone would be answered where ``assess`` refuses, or says who vouches for a condition."""
    stranger = SimpleNamespace(mechanism=lambda: RELEASES[0], vouches=dict)
    with pytest.raises(ParameterError, match=r"rt\.assess answers what was seen"):
        rt.assess_each([RELEASES[0], stranger])


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
