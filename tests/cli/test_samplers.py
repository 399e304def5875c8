"""Every sampler from the command line: numbers, certificates that verify, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import run

RUN = ("dpsgd", "--noise-multiplier", "2", "--batch-size", "10", "--dataset-size", "105", "--epochs", "2")


def advantage(capsys, *more: str) -> float:
    code, out, _ = run(capsys, "risk", *RUN, "--adversary", "worst-case", "--json", *more)
    assert code == 0
    return float(json.loads(out)["assessments"][0]["advantage"]["upper"])


def test_numbers(capsys) -> None:
    found = {
        name: advantage(capsys, "--sampler", name, *more)
        for name, more in {
            "random-allocation": (),
            "allocated-once": (),
            "shuffled": (),
            "truncated-poisson": ("--max-batch-size", "14"),
        }.items()
    }
    assert found["random-allocation"] < found["allocated-once"] < found["shuffled"]
    assert found["random-allocation"] < found["truncated-poisson"] < found["shuffled"]


@pytest.mark.usefixtures("quick_documents")
def test_a_certificate_of_random_allocation_verifies(tmp_path: Path, capsys) -> None:
    code, _, err = run(capsys, "certify", *RUN, "--sampler", "random-allocation", "--out", tmp_path / "c")
    assert code == 0, err
    document = tmp_path / "c" / "certificate.public.json"
    assert run(capsys, "verify", document)[0] == 0
    text = document.read_text(encoding="utf-8")
    assert '"random-allocation"' in text
    document.write_text(text.replace('"random-allocation"', '"allocated-once"'), encoding="utf-8")
    assert run(capsys, "verify", document)[0] in (1, 2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--sampler", "truncated-poisson"), "max-batch-size"),
        (("--sampler", "random"), "random-allocation"),
        (("--sampler", "shuffled", "--uses-per-epoch", "2"), "uses-per-epoch"),
    ],
)
def test_mistakes(capsys, more: tuple[str, ...], said: str) -> None:
    code, out, err = run(capsys, "risk", *RUN, *more)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_the_least_noise_of_each_sampler(capsys) -> None:
    asked = ("samplers", "--target", "advantage=0.1", "--dataset-size", "1000", "--epochs", "2")
    who = ("--sampler", "poisson", "--sampler", "cyclic")
    code, out, _ = run(capsys, "calibrate", *asked, *who, "--batch-size", "50..100", "--json")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "reticent.samplers/1")
    assert [(row["sampler"], row["batch_size"]) for row in document["rows"]] == [
        ("poisson", 100),
        ("poisson", 50),
        ("cyclic", 100),
        ("cyclic", 50),
    ]
    code, out, _ = run(capsys, "calibrate", *asked, *who, "--memory", "100")
    assert code == 0
    assert "least noise for advantage=0.1" in out
    for more in (("--batch-size", "100..50"), ("--batch-size", "many"), ("--sampler", "random"), ()):
        code, out, err = run(capsys, "calibrate", *asked, *more)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
