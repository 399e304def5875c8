"""The contract of ``reticent audit`` that scripts rely on: scores of any source, and runs."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from reticent.auditing import Design, Scores, load_scores, save_scores
from reticent.cli import main
from reticent.kernel.errors import ArtifactError
from tests.cli.calling import document, refused, run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/audit-1.schema.json").read_text())


def audit(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    found: dict = document(capsys, "audit", *arguments)
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.npz"
    meta = {"attack": "canary"}
    save_scores(path, Scores(rng.normal(1, 1, 200), rng.normal(0, 1, 200), meta, Design.INDEPENDENT))
    return path


def test_delta_rates_and_claims_arrive(capsys, scores: Path) -> None:
    claims = ("--noise-multiplier", "1", "--against-mu", "0.2")
    found = audit(capsys, scores, "--delta", "1e-3", "--fpr", "0.05", *claims)
    said = {name: verdict["finding"] for name, verdict in found["verdicts"].items()}
    assert said == {"worst-case (add-remove)": "consistent", "mu=0.2": "inconsistent"}
    assert (found["design"], found["meta"]) == ("independent", {"attack": "canary"})
    assert {bound["delta"] for bound in found["bounds"] if bound["quantity"] == "epsilon"} == {1e-3}
    assert set(found["tpr_at_fpr"]) == {"0.05"}


def test_the_published_schema_is_closed() -> None:
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def test_confidence_rules_and_seeds_arrive(capsys, scores: Path) -> None:
    strict, loose = (audit(capsys, scores, "--confidence", x, "--rule", "given:0.5") for x in ("0.999", "0.6"))
    mu = [next(b for b in d["bounds"] if b["quantity"] == "mu") for d in (strict, loose)]
    assert mu[0]["value"] < mu[1]["value"]
    assert (mu[0]["thresholds"], mu[0]["rule"]) == ([0.5], "given:0.5")
    assert (mu[0]["confidence"], strict["confidence"]) == (0.999, 0.999)
    one, again, other = (audit(capsys, scores, "--rule", "split:0.4", "--seed", seed) for seed in ("7", "7", "8"))
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "no claim was tested"),
        ("--against-mu 1", "mu=1.0: CONSISTENT"),
        ("--noise-multiplier 1", "release that is claimed: Gaussian: noise multiplier 1, 1 release"),
        (
            "--noise-multiplier 1 --sample-rate 0.01 --steps 1000",
            "release that is claimed: DPSGD: noise multiplier 1, sample rate 0.01 (poisson), 1000 steps",
        ),
        ("--claim event.json", "release that is claimed: Gaussian: noise multiplier 1.5, 1 release"),
    ],
)
def test_the_release_that_is_claimed_is_said(capsys, scores: Path, monkeypatch, options: str, said: str) -> None:
    monkeypatch.chdir(scores.parent)
    Path("event.json").write_text('{"kind": "gaussian", "noise_multiplier": 1.5}')
    code, out, _ = run(capsys, "audit", scores, *options.split())
    assert (code, said in " ".join(out.split())) == (0, True)


def test_design_decides_the_tests(capsys, scores: Path) -> None:
    found = audit(capsys, scores, "--design", "one-run", "--guesses", "80,80", "--against-mu", "1")
    rules = [b["rule"] for b in found["bounds"]]
    assert sum("guesses right" in rule for rule in rules) == 2
    assert "160 guesses" in rules[-1]
    theorems = ["RETICENT:audit-one-run-fdp", "RETICENT:audit-one-run-binomial"]
    assert found["verdicts"]["mu=1.0"]["theorems"] == theorems
    assert audit(capsys, scores, "--design", "population")["bounds"][0]["notes"]


def test_a_refuted_claim_fails_where_that_is_asked_and_scores_are_kept(capsys, scores: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    asked = ("audit", scores, "--fail-if-inconsistent", "--against-mu")
    code, out, _ = run(capsys, *asked, "0.1", "--save-scores", copy)
    assert (code, "INCONSISTENT" in out) == (1, True)
    np.testing.assert_array_equal(load_scores(copy).member, load_scores(scores).member)
    assert run(capsys, *asked, "2")[0] == 0


def test_folders_of_other_programs(capsys, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    keep = rng.random((16, 200)) < 0.5
    for i in range(16):
        folder = tmp_path / "lira" / f"experiment_{i}_of_16" / "scores"
        folder.mkdir(parents=True)
        np.save(folder.parent / "keep.npy", keep[i])
        np.save(folder / "0000000010.npy", rng.normal(size=(200, 2)) + 3.0 * keep[i][:, None])
    online = audit(capsys, tmp_path / "lira", "--attack", "lira", "--target", "3")
    offline = audit(capsys, tmp_path / "lira", "--target", "3")
    assert (online["meta"]["attack"], offline["meta"]["attack"]) == ("lira", "lira-offline")
    assert online["members"] == int(keep[3].sum())
    assert min(online["auc"]["value"], offline["auc"]["value"]) > 0.95
    folder = tmp_path / "pm" / "report" / "exp"
    folder.mkdir(parents=True)
    np.savez(folder / "attack_result_0.npz", scores=rng.normal(size=50), memberships=np.arange(50) < 20)
    assert audit(capsys, tmp_path / "pm")["members"] == 20


def test_text_of_a_score_file_never_reaches_the_terminal_as_it_is(capsys, tmp_path: Path) -> None:
    scores = Scores(
        np.arange(40.0), np.arange(40.0) - 1.0, {"attack": "\x1b]0;owned\x07\x1b[2J\u202e", "subject": "\x1b"}
    )
    for name in ("s.npz", "s.parquet"):
        save_scores(tmp_path / name, scores)
        code, out, err = run(capsys, "audit", tmp_path / name)
        assert code == 0
        assert not {"\x1b", "\x07", "\u202e"} & {*out, *err}
        assert r"\x1b]0;owned" in out
        assert audit(capsys, tmp_path / name)["members"] == 40


def _parquet(path: Path) -> None:
    table = pa.table({"score": np.zeros(2), "member": np.zeros(2, dtype=bool)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(2):
            writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "build", "message"),
    [
        ("s.npz", lambda path: np.savez(path, member=np.zeros(70_000), non_member=np.ones(3)), "bytes once unpacked"),
        ("s.parquet", _parquet, "holds 4 scores, at most 3"),
    ],
)
def test_more_scores_than_anybody_has_are_refused(
    name: str, build: Callable[[Path], object], message: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("reticent.auditing.files.MOST_SCORES", 3)
    build(tmp_path / name)
    with pytest.raises(ArtifactError, match=message):
        load_scores(tmp_path / name)


@pytest.mark.parametrize("name", ["s.npz", "s.csv", "s.parquet"])
def test_a_full_disk_keeps_the_old_scores(name: str, tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr("reticent.auditing.files.os.fsync", full)
    with pytest.raises(ArtifactError, match="cannot be written"):
        save_scores(tmp_path / name, Scores(np.arange(3.0), np.arange(3.0) + 1.0))
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(name, b"old")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    (folder / "tiny.yaml").write_text(
        "data: {name: breast-cancer}\nmodel: {kind: logistic}\nnoise_multiplier: 0.5\n"
        "max_grad_norm: 1.0\nbatch_size: 64\nepochs: 1\nlearning_rate: 1.0\nrandomness: fresh\n"
    )
    with pytest.raises(SystemExit) as stopped:
        main(["train", str(folder / "tiny.yaml"), "--out", str(folder / "run")])
    assert not stopped.value.code
    return folder / "run"


def test_a_run_is_judged_against_its_own_ledger(capsys, trained: Path) -> None:
    found = audit(capsys, trained, "--attack", "loss", "--against", "membership")
    assert (found["design"], found["meta"]["attack"]) == ("population", "loss")
    assert {name.split(" ")[0] for name in found["verdicts"]} == {"membership", "worst-case"}


def test_the_canary_audit_says_first_that_it_audits_a_new_run(capsys, trained: Path) -> None:
    options = ["--attack", "canary", "--canaries", "50"]
    code, out, _ = run(capsys, "audit", trained, *options)
    assert (code, out.startswith("This audits a NEW run")) == (0, True)
    assert "finite weights as in the ledger, SHA-256" in " ".join(out.split())
    found = audit(capsys, trained, *options)
    assert found["notes"][0].startswith("This audits a NEW run")
    assert found["meta"]["release"].endswith("as recorded")


@pytest.mark.parametrize(("factor", "words"), [(np.nan, "not finite"), (-1.0, "not the weights of this run")])
def test_the_canary_audit_refuses_a_release_that_is_not_whole(
    capsys, trained: Path, tmp_path: Path, factor: float, words: str
) -> None:
    """Other weights, and a manifest that agrees with them."""
    copy = shutil.copytree(trained, tmp_path / "run")
    file, manifest = copy / "weights.safetensors", json.loads((copy / "manifest.json").read_text())
    save_file({name: (factor * w).astype(w.dtype) for name, w in load_file(file).items()}, file)
    data = file.read_bytes()
    manifest["files"][file.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert words in refused(capsys, "audit", copy, "--attack", "canary", "--canaries", "50")


REFUSED_OF_A_RUN = {
    "--attack magic": "--attack",
    "--attack glir": "--trace",
    "--attack canary --canaries 0": "--canaries",
    "--attack canary --models 0": "--models",
    "--engine dask": "--address",
    "--address tcp://here:1": "--address",
    "--workers 0": "--workers",
    "--against attribute": "gradient-change must be given",
    "--target 2": "--target must be left out",
    "--guesses 5,5": "--guesses must be left out",
    **{f"--{name} 2": f"--{name} must be left out" for name in ("noise-multiplier", "steps", "dimension")},
    "--sample-rate 0.1": "--sample-rate must be left out",
    "--confidence 2": "--confidence",
    "--delta 2": "--delta",
    "--fpr 0": "--fpr",
    "--against-mu nan": "--against-mu",
    "--save-scores none/x.csv": "none",
    "--save-scores x.pkl": "x.pkl",
    "--attack lira --work . --resume": ".",  # a folder of somebody else's; tests/tasks/test_folders.py
}


@pytest.mark.parametrize("options", REFUSED_OF_A_RUN)
def test_what_is_wrong_is_refused_before_the_attack_begins(
    capsys, trained: Path, tmp_path: Path, monkeypatch, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis.tex").touch()
    monkeypatch.setattr("reticent.attacks.black_box.log_expit", lambda *_: pytest.fail("the attack was run"))
    assert REFUSED_OF_A_RUN[options] in refused(capsys, "audit", trained, *options.split())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
