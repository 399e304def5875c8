"""The stored results: no id without a verdict, nothing out of date, every script behind one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import gallery
from experiments.gallery import Relation, Verdict

ROOT = Path(__file__).parents[2]
NUMBERED = {
    "glrt/figure": range(1, 11),
    "relaxed-threat-model/figure": range(1, 5),
    "closed-form-bounds/figure": range(1, 11),
    "gaussian-mip/figure": range(1, 7),
    "gaussian-mip/table": range(3, 6),
}
"""Tables 1 and 2 of the last paper, like Table 1 of the closed-form one, compare in words and print no number."""
IDS = gallery.stored_ids()


def test_every_figure_and_every_table_with_numbers_is_there() -> None:
    wanted = {f"{kind}-{number}" for kind, numbers in NUMBERED.items() for number in numbers}
    assert len(wanted) == 33
    ours = {f"utility/figure-{number}" for number in range(1, 8)} | {
        f"utility/table-{number}" for number in range(1, 4)
    }
    assert set(IDS) == wanted | ours | {"relaxed-threat-model/section-5", "closed-form-bounds/section-6-2"}
    assert gallery.scripted_ids() == IDS


@pytest.mark.parametrize("name", IDS)
def test_each_has_a_verdict_that_follows_from_its_numbers(name: str) -> None:
    """``agrees`` means that each published number lies within its stated tolerance, here written out once more."""
    result = gallery.stored(name)
    file = ROOT / "experiments" / "gallery" / "results" / (name.replace("/", "--") + ".json")
    row = json.loads(file.read_text(encoding="utf-8"))
    assert row == json.loads(json.dumps(gallery.document(result)))
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
    if result.verdict is Verdict.DIFFERS:
        assert result.failing
    assert row["verdict"] == result.verdict.value
    assert result.reason.endswith(".")
    measured = [printed["name"] for printed in row["published"] if printed["name"] in row["ours"]]
    assert bool(result.needs) == (len(measured) < len(row["published"])) or result.id == "gaussian-mip/figure-3"
    assert (result.verdict is Verdict.CANNOT_RUN) == (not measured)


@pytest.mark.parametrize("name", IDS)
def test_the_script_declares_what_is_stored(name: str) -> None:
    """Published numbers, reason and settings of the stored result are those of the script.

    A script may compute a paper's bound, and another processor rounds it otherwise.
    """
    pytest.importorskip("sklearn")
    pytest.importorskip("dp_accounting")
    entry, result = gallery.load_entry(name), gallery.stored(name)
    assert (entry.title, entry.reason, entry.needs, entry.stored) == (
        result.title,
        result.reason,
        result.needs,
        result.stored,
    )
    assert [replace(number, value=0.0) for number in entry.published] == [
        replace(number, value=0.0) for number in result.published
    ]
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


@pytest.mark.parametrize("name", IDS)
def test_each_has_a_small_picture(name: str) -> None:
    picture = ROOT / "docs" / "figures" / "gallery" / (name.replace("/", "--") + ".svg")
    content = picture.read_bytes()
    assert content.startswith(b"<?xml")
    assert len(content) < 150_000
    assert b"<dc:date>" not in content


def test_the_papers_are_told_apart() -> None:
    counts = Counter(gallery.stored(name).paper for name in IDS)
    assert counts == {"KAISSIS2022": 10, "KAISSIS2023": 5, "CHERUBIN2024": 11, "LEEMANN2023": 9, "RETICENT": 10}
