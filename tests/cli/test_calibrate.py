"""The contract of ``reticent calibrate`` and ``reticent compare`` that scripts rely on."""

from __future__ import annotations

import json

import pytest

from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD
from tests.cli.calling import run


def document(capsys, *arguments: str) -> dict:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


DPSGD_RUN = ("--sample-rate", "0.01", "--steps", "1000")


def test_json_has_the_promised_shape(capsys) -> None:
    answer = document(capsys, "calibrate", "dpsgd", "--target", "advantage=0.1", *DPSGD_RUN)
    assert answer["schema"] == "reticent.calibration/2"
    assert {"unknown", "value", "target", "achieved", "adversary", "worst_case", "evaluations"} <= set(answer)
    assert (answer["unknown"], answer["target"]) == ("noise-multiplier", "advantage=0.1")
    assert answer["adversary"] == "worst-case"
    assert 0.0999 <= answer["achieved"] <= 0.1
    assert answer["worst_case"]["achieved"] == pytest.approx(answer["achieved"], rel=0, abs=1e-6)
    worst = answer["worst_case"]
    assert worst["achieved"] <= 0.1
    assert worst["advantage"]["value"] == pytest.approx(worst["achieved"], rel=1e-9, abs=0)
    again = WorstCase().assess(DPSGD(answer["value"], 0.01, 1000))
    assert float(again.curve.delta(0.0)) <= 0.1


@pytest.mark.parametrize(
    "target",
    [
        "bayes-security=0.9",
        "success=0.6@0.5",
        "tpr=0.01@0.001",
        "ppv=0.2@0.1,0.01",
        "epsilon=1@1e-05",
        "recovered=0.1@0.05",
        "secret=0.01@13.3,10",
    ],
)
def test_every_target_can_be_typed(capsys, target: str) -> None:
    answer = document(capsys, "calibrate", "gaussian", "--target", target, "--releases", "3")
    assert answer["target"] == target
    wanted = float(target.split("=")[1].split("@")[0])
    assert answer["achieved"] >= wanted if "bayes" in target else answer["achieved"] <= wanted


def test_other_unknowns(capsys) -> None:
    steps = ("--noise-multiplier", "1.5", "--steps", "2000")
    common = ("calibrate", "dpsgd", "--target", "advantage=0.1")
    rate = document(capsys, *common, "--unknown", "sample-rate", *steps)
    assert rate["achieved"] <= 0.1
    batch = document(capsys, *common, "--unknown", "batch-size", "--dataset-size", "50000", *steps)
    assert batch["value"] == int(rate["value"] * 50000)
    longest = document(
        capsys, *common, "--unknown", "steps", "--noise-multiplier", "1.5", "--sample-rate", str(rate["value"])
    )
    assert longest["value"] == pytest.approx(2000, abs=2)


def test_closed_form_under_replacement(capsys) -> None:
    answer = document(
        capsys,
        *("calibrate", "dpsgd", "--target", "bayes-security=0.98", "--adversary", "membership", "--method", "clt"),
        *("--neighbouring", "replace", "--sample-rate", "0.00035", "--steps", "5000"),
    )
    assert (answer["adversary"], answer["method"], answer["neighbouring"]) == ("membership", "clt", "replace")
    assert answer["worst_case"]["bayes_security"]["value"] >= 0.98


def test_relaxed_shows_the_worst_case_beside_it(capsys) -> None:
    answer = document(capsys, "calibrate", "gaussian", "--target", "epsilon=1@1e-05", "--adversary", "relaxed")
    assert answer["value"] == pytest.approx(1 / 0.42570905, rel=1e-4, abs=0)
    assert answer["worst_case"]["achieved"] == pytest.approx(1.666, rel=1e-3, abs=0)


@pytest.mark.slow
def test_compare_lists_every_adversary(capsys) -> None:
    who = [x for name in ("worst-case", "relaxed", "mixed", "attribute") for x in ("--adversary", name)]
    answer = document(capsys, "compare", "gaussian", "--target", "epsilon=1@1e-05", "--dimension", "100", *who)
    assert answer["schema"] == "reticent.comparison/1"
    rows = {row["adversary"]: row for row in answer["rows"]}
    assert rows["worst-case"]["noise_ratio"] == 1.0
    assert rows["relaxed"]["noise_ratio"] == pytest.approx(0.148, abs=1e-3)
    assert rows["relaxed"]["worst_case_achieved"] == pytest.approx(8.87, abs=0.02)
    assert rows["relaxed"]["noise_ratio"] < rows["mixed"]["noise_ratio"] < 1.0
    assert "gradient_change" in answer["skipped"]["attribute"]


CONFIG = """
data: {name: breast-cancer}
model: {kind: logistic}
noise_multiplier: 2.0
max_grad_norm: 1.0
batch_size: 64
steps: 6
learning_rate: 0.5
randomness: fresh
"""


def test_compare_reads_sampling_and_steps_of_a_finished_run(capsys, tmp_path) -> None:
    """The noise of the run does not matter: the answer is that of a run with its rate and steps."""
    (tmp_path / "small.yaml").write_text(CONFIG)
    assert run(capsys, "train", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "run"))[0] == 0
    who = ("--target", "epsilon=1@1e-05", "--adversary", "worst-case", "--adversary", "membership")
    answer = document(capsys, "compare", "run", str(tmp_path / "run"), *who)
    ran = answer["rows"][0]["mechanism"]
    assert (ran["steps"], ran["noise_multiplier"]) == (6, answer["rows"][0]["value"])
    same = ("--sample-rate", repr(ran["sample_rate"]), "--steps", "6", "--dimension", str(ran["num_parameters"]))
    expected = document(capsys, "compare", "dpsgd", *who, *same)
    assert [row["adversary"] for row in answer["rows"]] == ["worst-case", "membership"]
    found, wanted = ([{**row, "mechanism": None} for row in one["rows"]] for one in (answer, expected))
    assert found == wanted
    code, _, err = run(capsys, "compare", "run", str(tmp_path / "nowhere"), *who)
    assert code == 2
    assert err.count("\n") == 1


def test_the_method_shown_is_the_one_that_answered(capsys) -> None:
    common = ("--target", "advantage=0.1", *DPSGD_RUN, "--method", "clt")
    for who, how in (("worst-case", "exact"), ("relaxed", "exact"), ("membership", "clt")):
        assert document(capsys, "calibrate", "dpsgd", *common, "--adversary", who)["method"] == how


def test_without_noise_the_answer_is_what_sampling_hides(capsys) -> None:
    """1 - (1-p)^T <= 0.1."""
    common = ("calibrate", "dpsgd", "--target", "advantage=0.1", "--noise-multiplier", "0")
    assert document(capsys, *common, "--unknown", "steps", "--sample-rate", "0.01")["value"] == 10
    rate = document(capsys, *common, "--unknown", "sample-rate", "--steps", "100")["value"]
    exact = 1 - 0.9**0.01
    assert exact * (1 - 1e-4) <= rate <= exact


def test_people_get_a_few_lines(capsys) -> None:
    code, out, _ = run(capsys, "calibrate", "laplace", "--target", "advantage=0.1")
    assert code == 0
    assert out.startswith("noise multiplier: 4.74")
    assert "worst-case (add-remove, exact, bound) then has advantage" in out
    code, out, _ = run(capsys, "compare", "laplace", "--target", "advantage=0.1", "--adversary", "worst-case")
    assert code == 0
    assert "worst-case" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "advantage", *DPSGD_RUN), "--target must be one of"),
        (("--target", "tpr=0.1", *DPSGD_RUN), "write tpr=0.1@0.01"),
        (("--target", "epsilon=3", *DPSGD_RUN), "write epsilon=3@1e-5"),
        (("--target", "mu=1", "--epochs", "3", *DPSGD_RUN), "--epochs must be left out where steps are given"),
        (("--target", "mu=1", "--epochs", "3"), "--epochs must be given together with the batch size"),
        (("--sigma", "1"), "Here it is --noise-multiplier"),
        (("--target", "advantage=many", *DPSGD_RUN), "--target"),
        (("--target", "advantage=1.5", *DPSGD_RUN), "advantage"),
        (("--target", "advantage=0.1", "--steps", "10"), "--sample-rate must be given"),
        (("--target", "advantage=0.1", "--unknown", "clip", *DPSGD_RUN), "--unknown must be one of"),
        (("--target", "advantage=0.1", "--adversary", "all", *DPSGD_RUN), "--adversary"),
        (("--target", "advantage=0.1", "--unknown", "batch-size", "--steps", "9"), "--noise-multiplier must be given"),
        (
            ("--target", "recovered=0.1@0.01", "--adversary", "relaxed", *DPSGD_RUN),
            "relaxed bounds nobody who guesses a secret or recovers a record",
        ),
        (
            ("--target", "epsilon=0.1@1e-5", "--unknown", "steps", "--noise-multiplier", "0.5", "--sample-rate", "1"),
            "out of reach: the closest is steps 1",
        ),
        (("--target", "success=0.4@0.5", *DPSGD_RUN), "a number above 0.5"),
        (("--target", "epsilon=1@2", *DPSGD_RUN), "given with delta as"),
        (("--target", "advantage=0.1", "--noise-multiplier", "1", *DPSGD_RUN), "--noise-multiplier must be left out"),
        (("--target", "mu=1", "--unknown", "steps", "--noise-multiplier", "1", *DPSGD_RUN), "--steps must be left out"),
        (("--target", "mu=1", "--sample-rate", "1.5", "--steps", "3"), "--sample-rate must be a number in (0, 1]"),
        (("--target", "mu=1", "--sample-rate", "x", "--steps", "3"), "--sample-rate must be a number"),
        (("--target", "mu=1", "--sample-rate", "0.1", "--steps", "1.5"), "--steps must be a whole number"),
        (("--target", "mu=1", "--steps", "3", "--batch-size", "6", "--dataset-size", "0"), "--dataset-size must be"),
        (("--target", "mu=1", "--steps", "3", "--batch-size", "6", "--dataset-size", "5"), "at most the dataset size"),
        (
            ("--target", "mu=1", "--batch-size", "6", "--dataset-size", "50", *DPSGD_RUN),
            "batch over dataset size, 0.12",
        ),
        (("--target", "mu=1", "--dimension", "0", *DPSGD_RUN), "--dimension must be"),
        (("--target", "mu=1", "--sampler", "random", *DPSGD_RUN), "--sampler must be one of"),
        (("--target", "mu=1", "--neighbouring", "both", *DPSGD_RUN), "--neighbouring must be one of"),
        (("--target", "mu=1", "--method", "magic", *DPSGD_RUN), "--method must be one of"),
        (("--target", "mu=1", "--adversary", "attribute", *DPSGD_RUN), "--gradient-change must be given"),
        (
            ("--target", "mu=1", "--adversary", "mixed", "--relaxed-probability", "2", *DPSGD_RUN),
            "--relaxed-probability must be",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys, arguments: tuple, message: str) -> None:
    code, out, err = run(capsys, "calibrate", "dpsgd", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gaussian", "--releases", "0"), "--releases must be a whole number"),
        (("gaussian", "--dimension", "0"), "--dimension must be a whole number"),
        (("gaussian", "--unknown", "sample-rate", "--noise-multiplier", "1"), "one of noise-multiplier, releases"),
        (("laplace", "--unknown", "releases", "--noise-multiplier", "9", "--releases", "2"), "must be left out"),
        (("laplace", "--adversary", "membership", "--method", "clt"), "use method exact"),
    ],
)
def test_bad_releases_are_one_line_and_code_2(capsys, arguments: tuple, message: str) -> None:
    code, out, err = run(capsys, "calibrate", arguments[0], "--target", "advantage=0.1", *arguments[1:])
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_files_that_are_no_release_end_in_one_line(capsys, tmp_path) -> None:
    """`risk ledger` and `calibrate ledger` read what strangers wrote."""
    bad = {
        "no JSON": "{",
        "nothing known": "{}",
        "a list": "[]",
        "unknown kind": '{"kind": "sorcery"}',
        "no parts": '{"kind": "ledger", "parts": []}',
        "nested": '{"kind": "ledger", "parts": [{"kind": "ledger", "parts": []}]}',
        "unknown field": '{"kind": "gaussian", "noise_multiplier": 1, "sigma": 2}',
        "negative": '{"kind": "gaussian", "noise_multiplier": -1}',
        "unknown schema": '{"schema": "reticent.nothing/1"}',
        "no event": '{"class_name": "Sorcery"}',
    }
    file = tmp_path / "release.json"
    for name, text in bad.items():
        file.write_text(text)
        for verb in (("risk", "ledger", str(file)), ("calibrate", "ledger", str(file), "--target", "advantage=0.1")):
            code, out, err = run(capsys, *verb)
            assert (code, out, err.count("\n")) == (2, "", 1), name
            assert str(file) in err, name
    code, _, err = run(capsys, "risk", "ledger", str(tmp_path))
    assert (code, err.count("\n")) == (2, 1)
    file.write_text('{"kind": "gaussian", "noise_multiplier": 1, "releases": 2}')
    code, _, err = run(capsys, "calibrate", "ledger", str(file), "--target", "eps=3")
    assert code == 2
    assert "did you mean epsilon=3@1e-5?" in err
    answer = document(capsys, "calibrate", "ledger", str(file), "--target", "mu=0.5")
    assert answer["value"] == pytest.approx(2.0**0.5 / 0.5, rel=1e-4, abs=0)
    assert "warnings" not in answer
