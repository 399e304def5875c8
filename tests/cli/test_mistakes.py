"""What is mistyped is answered with what was probably meant, and what is ignored is said."""

from __future__ import annotations

import pytest

from reticent.kernel.text import digits
from tests.cli.calling import run

RUN = ("--noise-multiplier", "2", "--sample-rate", "0.1", "--steps", "3")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("rsk",), "did you mean risk?"),
        (("verfy", "x.json"), "did you mean verify?"),
        (("risk", "dspgd"), "did you mean dpsgd?"),
        (("calibrate", "gausian"), "did you mean gaussian?"),
        (("risk", "dpsgd", "--noise-multipler", "1"), "did you mean --noise-multiplier?"),
        (("risk", "dpsgd", *RUN, "--epsilon-at", "1"), "no option --epsilon-at (did you mean --epsilon?)"),
        (("calibrate", "dpsgd", "--epsilon-at", "1"), "no option --epsilon-at\n"),
        (("risk", "dpsgd", "--sigma", "1"), "Here it is --noise-multiplier"),
        (("risk", "dpsgd", "-h"), "Here it is --help"),
        (("risk", "dpsgd", *RUN, "--adversary", "relaxd"), "did you mean relaxed?"),
        (("risk", "dpsgd", *RUN, "--neighbouring", "repace"), "did you mean replace?"),
        (("risk", "dpsgd", *RUN, "--method", "exct"), "did you mean exact?"),
        (("risk", "dpsgd", *RUN, "--sampler", "poison"), "did you mean poisson?"),
        (("risk", "dpsgd", *RUN, "--sampler", "epsilon="), "shuffled, cyclic, got 'epsilon='"),
        (("calibrate", "dpsgd", "--target", "mu=1", "--unknown", "noise"), "did you mean noise-multiplier?"),
        (("calibrate", "dpsgd", "--target", "tpr"), "tpr=V@FPR, ppv=V@PRIOR,FPR, epsilon=V@DELTA"),
        (("plan-audit", "--claimed-mu", "1", "--true-mu", "2", "--unit", "canary"), "did you mean canaries?"),
        (("certify", "dpsdg", "--noise-multiplier", "1"), "did you mean dpsgd?"),
        (("risk", "dpsgd", *RUN[:-2], "--steps", "1.5"), "--steps must be a whole number, got '1.5'"),
        (("risk", "dpsgd", *RUN[:4], "--steps", "1" + 20 * "0"), "--steps must be a whole number from 1 to 1e+15"),
        (("risk", "gaussian", "--noise-multiplier", "2", "--releases", "1" + 20 * "0"), "from 1 to 1e+15"),
        (("risk", "dpsgd", *RUN, "--fpr", "x"), "--fpr must be a number, got 'x'"),
        (("train", "nothing.yaml"), "nothing.yaml: cannot be read"),
        (
            ("train", "configs/demo.yaml", "--out", "no/run", "--checkpoint", "."),
            "checkpoint must be the name of a file, got '.'",
        ),
        (("train", "--checkpoint-every", "0"), "--checkpoint-every must be a whole number >= 1, got 0"),
        (("risk", "dpsgd", *RUN, "--epsilon", "-1"), "--epsilon must be a finite number >= 0, got -1.0"),
        (("certify", "dpsgd", *RUN, "--language", "it"), "--language must be one of en, de, fr"),
        (("certify", "dpsgd", "ledger.json"), "the word dpsgd is for parameters alone"),
        (("calibrate", "dpsgd", "--target", "epsilon=3,1e-5"), "write epsilon=3@1e-5"),
        (("certify", "dpsgd", *RUN, "--expires", "2020-01-01"), "--expires must be a date in the future"),
        (("risk", "dpsgd", *RUN, "--epochs", "2"), "--epochs must be left out where steps are given\n"),
    ],
)
def test_the_nearest_is_asked_about(words: tuple[str, ...], meant: str, capsys) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert meant in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        (("verify",), "", "there is empty"),
        (("verify",), None, "there: a folder, not a plain file"),
        (("verify",), '{"schema": "x/1"}', "there: its schema is 'x/1', expected reticent.certificate/4"),
        (("gate", "x.json", "--policy"), "a: 1", "there: it has no schema, expected reticent.policy/1"),
        (("certify", "dpsgd", *RUN, "--sign"), "-----BEGIN PUBLIC KEY-----", "there holds a public key"),
        (("risk", "ledger"), '{"kind": "dpsg"}', "there: mechanism: kind must be one of gaussian, laplace"),
        (("risk", "ledger"), '{"kind": "gaussian"}', "there: mechanism: noise_multiplier must be given"),
        (("verify",), "hello", "there is not a certificate: neither its page nor its JSON"),
        (("gate", "x.json", "--policy"), "", "there: must be a mapping of keys to values"),
        (("audit",), None, "there is neither the folder of a run (ledger.json)"),
        (("plan-audit", "--claimed-mu", "1"), None, "--true-mu must be given"),
        (("keygen",), None, "KEY must be given"),
        (("certify", "dpsgd", "--noise-multiplier", "1"), None, "--batch-size and --dataset-size"),
    ],
)
def test_a_wrong_file_and_what_is_missing_are_named(words, text, told, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    if text is None:
        (tmp_path / "there").mkdir()
    else:
        (tmp_path / "there").write_text(text)
    code, out, err = run(capsys, *words, *(["there"] if "there" in told else []))
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("who", "noted"), [((), True), (("--adversary", "relaxed"), False)])
def test_a_dimension_that_nobody_looks_at_is_noted(who: tuple[str, ...], noted: bool, capsys) -> None:
    code, out, err = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--dimension", "30", *who)
    assert code == 0
    assert ("note: --dimension 30 changes no number here" in err) == noted
    assert "note:" not in out


def test_delta_at_an_epsilon_is_shown_where_it_was_asked_for(capsys) -> None:
    from reticent.kernel.adversaries import WorstCase
    from reticent.kernel.mechanisms import Gaussian
    from reticent.kernel.pairs import Neighbouring
    from reticent.kernel.risk import delta_at_epsilon

    curve = WorstCase().assess(Gaussian(2.0), Neighbouring.ADD_REMOVE).curve
    out = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--epsilon", "0.5")[1]
    assert "@0.5" in out
    assert digits(delta_at_epsilon(curve, 0.5), up=True) in out
    assert "@0.5" not in run(capsys, "risk", "gaussian", "--noise-multiplier", "2")[1]
