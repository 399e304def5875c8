"""``python -m experiments.gallery``: the list, one again, and clear refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import gallery
from experiments.gallery import run
from experiments.gallery.__main__ import main


def call(*words: str) -> int:
    return main(words)


def test_lists_every_id_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == list(gallery.stored_ids())
    assert {"id", "paper", "title", "verdict", "published", "ours", "reason"} <= rows[0].keys()
    assert {row["verdict"] for row in rows} <= {"agrees", "differs", "cannot be run here"}
    assert call() == 0
    assert "glrt/figure-8" in capsys.readouterr().out


def test_the_command_line_of_the_package_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.cli.calling import run as call_package

    code, out, error = call_package(capsys, "reproduce", "glrt/figure-1")
    assert (code, out) == (2, "")
    assert "python -m experiments.gallery glrt/figure-1" in error


def test_one_that_runs_again_says_what_came_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gaussian-mip/table-3") == 0
    out = capsys.readouterr().out
    assert "- Adult: mu of one step: 1.13 ± 0.005 (caption); ours 1.139" in out
    assert "docs/figures/gallery/gaussian-mip--table-3.svg" in out


def test_what_is_kept_has_the_stored_digits_where_only_rounding_differs(monkeypatch, tmp_path: Path) -> None:
    true, written = gallery.stored("gaussian-mip/table-3"), {}
    monkeypatch.setattr(run, "PICTURES", tmp_path)
    monkeypatch.setattr(run, "write_json", lambda path, result: written.update(result["ours"]))
    name, other, *_ = true.ours
    ours = {**true.ours, name: gallery.Measured(true.ours[name].value * (1 + 1e-15)), other: gallery.Measured(1.5)}
    run.keep(replace(true, ours=ours), b"<svg/>")
    assert written[name] == {"value": true.ours[name].value}
    assert written[other] == {"value": 1.5}


def test_runs_one_again_and_tells_drift(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gaussian-mip/table-3", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first[0]["drift"] == []
    true = gallery.stored("gaussian-mip/table-3")
    moved = dict(true.ours) | {"Adult: mu of one step": gallery.Measured(1.2)}
    other = gallery.Result(true.id, true.title, true.settings, true.published, moved, true.reason)
    monkeypatch.setattr(gallery, "stored", lambda name: other)
    assert call("gaussian-mip/table-3") == 1
    assert "Adult: mu of one step: 1.2 is now 1.139" in capsys.readouterr().err


def test_what_is_drawn_from_stored_results_says_so_and_again_computes_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stored results cannot drift: only --again, which runs their commands into a folder of its own, can tell."""
    assert call("gaussian-mip/figure-5") == 0
    assert "differs; drawn from stored results" in capsys.readouterr().err
    commands = []

    class Done:
        returncode = 0

    def instead(command, env, **_):
        folder = Path(env["RETICENT_RESULTS"]) / "gaussian_mip"
        folder.mkdir(exist_ok=True)
        name = command[-1].rpartition(".")[2] + ".json"
        kept = json.loads((gallery.ROOT / "experiments" / "gaussian_mip" / "results" / name).read_text())
        if name == "power.json":
            kept["Adult"]["summary"]["glir_one_step"]["tpr_at_0.001"] = [0.5, 0.5, 0.5]
        (folder / name).write_text(json.dumps(kept))
        commands.append(command[2])
        return Done()

    monkeypatch.setattr("experiments.gallery.run.subprocess.run", instead)
    assert call("gaussian-mip/figure-5", "--again") == 1
    assert commands == ["experiments.gaussian_mip.power", "experiments.gaussian_mip.one_step"]
    assert "Adult: TPR at FPR 0.001 over the limit" in capsys.readouterr().err
    monkeypatch.setattr(Done, "returncode", 1)
    assert call("gaussian-mip/figure-5", "--again") == 2
    assert "cannot be computed again" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("glrt/figure-11",),
        ("../secret",),
        ("all/figure-1",),
        ("glrt/figure-1", "--quick"),
        ("--keep",),
        ("--again",),
        ("glrt/figure-1", "--keep", "--again"),
    ],
)
def test_refuses_in_one_line(words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call(*words) == 2
    assert capsys.readouterr().err.count("\n") == 1
