"""``reticent register`` and ``gate --register``, as somebody types them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import reticent as rt
from tests.certificates.conftest import make_ledger
from tests.cli.calling import document, refused, run

pytestmark = pytest.mark.usefixtures("quick_documents")


def policy(path: Path, more: str = "") -> Path:
    limit = f"limits: [{{measure: advantage, at_most: 0.9{more}}}]"
    path.write_text(f"schema: reticent.policy/1\nper: record\naccept_conditions: [clipped]\n{limit}\n")
    return path


def test_from_two_files_to_a_gate(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    policy(tmp_path / "policy.yaml")
    assert run(capsys, "keygen", "k")[0] == 0
    assert run(capsys, "register", "open", "r", "--name", "clinic", "--budget", "mu=0.055", "--sign", "k")[0] == 0
    for name, noise in (("a", 20.0), ("b", 30.0)):
        (tmp_path / f"{name}.json").write_text(f'{{"kind": "gaussian", "noise_multiplier": {noise}}}')
    both = document(capsys, "certify", "a.json", "b.json", "--out", "both")["mechanism"]
    assert [part["noise_multiplier"] for part in both["parts"]] == [20.0, 30.0]
    rt.certify(rt.Gaussian(20.0), adversary=["worst-case", rt.Attribute(0.1)]).save("a")  # under both relations
    gate = ("gate", "a/certificate.json", "--policy", "policy.yaml", "--register", "r", "--register-key", "k.pub")
    assert "not entered" in run(capsys, *gate)[1]
    code, out, _ = run(capsys, "register", "add", "r", "a/certificate.json", "--sign", "k")
    assert (code, "mu 0.05 of 0.055: 0.005 is left" in out) == (0, True)
    assert "Stop: can one person have several records?" in out
    assert "clinic: entered" in run(capsys, *gate)[1]
    policy(tmp_path / "replace.yaml", ", neighbouring: replace")
    code, out, _ = run(capsys, *gate[:3], "replace.yaml", *gate[4:], "--register-budget", "mu=0.055")
    assert (code, out.count("BREACH")) == (1, 1), out
    assert "BREACH  the register is of a relation of the policy: add-remove" in out
    assert "within the budget" in refused(capsys, "register", "add", "r", "both/certificate.json", "--sign", "k")
    found = document(capsys, "register", "show", "r", "--key", "k.pub")
    assert found["releases"] == ["parameters that are declared"]
    assert run(capsys, "register", "show", "r", "--key", "k.pub", "--head", found["head"])[0] == 0
    assert run(capsys, "register", "show", "r", "--key", "k.pub", "--head", "1" * 64)[0] == 2
    stated = {"--register-head": found["head"], "--register-name": "clinic", "--register-budget": "mu=0.0550"}
    others = {"--register-head": "1" * 64, "--register-name": "klinik", "--register-budget": "mu=0.06"}
    for name, value in stated.items():
        code, out, _ = run(capsys, *gate, name, value)
        assert code == 0, out
        code, out, _ = run(capsys, *gate, name, others[name])
        assert (code, out.count("BREACH")) == (1, 1)
    assert "--register must be given" in run(capsys, *gate[:4], "--register-head", found["head"])[2]
    before = (tmp_path / "r").read_bytes()
    assert run(capsys, "register", "add", "r", "a/certificate.public.json", "--sign", "k")[0] == 2
    (tmp_path / "r").write_bytes(before + before[:90])
    code, out, _ = run(capsys, "register", "show", "r", "--key", "k.pub")
    assert (code, "its last line is torn" in out) == (0, True)
    code, out, _ = run(capsys, *gate)
    assert (code, "its last line is torn" in out.replace("\n        ", " ")) == (0, True)
    (tmp_path / "r").write_bytes(before.splitlines(keepends=True)[0])
    assert run(capsys, *gate, "--register-head", found["head"])[1].count("BREACH") == 2


def test_of_several_all_are_entered_or_none(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = {name: rt.Gaussian(noise) for name, noise in (("x", 20.0), ("y", 10.0), ("z", 21.0))}
    for name, what in {**made, "first": make_ledger(2, 1.0), "second": make_ledger(2, 1.0)}.items():
        plan = {"created": "2026-01-01", "adversary": "worst-case"} if name in made else {}
        (tmp_path / f"{name}.json").write_text(rt.certify(what, subject=f"model {name}", **plan).to_json())
    (tmp_path / "torn.json").write_text("{")
    assert run(capsys, "keygen", "k")[0] == 0
    assert run(capsys, "register", "open", "r", "--name", "clinic", "--budget", "mu=0.1", "--sign", "k")[0] == 0
    before = (tmp_path / "r").read_bytes()
    for wrong, said in (
        (("x.json", "y.json"), "within the budget: mu"),
        (("x.json", "torn.json"), "torn.json"),
        (("x.json", "z.json", "x.json"), "x.json: is named twice"),
    ):
        assert said in refused(capsys, "register", "add", "r", *wrong, "--sign", "k")
        assert (tmp_path / "r").read_bytes() == before
    found = document(capsys, "register", "add", "r", "x.json", "z.json", "--sign", "k")
    assert found["releases"] == ["model x", "model z"]
    assert found == document(capsys, "register", "show", "r", "--key", "k.pub")
    assert found["spent"] == pytest.approx(math.hypot(1 / 20, 1 / 21), rel=1e-9, abs=0)
    for wrong in (("y.json", "x.json"), ("first.json", "second.json")):
        assert wrong[1] in refused(capsys, "register", "add", "r", *wrong, "--sign", "k", "--anyway")
    gate = ("gate", "x.json", "z.json", "y.json", "--policy", policy(tmp_path / "policy.yaml"), "--register", "r")
    code, out, _ = run(capsys, *gate, "--register-key", "k.pub")
    assert (code, out.count("BREACH  the release is in the register")) == (1, 1)
