"""``reticent register``, ``gate --register`` and ``certify`` of several releases, as somebody types them."""

from __future__ import annotations

import json

import pytest

from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("quick_documents")


def test_from_two_files_to_a_gate(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, noise in (("a", 20.0), ("b", 30.0)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "gaussian", "noise_multiplier": noise}))
    (tmp_path / "policy.yaml").write_text(
        "schema: reticent.policy/1\nper: record\nlimits:\n  - {measure: advantage, at_most: 0.9}\n"
        "accept_conditions: [clipped]\n"
    )
    assert run(capsys, "keygen", "k")[0] == 0
    assert run(capsys, "register", "open", "r", "--name", "clinic", "--budget", "mu=0.055", "--sign", "k")[0] == 0
    assert run(capsys, "certify", "a.json", "b.json", "--out", "both")[0] == 0
    assert run(capsys, "certify", "a.json", "--out", "a")[0] == 0
    gate = ("gate", "a/certificate.json", "--policy", "policy.yaml", "--register", "r", "--register-key", "k.pub")
    assert "not entered" in run(capsys, *gate)[1]
    code, out, _ = run(capsys, "register", "add", "r", "a/certificate.json", "--sign", "k")
    assert (code, "mu 0.05 of 0.055: 0.005 is left" in out) == (0, True)
    assert "Stop: can one person have several records?" in out
    assert "clinic: entered" in run(capsys, *gate)[1]
    (tmp_path / "replace.yaml").write_text(
        (tmp_path / "policy.yaml").read_text().replace("0.9}", "0.9, neighbouring: replace}")
    )
    code, out, _ = run(capsys, *gate[:3], "replace.yaml", *gate[4:], "--register-budget", "mu=0.055")
    assert (code, out.count("BREACH")) == (1, 1), out
    assert "BREACH  the register is of a relation of the policy: add-remove" in out
    code, _, err = run(capsys, "register", "add", "r", "both/certificate.json", "--sign", "k")
    assert (code, err.count("\n"), "within the budget" in err) == (2, 1, True)
    document = json.loads(run(capsys, "register", "show", "r", "--key", "k.pub", "--json")[1])
    assert document["releases"] == ["parameters that are declared"]
    assert run(capsys, "register", "show", "r", "--key", "k.pub", "--head", document["head"])[0] == 0
    assert run(capsys, "register", "show", "r", "--key", "k.pub", "--head", "1" * 64)[0] == 2
    stated = {"--register-head": document["head"], "--register-name": "clinic", "--register-budget": "mu=0.0550"}
    others = {"--register-head": "1" * 64, "--register-name": "klinik", "--register-budget": "mu=0.06"}
    for name, value in stated.items():
        code, out, _ = run(capsys, *gate, name, value)
        assert code == 0, out
        code, out, _ = run(capsys, *gate, name, others[name])
        assert (code, out.count("BREACH")) == (1, 1)
    assert "--register must be given" in run(capsys, *gate[:4], "--register-head", document["head"])[2]
    before = (tmp_path / "r").read_bytes()
    assert run(capsys, "register", "add", "r", "a/certificate.public.json", "--sign", "k")[0] == 2
    (tmp_path / "r").write_bytes(before + before[:90])
    code, out, _ = run(capsys, "register", "show", "r", "--key", "k.pub")
    assert (code, "its last line is torn" in out) == (0, True)
    code, out, _ = run(capsys, *gate)
    assert (code, "its last line is torn" in out.replace("\n        ", " ")) == (0, True)
    (tmp_path / "r").write_bytes(before.splitlines(keepends=True)[0])
    assert run(capsys, *gate, "--register-head", document["head"])[1].count("BREACH") == 2


@pytest.mark.parametrize("wrong", [{"--name": ""}, {"--name": "x" * 501}, {"--budget": ""}])
def test_a_register_needs_a_name_and_a_budget(capsys, tmp_path, wrong: dict[str, str]) -> None:
    given = {"--name": "clinic", "--budget": "mu=1", **wrong}
    words = [word for pair in given.items() for word in pair]
    code, out, err = run(capsys, "register", "open", str(tmp_path / "r"), *words, "--sign", str(tmp_path / "k"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{next(iter(wrong))} must be a text of 1 to 500 characters" in err
    assert not list(tmp_path.iterdir())


def test_what_goes_with_one_release_only(capsys, tmp_path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"kind": "gaussian", "noise_multiplier": 2.0}))
    code, _, err = run(capsys, "certify", str(tmp_path / "a.json"), str(tmp_path / "a.json"), "--steps", "3")
    assert (code, "several releases" in err) == (2, True)


def test_selection_on_the_command_line(capsys) -> None:
    base = ("gaussian", "--noise-multiplier", "2")
    tuned = (*base, "--selection", "geometric", "--mean-runs", "10")
    code, out, _ = run(capsys, "risk", *tuned, "--delta", "1e-6", "--json")
    (worst,) = json.loads(out)["assessments"]
    assert code == 0
    assert 3.25 < worst["epsilon_at_delta"]["1e-06"]["value"] < 3.3825
    code, out, _ = run(capsys, "calibrate", *tuned[:1], *tuned[3:], "--target", "epsilon=3@1e-6", "--json")
    assert code == 0
    assert json.loads(out)["value"] == pytest.approx(2.15, rel=0.02, abs=0)
    for wrong, said in (
        ((*base, "--mean-runs", "10"), "--mean-runs must be left out"),
        ((*base, "--selection", "geometric"), "--mean-runs must be given"),
        ((*base, "--selection", "geo", "--mean-runs", "3"), "did you mean geometric?"),
        ((*tuned, "--shape", "0"), "--shape must be left out"),
    ):
        code, _, err = run(capsys, "risk", *wrong)
        assert (code, said in err) == (2, True), err
