"""``reticent calibrate`` and ``reticent compare``: what scripts rely on, and what is searched by which option."""

from __future__ import annotations

import pytest

from tests.cli import calling
from tests.cli.calling import CONFIG, run


def document(capsys: pytest.CaptureFixture[str], words: str, *more: object) -> dict:
    return calling.document(capsys, *words.split(), *more)


STEPS = "calibrate dpsgd --target advantage=0.1 --sample-rate 0.01 --steps 1000"


def test_without_noise_the_answer_is_what_sampling_hides(capsys) -> None:
    """1 - (1-p)^T <= 0.1."""
    common = "calibrate dpsgd --target advantage=0.1 --noise-multiplier 0"
    assert document(capsys, f"{common} --unknown steps --sample-rate 0.01")["value"] == 10
    rate = document(capsys, f"{common} --unknown sample-rate --steps 100")["value"]
    exact = 1 - 0.9**0.01
    assert exact * (1 - 1e-4) <= rate <= exact


def test_an_answer_names_its_attacker_its_method_and_its_relation(capsys) -> None:
    closed = "calibrate dpsgd --target bayes-security=0.98 --adversary membership --method clt --neighbouring replace"
    answer = document(capsys, f"{closed} --sample-rate 0.00035 --steps 5000")
    assert (answer["adversary"], answer["method"], answer["neighbouring"]) == ("membership", "clt", "replace")
    assert answer["worst_case"]["bayes_security"]["value"] >= 0.98
    for who, how in (("worst-case", "exact"), ("relaxed", "exact"), ("membership", "clt")):
        assert document(capsys, f"{STEPS} --method clt --adversary {who}")["method"] == how


def test_the_worst_case_stands_beside_a_weaker_attacker(capsys) -> None:
    answer = document(capsys, "calibrate gaussian --target epsilon=1@1e-05 --adversary relaxed")
    assert answer["value"] == pytest.approx(1 / 0.42570905, rel=1e-4, abs=0)
    assert answer["worst_case"]["achieved"] == pytest.approx(1.666, rel=1e-3, abs=0)


@pytest.mark.slow
def test_compare_lists_every_adversary(capsys) -> None:
    who = " ".join(f"--adversary {name}" for name in ("worst-case", "relaxed", "mixed", "attribute"))
    answer = document(capsys, f"compare gaussian --target epsilon=1@1e-05 --dimension 100 {who}")
    rows = {row["adversary"]: row for row in answer["rows"]}
    assert rows["worst-case"]["noise_ratio"] == 1.0
    assert rows["relaxed"]["noise_ratio"] == pytest.approx(0.148, abs=1e-3)
    assert rows["relaxed"]["worst_case_achieved"] == pytest.approx(8.87, abs=0.02)
    assert rows["relaxed"]["noise_ratio"] < rows["mixed"]["noise_ratio"] < 1.0
    assert "gradient_change" in answer["skipped"]["attribute"]


def test_compare_reads_sampling_and_steps_of_a_finished_run(capsys, tmp_path) -> None:
    """The noise of the run does not matter: the answer is that of a run with its rate and steps."""
    (tmp_path / "small.yaml").write_text(CONFIG)
    assert run(capsys, "train", tmp_path / "small.yaml", "--out", tmp_path / "run")[0] == 0
    who = "--target epsilon=1@1e-05 --adversary worst-case --adversary membership"
    answer = document(capsys, f"compare run {tmp_path / 'run'} {who}")
    ran = answer["rows"][0]["mechanism"]
    assert (ran["steps"], ran["noise_multiplier"]) == (5, answer["rows"][0]["value"])
    same = f"--sample-rate {ran['sample_rate']!r} --steps 5 --dimension {ran['num_parameters']}"
    expected = document(capsys, f"compare dpsgd {who} {same}")
    assert [row["adversary"] for row in answer["rows"]] == ["worst-case", "membership"]
    found, wanted = ([{**row, "mechanism": None} for row in one["rows"]] for one in (answer, expected))
    assert found == wanted


def test_selection_is_asked_of_every_release(capsys) -> None:
    tuned = "gaussian --selection geometric --mean-runs 10"
    (worst,) = document(capsys, f"risk {tuned} --noise-multiplier 2 --delta 1e-6")["assessments"]
    assert 3.25 < worst["epsilon_at_delta"]["1e-06"]["value"] < 3.3825
    answer = document(capsys, f"calibrate {tuned} --target epsilon=3@1e-6")
    assert answer["value"] == pytest.approx(2.15, rel=0.02, abs=0)
