"""The gallery: verdicts follow from the numbers, nothing stored is out of date, quick figures run again."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import gallery
from experiments.gallery import Entry, Measured, Published, Relation, Result, Verdict, document, run
from experiments.gallery.__main__ import main
from experiments.gallery.entry import result_of
from experiments.gallery.store import _from_json
from reticent.kernel.errors import ParameterError
from tests.cli.calling import run as call_package

IDS = gallery.stored_ids()
NUMBERED = {
    "glrt/figure": range(1, 11),
    "relaxed-threat-model/figure": range(1, 5),
    "closed-form-bounds/figure": range(1, 11),
    "gaussian-mip/figure": range(1, 7),
    "gaussian-mip/table": range(3, 6),
    "utility/figure": range(1, 8),
    "utility/table": range(1, 4),
}
"""Tables 1 and 2 of the last paper, like Table 1 of the closed-form one, compare in words and print no number."""
FAST = (
    *(f"glrt/figure-{number}" for number in (1, 2, 3, 5, 8, 9)),
    *(f"closed-form-bounds/{name}" for name in ("figure-4", "figure-9", "section-6-2")),
    *(f"gaussian-mip/{name}" for name in ("figure-2", "figure-5", "table-3", "table-4")),
)
"""About a second each; the rest of ``reproduce all --quick`` takes half a minute more, most of it relaxed figure 4."""
ONE = "gaussian-mip/table-3"


def test_every_figure_and_every_table_with_numbers_is_there() -> None:
    wanted = {f"{kind}-{number}" for kind, numbers in NUMBERED.items() for number in numbers}
    assert set(IDS) == wanted | {"relaxed-threat-model/section-5", "closed-form-bounds/section-6-2"}
    assert gallery.scripted_ids() == IDS
    counts = Counter(gallery.stored(name).paper for name in IDS)
    assert counts == {"KAISSIS2022": 10, "KAISSIS2023": 5, "CHERUBIN2024": 11, "LEEMANN2023": 9, "RETICENT": 10}


@pytest.mark.parametrize("name", IDS)
def test_each_has_a_verdict_that_follows_from_its_numbers_and_a_small_picture(name: str) -> None:
    """``agrees`` means that each published number lies within its stated tolerance, here written out once more."""
    result, stem = gallery.stored(name), name.replace("/", "--")
    row = json.loads((gallery.ROOT / f"experiments/gallery/results/{stem}.json").read_text(encoding="utf-8"))
    assert row == json.loads(json.dumps(document(result)))
    for printed in row["published"]:
        ours = row["ours"].get(printed["name"])
        if ours is None:
            assert result.needs, printed["name"]
            continue
        low, high = ours.get("low", ours["value"]), ours.get("high", ours["value"])
        near = {
            Relation.IS.value: low - printed["tolerance"] <= printed["value"] <= high + printed["tolerance"],
            Relation.AT_MOST.value: ours["value"] <= printed["value"] + printed["tolerance"],
            Relation.AT_LEAST.value: ours["value"] >= printed["value"] - printed["tolerance"],
        }[printed["relation"]]
        assert near or result.verdict is not Verdict.AGREES, printed["name"]
    assert result.failing or result.verdict is not Verdict.DIFFERS
    assert row["verdict"] == result.verdict.value
    assert result.reason.endswith(".")
    measured = [printed["name"] for printed in row["published"] if printed["name"] in row["ours"]]
    assert bool(result.needs) == (len(measured) < len(row["published"])) or result.id == "gaussian-mip/figure-3"
    assert (result.verdict is Verdict.CANNOT_RUN) == (not measured)
    content = (gallery.ROOT / f"docs/figures/gallery/{stem}.svg").read_bytes()
    assert content.startswith(b"<?xml")
    assert len(content) < 150_000
    assert b"<dc:date>" not in content


@pytest.mark.parametrize("name", IDS)
def test_the_script_declares_what_is_stored(name: str) -> None:
    """Published numbers, reason and settings of the stored result are those of the script.

    A script may compute a paper's bound, and another processor rounds it otherwise.
    """
    entry, result = gallery.load_entry(name), gallery.stored(name)
    for what in ("title", "reason", "needs", "stored"):
        assert getattr(entry, what) == getattr(result, what)
    mine, theirs = ([replace(number, value=0.0) for number in one.published] for one in (entry, result))
    assert mine == theirs
    written = [number.value for number in result.published]
    assert [number.value for number in entry.published] == pytest.approx(written, rel=1e-9, abs=0)


def test_each_entry_has_a_picture_that_leads_to_its_numbers() -> None:
    """The gallery is small pictures alone; a filter finds each by its paper and by its verdict."""
    results = [gallery.stored(name) for name in IDS if not name.startswith(gallery.OWN)]
    made = gallery.pages(results)
    for result in results:
        slug, anchor = result.id.partition("/")[0], result.id.replace("/", "")
        assert f'<div class="entry {slug} {result.verdict.name.lower()}">' in made["gallery.md"]
        assert made["gallery.md"].count(f"](gallery/{slug}.md#{anchor})") == 1
        assert f"\n## {result.id}\n" in made[f"gallery/{slug}.md"]
    assert made["gallery.md"].count("![") == len(results)


NUMBER = Published("n", 1.0, "caption", 0.005)


def entry(*published: Published, needs: str = "", paper: str = "glrt/figure-1", reason: str = "because") -> Entry:
    return Entry(paper, "t", lambda figure: {}, published, reason, needs=needs)


def result(value: float | Measured, published: Published = NUMBER, needs: str = "") -> Result:
    return result_of(entry(published, needs=needs), {"n": value})


@pytest.mark.parametrize(
    ("relation", "value", "agrees"),
    [
        (Relation.IS, 1.004, True),
        (Relation.IS, 1.006, False),
        (Relation.IS, 0.994, False),
        (Relation.IS, Measured(1.2, 1.004, 1.4, "an interval that holds the printed value"), True),
        (Relation.IS, Measured(1.2, 1.02, 1.4, "seeds"), False),
        (Relation.AT_MOST, 1.004, True),
        (Relation.AT_MOST, 1.006, False),
        (Relation.AT_MOST, Measured(1.2, 0.5, 1.4, "the value counts, not the kinder end"), False),
        (Relation.AT_LEAST, 0.996, True),
        (Relation.AT_LEAST, 0.994, False),
    ],
)
def test_verdict_follows_from_the_tolerance(relation: Relation, value, agrees: bool) -> None:
    for needs in ("", "a GPU"):  # what was measured has a verdict though something is missing
        found = result(value, replace(NUMBER, relation=relation), needs)
        assert found.verdict is (Verdict.AGREES if agrees else Verdict.DIFFERS)


def test_a_published_number_must_be_measured_or_named_as_missing() -> None:
    with pytest.raises(ParameterError, match="'n'"):
        result_of(entry(NUMBER), {})
    missing = result_of(entry(NUMBER, needs="a GPU"), {"other": 1.0})
    assert missing.verdict is Verdict.CANNOT_RUN
    assert result_of(entry(NUMBER, needs="x"), {}).ours == {}


@pytest.mark.parametrize(
    "bad",
    [
        lambda: entry(NUMBER, paper="other/figure-1"),
        lambda: entry(),
        lambda: entry(NUMBER, reason=""),
        lambda: Measured(float("nan")),
        lambda: Measured(1.0, 2.0, 3.0, "seeds"),
    ],
)
def test_what_compares_nothing_is_refused(bad) -> None:
    with pytest.raises(ParameterError):
        bad()


def test_drift_names_what_moved() -> None:
    old = result(1.0)
    assert result(1.0 + 5e-7).drift(old) == ()
    assert result(1.001).drift(old) == ("n: 1 is now 1.001",)
    assert result(1.1).drift(old)[0] == "verdict: agrees is now differs"


@pytest.mark.parametrize("drift", [None, 0.25, float("inf")])
def test_results_survive_their_file(drift: float | None) -> None:
    found = result_of(entry(NUMBER), {"n": Measured(1.0, 0.9, 1.1, "five seeds", drift), "m": 2.0})
    assert _from_json(json.loads(json.dumps(document(found), allow_nan=False))) == found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.docs if name in FAST else pytest.mark.slow) for name in IDS]
)
def test_runs_again_without_drift(name: str) -> None:
    found, _ = gallery.run_entry(gallery.load_entry(name))
    assert found.drift(gallery.stored(name)) == ()


def test_kept_results_and_pictures_are_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run gives the same picture; where only rounding differs, what is kept has the stored digits."""
    found, picture = gallery.run_entry(gallery.load_entry(ONE))
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(run, "PICTURES", tmp_path)
    true, file = gallery.stored(ONE), tmp_path / "gaussian-mip--table-3.json"
    gallery.keep(found, picture)
    assert json.loads(file.read_text()) == json.loads(json.dumps(document(true)))
    kept = (tmp_path / "gaussian-mip--table-3.svg").read_bytes()
    assert kept == picture == gallery.run_entry(gallery.load_entry(ONE))[1]
    name, other, *_ = true.ours
    moved = {name: Measured(true.ours[name].value * (1 + 1e-15)), other: Measured(1.5)}
    run.keep(replace(true, ours={**true.ours, **moved}), b"<svg/>")
    ours = json.loads(file.read_text())["ours"]
    assert (ours[name], ours[other]) == ({"value": true.ours[name].value}, {"value": 1.5})


def test_the_command_lists_every_id_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("--json",)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in rows] == list(IDS)
    assert {"id", "paper", "title", "verdict", "published", "ours", "reason"} <= rows[0].keys()
    assert main(()) == 0
    assert "glrt/figure-8" in capsys.readouterr().out


def test_the_command_line_of_the_package_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = call_package(capsys, "reproduce", "glrt/figure-1")
    assert (code, out) == (2, "")
    assert "python -m experiments.gallery glrt/figure-1" in error


def test_one_that_runs_again_says_what_came_out_and_tells_drift(monkeypatch, capsys) -> None:
    assert main((ONE,)) == 0
    out = capsys.readouterr().out
    assert "- Adult: mu of one step: 1.13 ± 0.005 (caption); ours 1.139" in out
    assert "docs/figures/gallery/gaussian-mip--table-3.svg" in out
    true = gallery.stored(ONE)
    moved = replace(true, ours={**true.ours, "Adult: mu of one step": Measured(1.2)})
    monkeypatch.setattr(gallery, "stored", lambda name: moved)
    assert main((ONE, "--json")) == 1
    found = capsys.readouterr()
    assert "Adult: mu of one step: 1.2 is now 1.139" in found.err
    assert json.loads(found.out)[0]["drift"]


def test_what_is_drawn_from_stored_results_says_so_and_again_computes_them(monkeypatch, capsys) -> None:
    """Stored results cannot drift: only --again, which runs their commands into a folder of its own, can tell."""
    assert main(("gaussian-mip/figure-5",)) == 0
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
    assert main(("gaussian-mip/figure-5", "--again")) == 1
    assert commands == ["experiments.gaussian_mip.power", "experiments.gaussian_mip.one_step"]
    assert "Adult: TPR at FPR 0.001 over the limit" in capsys.readouterr().err
    monkeypatch.setattr(Done, "returncode", 1)
    assert main(("gaussian-mip/figure-5", "--again")) == 2
    assert "cannot be computed again" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "glrt/figure-11",
        "../secret",
        "all/figure-1",
        "glrt/figure-1 --quick",
        "--keep",
        "--again",
        f"{ONE} --keep --again",
    ],
)
def test_refuses_in_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
