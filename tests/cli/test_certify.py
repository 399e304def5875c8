"""``reticent certify`` from configuration to page: what is trained, taken, kept and said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from reticent.cli import main
from tests.cli.calling import CONFIG, document, refused, run

pytestmark = pytest.mark.usefixtures("quick_documents")


@pytest.fixture(scope="module")
def certified(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("certified")
    (folder / "small.yaml").write_text(CONFIG)
    with pytest.raises(SystemExit) as stopped:
        main(["certify", str(folder / "small.yaml"), "--out", str(folder / "out")])
    assert not stopped.value.code
    return folder


def test_a_configuration_becomes_a_run_and_a_certificate(certified: Path, capsys) -> None:
    out = certified / "out"
    assert {p.name for p in out.iterdir()} == {
        "run",
        "certificate.json",
        "certificate.opening.json",
        "certificate.public.json",
        "certificate.html",
    }
    found = json.loads((out / "certificate.json").read_text())
    assert found["schema"] == "reticent.certificate/4"
    assert found["ledger"]["segments"][0]["steps"] == found["mechanism"]["steps"] == 5
    assert len(found["ledger"]["diagnostics"]["batch_sizes"]) == 5
    assert "ledger.diagnostics" in found["do_not_publish"]
    assert {"worst-case", "relaxed", "membership", "mixed", "membership-game"} <= {
        a["adversary"] for a in found["assessments"]
    }
    public = json.loads((out / "certificate.public.json").read_text())
    assert "diagnostics" not in public["ledger"]
    for name in ("certificate.json", "certificate.public.json"):
        code, said, _ = run(capsys, "verify", out / name)
        assert code == 0, said


def test_a_public_certificate_says_what_to_certify_instead(certified: Path, capsys) -> None:
    err = refused(capsys, "certify", certified / "out" / "certificate.public.json", "--out", certified / "no")
    assert "certificate.public.json has the public part of a ledger" in err
    assert "certify the run, its ledger.json, or the complete certificate.json" in err
    assert run(capsys, "certify", certified / "out" / "certificate.json", "--out", certified / "again")[0] == 0


def test_the_short_table_shows_the_prior_and_the_delta_that_risk_shows(certified: Path, capsys) -> None:
    _, out, _ = run(capsys, "certify", certified / "out" / "run", "--out", certified / "short")
    heading = out[: out.index("worst-case")]
    assert "(50% blind)" in heading
    assert "delta 1e-05" in heading
    assert "(90% blind)" not in heading
    assert "1e-06" not in heading


def test_certifying_again_changes_nothing(certified: Path, capsys) -> None:
    before = {p.name: p.read_bytes() for p in (certified / "out").iterdir() if p.is_file()}
    code, _, err = run(capsys, "certify", certified / "small.yaml", "--out", certified / "out")
    assert code == 0
    assert "not training again" in err
    assert {p.name: p.read_bytes() for p in (certified / "out").iterdir() if p.is_file()} == before


def test_a_finished_run_is_certified_beside_itself(certified: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(certified / "out" / "run", tmp_path / "mine")
    assert document(capsys, "certify", tmp_path / "mine") == json.loads(
        (certified / "out" / "certificate.json").read_text()
    )
    assert (tmp_path / "mine-certificate" / "certificate.html").is_file()


def test_another_configuration_does_not_replace_a_run(certified: Path, capsys) -> None:
    other = certified / "other.yaml"
    other.write_text(CONFIG.replace("2.0", "3.0"))
    before = (certified / "out" / "certificate.json").read_bytes()
    assert "another configuration" in refused(capsys, "certify", other, "--out", certified / "out")
    assert (certified / "out" / "certificate.json").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "cut", "word"), [("manifest.json", None, "manifest.json"), ("ledger.json", 100, "ledger.json")]
)
def test_half_a_run_is_one_line_and_nothing_is_written(
    certified: Path, tmp_path: Path, capsys, name: str, cut: int | None, word: str
) -> None:
    path = shutil.copytree(certified / "out" / "run", tmp_path / "input")
    content = (path / name).read_bytes()[:cut]
    (path / name).unlink()
    if cut is not None:
        (path / name).write_bytes(content)
    assert word in refused(capsys, "certify", path, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("rate", "more", "told"), [(0.1, [], True), (0.1, ["--sampler", "poisson"], False), (1.0, [], False)]
)
def test_who_leaves_out_the_sampler_is_told_what_that_declares(tmp_path, capsys, rate, more, told) -> None:
    """Poisson draws were "declared" by people who had never said so, and may shuffle."""
    words = f"certify dpsgd --noise-multiplier 8 --sample-rate {rate} --steps 2 --out {tmp_path}".split(" ")
    code, out, _ = run(capsys, *words, *more)
    assert code == 0
    assert ("without --sampler you declare: Each record" in " ".join(out.split())) == told
