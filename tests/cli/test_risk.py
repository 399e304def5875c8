"""The contract of ``reticent risk`` that scripts rely on."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys

import pytest
from scipy.special import erf

from tests.cli.calling import run

NUMBER = {"lower", "value", "upper"}


def risk(capsys, *arguments: str) -> dict:
    code, out, err = run(capsys, "risk", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


def test_json_has_the_promised_shape(capsys) -> None:
    document = risk(capsys, "gaussian", "--noise-multiplier", "2", "--fpr", "0.01", "--delta", "1e-5", "--epsilon", "1")
    assert document["schema"] == "reticent.risk/2"
    assert document["mechanism"]["kind"] == "gaussian"
    (worst,) = document["assessments"]
    assert worst["adversary"] == "worst-case"
    assert worst["neighbouring"] == "add-remove"
    assert (worst["method"], worst["claim"]) == ("exact", "bound")
    for name in ("advantage", "bayes_security", "mu"):
        assert set(worst[name]) == NUMBER
    assert set(worst["tpr_at_fpr"]) == {"0.01"}
    assert set(worst["epsilon_at_delta"]) == {"1e-05"}
    assert set(worst["delta_at_epsilon"]) == {"1.0"}
    assert worst["theorems"]
    assert isinstance(worst["notes"], list)
    assert worst["advantage"]["value"] == pytest.approx(erf(0.25 / math.sqrt(2)), rel=1e-12, abs=0)
    assert worst["mu"]["value"] == pytest.approx(0.5, rel=1e-12, abs=0)


def test_the_table_has_a_column_for_each_prior(capsys) -> None:
    _, out, _ = run(capsys, "risk", "laplace", "--noise-multiplier", "1", "--prior", "0.1", "--prior", "0.5")
    heading = out.partition("worst-case")[0]
    assert "(90% blind)" in heading
    assert "(50% blind)" in heading


def test_the_worth_of_an_accusation_is_shown_where_a_prior_is_asked_for(capsys) -> None:
    arguments = ["gaussian", "--noise-multiplier", "2", "--fpr", "0.01", "--fpr", "0"]
    worst = risk(capsys, *arguments, "--prior", "0.1")["assessments"][0]
    assert set(worst["ppv_at_prior_and_fpr"]["0.1"]) == {"0.01"}, "without false alarms there is no number"
    tpr = worst["tpr_at_fpr"]["0.01"]["value"]
    expected = 0.1 * tpr / (0.1 * tpr + 0.9 * 0.01)
    assert worst["ppv_at_prior_and_fpr"]["0.1"]["0.01"]["value"] == pytest.approx(expected, rel=1e-12, abs=0)
    for more, shown in (((), False), (("--prior", "0.1"), True)):
        _, out, _ = run(capsys, "risk", *arguments, *more)
        assert ("accused rightly" in out) is ("if people are independent of each other" in out) is shown


def test_a_secret_is_stated_where_it_is_asked_for_with_what_it_needs(capsys) -> None:
    arguments = ["gaussian", "--noise-multiplier", "2", "--adversary", "relaxed", "--secret-bits", "10"]
    document = risk(capsys, *arguments, "--guesses", "3", "--guesses", "5")
    relaxed, worst = document["assessments"]
    assert relaxed["secret_at_bits_and_guesses"] == {}
    assert set(worst["secret_at_bits_and_guesses"]["10.0"]) == {"3.0", "5.0"}
    needed = worst["also_needed"]["secret_at_bits_and_guesses"]
    assert {(one["key"], one["status"]) for one in needed} == {
        ("secret-entropy", "declared"),
        ("secret-nowhere-else", "declared"),
    }
    assert {one["key"] for one in needed} <= set(document["conditions"])
    _, out, _ = run(capsys, "risk", *arguments)
    assert "a secret of 10 bits in 1 guess" in out
    code, _, err = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--guesses", "3")
    assert code == 2
    assert "given with --secret-bits" in err


def test_priors_are_repeatable_and_keyed_by_repr(capsys) -> None:
    document = risk(capsys, "laplace", "--noise-multiplier", "1", "--prior", "0.1", "--prior", "0.5")
    assert set(document["assessments"][0]["success_at_prior"]) == {"0.1", "0.5"}


def test_the_worst_case_comes_along(capsys) -> None:
    document = risk(capsys, "gaussian", "--noise-multiplier", "2", "--adversary", "relaxed", "--dimension", "10")
    assert [a["adversary"] for a in document["assessments"]] == ["relaxed", "worst-case"]


def test_all_answers_what_can_be_answered_and_names_the_rest(capsys) -> None:
    arguments = ["dpsgd", "--noise-multiplier", "1.1", "--sample-rate", "0.01", "--steps", "500", "--adversary", "all"]
    document = risk(capsys, *arguments)
    names = {a["adversary"] for a in document["assessments"]}
    assert {"worst-case", "relaxed", "membership", "mixed"} <= names
    assert set(document["skipped"]) == {"attribute", "membership-game"}
    more = ["--dimension", "1000", "--batch-size", "64", "--gradient-change", "0.2"]
    document = risk(capsys, *arguments, *more)
    assert document["skipped"] == {}
    assert {a["adversary"] for a in document["assessments"]} == names | {"attribute", "membership-game"}


def test_reference_values_of_the_dp_sgd_worst_case(capsys) -> None:
    # c1 of the performance reference, add/remove.
    document = risk(
        capsys, "dpsgd", "--noise-multiplier", "1", "--sample-rate", "1e-3", "--steps", "10000", "--fpr", "0.01"
    )
    (worst,) = document["assessments"]
    assert worst["advantage"]["value"] == pytest.approx(0.0521389909, rel=0, abs=1e-8)
    assert worst["advantage"]["lower"] <= 0.0521389910
    assert worst["advantage"]["upper"] >= 0.0521389908
    assert worst["epsilon_at_delta"]["1e-05"]["value"] == pytest.approx(0.475761, rel=1e-5, abs=0)
    assert 1 - worst["tpr_at_fpr"]["0.01"]["value"] == pytest.approx(0.9858255, rel=1e-6, abs=0)


def test_no_noise_is_null_not_infinity(capsys) -> None:
    document = risk(capsys, "gaussian", "--noise-multiplier", "0")
    (worst,) = document["assessments"]
    assert worst["advantage"]["value"] == 1.0
    assert worst["epsilon_at_delta"]["1e-05"]["value"] is None


DPSGD = ["risk", "dpsgd", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "100"]
BAD = {
    "negative noise": (["risk", "gaussian", "--noise-multiplier", "-1"], "--noise-multiplier", "-1"),
    "noise is no number": (["risk", "gaussian", "--noise-multiplier", "nan"], "--noise-multiplier", "nan"),
    "infinite noise": (["risk", "laplace", "--noise-multiplier", "inf"], "--noise-multiplier", "inf"),
    "noise is a word": (["risk", "gaussian", "--noise-multiplier", "much"], "--noise-multiplier", "much"),
    "rate above 1": ([*DPSGD[:5], "1.5", *DPSGD[6:]], "--sample-rate", "1.5"),
    "rate of zero": ([*DPSGD[:5], "0", *DPSGD[6:]], "--sample-rate", "0"),
    "zero steps": ([*DPSGD[:7], "0"], "--steps", "0"),
    "fractional steps": ([*DPSGD[:7], "1.5"], "--steps", "1.5"),
    "unknown adversary": ([*DPSGD, "--adversary", "nosy"], "--adversary", "nosy"),
    "unknown relation": ([*DPSGD, "--neighbouring", "near"], "--neighbouring", "near"),
    "unknown method": ([*DPSGD, "--method", "magic"], "--method", "magic"),
    "unknown sampler": ([*DPSGD, "--sampler", "dice"], "--sampler", "dice"),
    "fpr above 1": ([*DPSGD, "--fpr", "2"], "--fpr", "2"),
    "fpr nan": ([*DPSGD, "--fpr", "nan"], "--fpr", "nan"),
    "delta of zero": ([*DPSGD, "--delta", "0"], "--delta", "0"),
    "infinite epsilon": ([*DPSGD, "--epsilon", "inf"], "--epsilon", "inf"),
    "prior of one": ([*DPSGD, "--prior", "1"], "--prior", "1"),
    "negative gradient change": (
        [*DPSGD, "--adversary", "attribute", "--gradient-change", "-1"],
        "--gradient-change",
        "-1",
    ),
    "no gradient change": ([*DPSGD, "--adversary", "attribute"], "--gradient-change", "given"),
    "no batch size": ([*DPSGD, "--adversary", "membership-game", "--dimension", "5"], "--batch-size", "known"),
    "zero dimension": ([*DPSGD, "--dimension", "0"], "--", "0"),
    "negative clip norm": ([*DPSGD, "--max-grad-norm", "-2"], "--max-grad-norm", "-2"),
    "mixing above 1": ([*DPSGD, "--adversary", "mixed", "--relaxed-probability", "3"], "--relaxed-probability", "3"),
    "zero susceptibility": (
        [*DPSGD, "--adversary", "membership-game", "--susceptibility", "0"],
        "--susceptibility",
        "0",
    ),
    "zero releases": (["risk", "gaussian", "--noise-multiplier", "1", "--releases", "0"], "--releases", "0"),
    "missing option": (["risk", "gaussian"], "--noise-multiplier", ""),
    "unknown option": ([*DPSGD, "--nois", "1"], "--nois", ""),
    "closed form of a gaussian": (
        ["risk", "gaussian", "--noise-multiplier", "1", "--adversary", "membership", "--method", "clt"],
        "clt",
        "",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, case: str) -> None:
    arguments, option, value = BAD[case]
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert option in err
    assert value in err
    assert "Traceback" not in err


def test_the_installed_command_runs_without_torch() -> None:
    script = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'opacus', 'sklearn', 'dash'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from reticent.cli import main; main(['risk', 'gaussian', '--noise-multiplier', '1', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "reticent.risk/2"


def test_a_table_for_people(capsys) -> None:
    words = ("risk", "gaussian", "--noise-multiplier", "2", "--adversary", "relaxed")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "worst-case" in out
    assert "log 2" not in out  # notes on request
    assert "log 2" in run(capsys, *words, "--full")[1]


def test_the_first_table_needs_no_more_than_epsilon(capsys) -> None:
    """Columns in words, shares in percent; what makes a claim conditional is said, other conditions are counted."""
    words = (
        "risk",
        "dpsgd",
        "--noise-multiplier",
        "2",
        "--sample-rate",
        "0.1",
        "--steps",
        "9",
        "--adversary",
        "relaxed",
    )
    _, out, _ = run(capsys, *words)
    _, full, _ = run(capsys, *words, "--full")
    rows = {line.split()[0]: line.split() for line in out.splitlines() if "%" in line}
    worst = risk(capsys, *words[1:])["assessments"][1]
    for cell, number in zip(
        rows["worst-case"][2:],
        (worst["epsilon_at_delta"]["1e-05"], worst["success_at_prior"]["0.5"], *worst["tpr_at_fpr"].values()),
        strict=True,
    ):
        stated = float(cell.rstrip("%")) / (100 if "%" in cell else 1)
        assert number["value"] <= stated * (1 + 1e-11)
        assert stated == pytest.approx(number["value"], rel=1e-3, abs=0)
    assert " mu" not in out
    assert "security" not in out
    assert "assumed (relaxed): A record moves every step along one direction" in " ".join(out.split())
    listed = len(re.findall(r"^(?:assumed|declared|checked)", full, re.MULTILINE))
    assert f"rest on {listed - 1} more conditions" in out


def test_an_estimate_says_why_it_is_none_without_being_asked(capsys) -> None:
    words = ("--adversary", "membership", "--neighbouring", "replace", "--method", "published")
    _, out, _ = run(capsys, *DPSGD, *words)
    assert "no bound (CHERUBIN2024:B1)" in " ".join(out.split())


def test_a_terminal_of_eighty_columns_shows_every_digit_and_the_harmonic_rule(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ["--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "1", "--batch-size", "400"]
    who = ("--adversary", "membership", "--adversary", "membership-game")
    code, out, _ = run(capsys, "risk", "dpsgd", *who, "--dimension", "650", *arguments, "--full")
    assert code == 0
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert " advantage " in out  # whole: eighty columns have room for the word
    assert "Harmonic rule" in " ".join(out.split())
