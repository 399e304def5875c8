"""Quick figures run again and give their stored numbers and the same picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import gallery

FAST = (
    "glrt/figure-1",
    "glrt/figure-2",
    "glrt/figure-3",
    "glrt/figure-5",
    "glrt/figure-8",
    "glrt/figure-9",
    "closed-form-bounds/figure-4",
    "closed-form-bounds/figure-9",
    "closed-form-bounds/section-6-2",
    "gaussian-mip/figure-2",
    "gaussian-mip/figure-5",
    "gaussian-mip/table-3",
    "gaussian-mip/table-4",
)
"""About a second each; the rest of ``reproduce all --quick`` takes half a minute more, most of it relaxed figure 4."""


@pytest.mark.docs
@pytest.mark.parametrize("name", FAST)
def test_runs_again_without_drift(name: str) -> None:
    result, _ = gallery.run_entry(gallery.load_entry(name))
    assert result.drift(gallery.stored(name)) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(gallery.stored_ids()) - set(FAST)))
def test_the_rest_runs_again_without_drift(name: str) -> None:
    pytest.importorskip("dp_accounting")
    result, _ = gallery.run_entry(gallery.load_entry(name))
    assert result.drift(gallery.stored(name)) == ()


def test_kept_results_and_pictures_are_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, picture = gallery.run_entry(gallery.load_entry("gaussian-mip/table-3"))
    monkeypatch.setattr("experiments.gallery.run.RESULTS", tmp_path)
    monkeypatch.setattr("experiments.gallery.run.PICTURES", tmp_path)
    gallery.keep(result, picture)
    written = json.loads((tmp_path / "gaussian-mip--table-3.json").read_text())
    assert written == json.loads(json.dumps(gallery.document(gallery.stored("gaussian-mip/table-3"))))
    assert (tmp_path / "gaussian-mip--table-3.svg").read_bytes() == picture


def test_the_same_run_gives_the_same_picture() -> None:
    entry = gallery.load_entry("gaussian-mip/table-3")
    assert gallery.run_entry(entry)[1] == gallery.run_entry(entry)[1]
