"""The contract of ``reticent audit`` that scripts rely on."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from reticent.auditing import Design, Scores, load_scores, save_scores
from reticent.cli import main
from tests.cli.calling import run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/audit-1.schema.json").read_text())


def audit(capsys, *arguments: str) -> dict:
    code, out, err = run(capsys, "audit", *arguments, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))
    jsonschema.validate(document, SCHEMA)
    return document


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.npz"
    meta = {"attack": "canary"}
    save_scores(path, Scores(rng.normal(1, 1, 200), rng.normal(0, 1, 200), meta, Design.INDEPENDENT))
    return path


def test_json_has_the_promised_shape(capsys, scores: Path) -> None:
    document = audit(
        capsys, scores, "--noise-multiplier", "1", "--delta", "1e-3", "--fpr", "0.05", "--against-mu", "0.2"
    )
    assert document["schema"] == "reticent.audit/1"
    assert (document["members"], document["non_members"]) == (200, 200)
    assert (document["design"], document["meta"]) == ("independent", {"attack": "canary"})
    assert {b["quantity"] for b in document["bounds"]} == {"epsilon", "mu", "advantage"}
    assert all(b["claim"] == "empirical" and b["theorems"] for b in document["bounds"])
    assert {b["delta"] for b in document["bounds"] if b["quantity"] == "epsilon"} == {1e-3}
    assert set(document["tpr_at_fpr"]) == {"0.05"}
    assert set(document["curve"]) >= {"alpha", "beta", "alpha_radius", "beta_radius", "confidence"}
    assert set(document["verdicts"]) == {"worst-case (add-remove)", "mu=0.2"}
    assert document["verdicts"]["worst-case (add-remove)"]["finding"] == "consistent"
    assert document["verdicts"]["mu=0.2"]["finding"] == "inconsistent"


def test_the_published_schema_is_closed() -> None:
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def test_confidence_and_rules_arrive(capsys, scores: Path) -> None:
    strict = audit(capsys, scores, "--confidence", "0.999", "--rule", "given:0.5")
    loose = audit(capsys, scores, "--confidence", "0.6", "--rule", "given:0.5")
    mu = [next(b for b in d["bounds"] if b["quantity"] == "mu") for d in (strict, loose)]
    assert mu[0]["value"] < mu[1]["value"]
    assert mu[0]["thresholds"] == [0.5]
    assert (mu[0]["confidence"], strict["confidence"]) == (0.999, 0.999)
    again = [audit(capsys, scores, "--rule", "split:0.4", "--seed", "7") for _ in range(2)]
    assert again[0] == again[1]
    assert again[0] != audit(capsys, scores, "--rule", "split:0.4", "--seed", "8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no claim was tested"),
        (("--against-mu", "1"), "mu=1.0: CONSISTENT"),
        (("--noise-multiplier", "1"), "release that is claimed: Gaussian: noise multiplier 1, 1 release"),
        (
            ("--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"),
            "release that is claimed: DPSGD: noise multiplier 1, sample rate 0.01 (poisson), 1000 steps",
        ),
        (("--claim", "event.json"), "release that is claimed: Gaussian: noise multiplier 1.5, 1 release"),
    ],
)
def test_the_release_that_is_claimed_is_said(capsys, scores: Path, monkeypatch, options, said: str) -> None:
    monkeypatch.chdir(scores.parent)
    Path("event.json").write_text('{"kind": "gaussian", "noise_multiplier": 1.5}')
    code, out, _ = run(capsys, "audit", scores, *options)
    assert code == 0
    assert said in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--claim", "event.json", "--steps", "3"), "--steps must be left out: the file of --claim says it"),
        (("--claim", "none.json"), "none.json: cannot be read"),
        (("--noise-multiplier", "1", "--dimension", "0"), "--dimension must be a whole number >= 1, got 0"),
    ],
)
def test_a_claim_that_cannot_be_tested(capsys, scores: Path, monkeypatch, options, said: str) -> None:
    monkeypatch.chdir(scores.parent)
    code, out, err = run(capsys, "audit", scores, *options)
    assert (code, out) == (2, "")
    assert said in err


def test_dp_sgd_and_other_adversaries(capsys, scores: Path) -> None:
    arguments = ["--noise-multiplier", "2", "--sample-rate", "0.1", "--steps", "100", "--against", "membership"]
    document = audit(capsys, scores, *arguments)
    assert {name.split(" ")[0] for name in document["verdicts"]} == {"membership", "worst-case"}


def test_design_decides_the_tests(capsys, scores: Path) -> None:
    document = audit(capsys, scores, "--design", "one-run", "--guesses", "80,80", "--against-mu", "1")
    rules = [b["rule"] for b in document["bounds"]]
    assert sum("guesses right" in rule for rule in rules) == 2
    assert "160 guesses" in rules[-1]
    theorems = ["RETICENT:audit-one-run-fdp", "RETICENT:audit-one-run-binomial"]
    assert document["verdicts"]["mu=1.0"]["theorems"] == theorems
    assert audit(capsys, scores, "--design", "population")["bounds"][0]["notes"]


def test_gate_and_saved_scores(capsys, scores: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    gate = ["audit", scores, "--against-mu", "0.1", "--fail-if-inconsistent", "--save-scores", copy]
    code, out, _ = run(capsys, *gate)
    assert code == 1
    assert "INCONSISTENT" in out
    np.testing.assert_array_equal(load_scores(copy).member, load_scores(scores).member)
    assert run(capsys, "audit", scores, "--against-mu", "2", "--fail-if-inconsistent")[0] == 0


def test_lira_and_privacy_meter_folders(capsys, tmp_path: Path) -> None:
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


def test_plan(capsys) -> None:
    code, out, err = run(capsys, "plan-audit", "--claimed-mu", "0.5", "--true-mu", "1", "--json")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert plan["schema"] == "reticent.audit-plan/1"
    assert 100 < plan["needed"] < 300
    assert plan["power"] >= 0.8
    code, out, _ = run(capsys, "plan-audit", "--claimed-mu", "0.5", "--true-mu", "1", "--unit", "models")
    assert code == 0
    assert "models" in out
    assert "ranks:" in out


def test_a_table_for_people(capsys, scores: Path) -> None:
    code, out, _ = run(capsys, "audit", scores, "--noise-multiplier", "1")
    assert code == 0
    assert "CONSISTENT" in out
    assert "at least" in out


@pytest.mark.parametrize(
    "rule",
    [
        "ranks:0.01,0.1,0.3",
        *(pytest.param(r, marks=pytest.mark.slow) for r in ("given:0.5", "bonferroni:-1.0,0.5")),
        "split:0.3",
    ],
)
def test_a_rule_is_shown_as_it_is_typed(capsys, scores: Path, rule: str) -> None:
    assert audit(capsys, scores, "--rule", rule)["bounds"][0]["rule"] == rule


BAD = {
    "confidence": (["--confidence", "95"], "--confidence"),
    "confidence nan": (["--confidence", "nan"], "--confidence"),
    "delta": (["--delta", "0"], "--delta"),
    "fpr": (["--fpr", "1.5"], "--fpr"),
    "rule": (["--rule", "best"], "--rule"),
    "level": (["--rule", "ranks:0"], "--rule"),
    "guesses": (["--guesses", "many"], "--guesses"),
    **{f"rule {text}": (["--rule", text], "--rule") for text in ("ranks", "given:1,2", "split:", "given:x", "")},
    **{f"guesses {text}": (["--guesses", text], "two whole") for text in ("1", "1,-2", "a,b", "1,2,3")},
    "design": (["--design", "magic"], "--design"),
    "adversary": (["--noise-multiplier", "1", "--against", "nosy"], "nosy"),
    "no release": (["--against", "worst-case"], "--noise-multiplier"),
    "half a DP-SGD": (["--noise-multiplier", "1", "--steps", "5"], "--sample-rate"),
    "format": (["--format", "word"], "--format"),
    "guesses too many": (["--design", "one-run", "--guesses", "500,500"], "--guesses"),
    "save": (["--save-scores", "x.pkl"], "x.pkl"),
    "save nowhere": (["--save-scores", "absent/x.csv"], "absent"),
    "mu": (["--against-mu", "-1"], "--against-mu"),
    "seed": (["--seed", "-1"], "--seed"),
    "adversary's option": (["--noise-multiplier", "1", "--against", "nosy"], "--against"),
    "attack on scores": (["--attack", "glir"], "--attack"),
    "target of scores": (["--target", "2"], "--target"),
    "guesses without a coin": (["--guesses", "5,5"], "--guesses"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, scores: Path, case: str) -> None:
    arguments, words = BAD[case]
    code, out, err = run(capsys, "audit", scores, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize("name", ["absent", "scores.txt", "empty folder"])
def test_bad_sources(capsys, tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    if name == "scores.txt":
        source.write_text("1,2")
    if name == "empty folder":
        source.mkdir()
    code, out, err = run(capsys, "audit", source)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(source) in err


@pytest.mark.slow
def test_scores_are_audited_without_torch(scores: Path) -> None:
    script = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] in ('torch', 'opacus'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        f"from reticent.cli import main; main(['audit', {str(scores)!r}, '--noise-multiplier', '1', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "reticent.audit/1"


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


@pytest.mark.parametrize(("attack", "design"), [("loss", "population"), ("canary", "independent")])
def test_a_run_is_judged_against_its_own_ledger(capsys, trained: Path, attack: str, design: str) -> None:
    document = audit(capsys, trained, "--attack", attack, "--canaries", "100", "--against", "membership")
    assert document["design"] == design
    assert document["meta"]["attack"] == attack
    assert {name.split(" ")[0] for name in document["verdicts"]} == {"membership", "worst-case"}


def test_the_canary_audit_says_first_that_it_audits_a_new_run(capsys, trained: Path) -> None:
    options = ["--attack", "canary", "--canaries", "50"]
    code, out, _ = run(capsys, "audit", trained, *options)
    assert code == 0
    assert out.startswith("This audits a NEW run")
    assert "finite weights as in the ledger, SHA-256" in " ".join(out.split())
    document = audit(capsys, trained, *options)
    assert document["notes"][0].startswith("This audits a NEW run")
    assert document["meta"]["release"].endswith("as recorded")


def forged(trained: Path, copy: Path, change) -> Path:
    """A copy of the run with other weights and a manifest that agrees with them."""
    shutil.copytree(trained, copy)
    tensors = {name: change(tensor) for name, tensor in load_file(copy / "weights.safetensors").items()}
    save_file(tensors, copy / "weights.safetensors")
    manifest = json.loads((copy / "manifest.json").read_text())
    data = (copy / "weights.safetensors").read_bytes()
    manifest["files"]["weights.safetensors"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


RELEASES = {
    "all weights NaN": (lambda w: np.full_like(w, np.nan), "not finite"),
    "one weight infinite": (lambda w: np.where(np.arange(w.size).reshape(w.shape) == 0, np.inf, w), "not finite"),
    "another shape": (lambda w: w[:1], "expected"),
    "another type": (lambda w: w.astype(np.float64), "expected"),
    "another model of the same shape": (lambda w: -w, "not the weights of this run"),
}


@pytest.mark.parametrize("case", RELEASES)
def test_the_canary_audit_refuses_a_release_that_is_not_whole(capsys, trained: Path, tmp_path: Path, case: str) -> None:
    change, words = RELEASES[case]
    path = forged(trained, tmp_path / "run", lambda w: np.ascontiguousarray(change(w), dtype=change(w).dtype))
    code, out, err = run(capsys, "audit", path, "--attack", "canary", "--canaries", "50")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_changed_bytes_of_the_release_are_refused(capsys, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    file = tmp_path / "run" / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    code, out, err = run(capsys, "audit", tmp_path / "run", "--attack", "canary", "--canaries", "50")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "checksum" in err


def test_text_of_a_score_file_never_reaches_the_terminal_as_it_is(capsys, tmp_path: Path) -> None:
    rng, meta = np.random.default_rng(0), {"attack": "\x1b[31mx\x07", "subject": "\x1b]0;title"}
    save_scores(tmp_path / "s.npz", Scores(rng.normal(1, 1, 40), rng.normal(0, 1, 40), meta, Design.INDEPENDENT))
    code, out, err = run(capsys, "audit", tmp_path / "s.npz")
    assert code == 0
    assert "\x1b" not in out + err
    assert "\x07" not in out + err


def test_work_folders_that_are_not_ours_are_refused_on_the_command_line(capsys, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "partial").mkdir(parents=True)
    (tmp_path / "mine" / "partial" / "thesis.tex").write_text("years of work")
    before = sorted(trained.rglob("*"))
    for work in (tmp_path / "mine", trained, trained / "attack"):
        arguments = ["audit", trained, "--attack", "lira", "--work", work, "--resume"]
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert str(work) in err
    assert (tmp_path / "mine" / "partial" / "thesis.tex").read_text() == "years of work"
    assert sorted(trained.rglob("*")) == before


def test_an_unreachable_address_leaves_nothing_behind(capsys, trained: Path, tmp_path: Path) -> None:
    work = ["--work", tmp_path / "new", "--engine", "dask", "--address", "tcp://127.0.0.1:1"]
    code, out, err = run(capsys, "audit", trained, "--attack", "lira", *work)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "tcp://127.0.0.1:1" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--timeout", "-1"], "--timeout"),
        (["--attack", "magic"], "--attack"),
        (["--engine", "abacus"], "--engine"),
        (["--engine", "dask"], "--address"),
        (["--workers", "0"], "--workers"),
        (["--canaries", "0", "--attack", "canary"], "--canaries"),
        (["--against", "attribute"], "gradient-change must be given"),
        (["--address", "tcp://here:1"], "--address"),
        (["--target", "2"], "--target"),
        (["--noise-multiplier", "2"], "--noise-multiplier"),
        (["--sample-rate", "0.1"], "--sample-rate"),
        (["--steps", "5"], "--steps"),
        (["--dimension", "3"], "--dimension"),
        (["--seed", "-1"], "--seed"),
        (["--attack", "canary", "--models", "0"], "--models"),
        (["--attack", "glir"], "--trace"),
        (["--guesses", "5,5"], "--guesses"),
    ],
)
def test_bad_options_for_a_run(capsys, trained: Path, arguments: list[str], words: str) -> None:
    code, out, err = run(capsys, "audit", trained, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_numbers_are_refused_before_the_attack_begins(capsys, trained: Path, monkeypatch) -> None:
    monkeypatch.setattr("reticent.attacks.base.find_attack", lambda *_, **__: pytest.fail("the attack was run"))
    for arguments in (
        ["--confidence", "2"],
        ["--delta", "2"],
        ["--fpr", "0"],
        ["--against-mu", "nan"],
        ["--save-scores", "absent/x.csv"],
        ["--save-scores", "x.pkl"],
    ):
        code, out, err = run(capsys, "audit", trained, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments


def test_a_damaged_run_is_refused(capsys, trained: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (copy / "ledger.json").write_text("{")
    code, out, err = run(capsys, "audit", copy)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_folder_that_is_missing_is_named_before_the_audit(capsys, scores: Path, tmp_path: Path) -> None:
    for option, name in (("--html", "page.html"), ("--save-scores", "more.npz")):
        code, out, err = run(capsys, "audit", scores, "--against-mu", "1", option, tmp_path / "none" / name)
        assert (code, out) == (2, "")
        assert err.endswith(f"/{name}: {tmp_path / 'none'} is not a folder that can be written to\n")
    assert not (tmp_path / "none").exists()
