"""``reticent audit-loop module:function --claim claim.yaml``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reticent.attacks.claims import read_claim
from reticent.attacks.mechanics import audit_mechanics
from reticent.cli import main
from reticent.kernel.errors import ArtifactError, ParameterError

GOOD = "noise_multiplier: 1.0\nsample_rate: 0.1\nsteps: 12\ndataset_size: 100\n"
SILENT = '''
import torch


def loop(model, data, claim):
    """No noise at all: each step releases nothing but zeros."""
    return torch.zeros(claim.steps, sum(p.numel() for p in model.parameters()))
'''


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["audit-loop", *(str(a) for a in arguments)])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_silent_loop.py").write_text(SILENT)
    (tmp_path / "claim.yaml").write_text(GOOD)
    return tmp_path


@pytest.fixture
def in_this_process(monkeypatch) -> None:
    monkeypatch.setattr("reticent.attacks.loop.audit_loop", lambda loop, claim, **_: audit_mechanics(loop, claim))


@pytest.mark.slow
def test_a_loop_without_noise_is_refuted_in_a_process_of_its_own(capsys, here: Path) -> None:
    assert run(capsys, "my_silent_loop:loop", "--claim", "claim.yaml", "--workers", "1")[0] == 1


@pytest.mark.usefixtures("in_this_process")
def test_a_loop_without_noise_is_refuted_with_exit_code_1(capsys, here: Path) -> None:
    code, out, err = run(capsys, "my_silent_loop:loop", "--claim", "claim.yaml", "--workers", "1", "--json")
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert document["schema"] == "reticent.loop-audit/1"
    assert document["refuted"] is True
    assert "noise scale" in {check["name"] for check in document["checks"] if check["failed"]}
    assert "New runs" in document["about"]


@pytest.mark.usefixtures("in_this_process")
def test_a_table_for_people_says_first_what_was_audited(capsys, here: Path) -> None:
    code, out, _ = run(capsys, "my_silent_loop:loop", "--claim", "claim.yaml", "--workers", "1")
    assert code == 1
    assert out.startswith("New runs of the loop")
    assert "REFUTED" in out


@pytest.mark.usefixtures("in_this_process")
def test_no_name_becomes_a_picture(capsys, here: Path) -> None:
    (here / "my_other_loop.py").write_text(SILENT.replace("def loop", "def train"))
    assert "my_other_loop:train: " in run(capsys, "my_other_loop:train", "--claim", "claim.yaml", "--workers", "1")[1]


def test_of_rate_batch_and_size_two_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "claim.yaml"
    for given in (
        "sample_rate: 0.1\ndataset_size: 200",
        "batch_size: 20\ndataset_size: 200",
        "sample_rate: 0.1\nbatch_size: 20",
    ):
        path.write_text(f"noise_multiplier: 2\nsteps: 7\n{given}\n")
        claim = read_claim(path)
        assert (claim.sample_rate, claim.batch_size, claim.dataset_size, claim.steps) == (0.1, 20, 200, 7)


BAD = {
    "key twice": GOOD + "steps: 5000000\n",
    "unknown key": GOOD + "epsilon: 3\n",
    "no noise": GOOD.replace("noise_multiplier: 1.0\n", ""),
    "no size": "noise_multiplier: 1\nsteps: 3\nsample_rate: 0.1\n",
    "a date": GOOD.replace("12", "2024-13-45"),
    "a tag": GOOD.replace("12", "!!int abc"),
    "digits without end": GOOD.replace("12", "9" * 5000),
    "half a number": GOOD.replace("12", "0b_"),
    "a list": "[1, 2]",
    "nothing": "",
    "deep": "[" * 5000,
    "not text": b"\xff\xfe\x00",
    "rate above 1": GOOD.replace("0.1", "1.5"),
    "not a number": GOOD.replace("1.0", ".nan"),
    "a bomb": "a: &a [x]\nb: [*a, *a]\n",
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_claim_is_one_line(tmp_path: Path, case: str) -> None:
    path, text = tmp_path / "claim.yaml", BAD[case]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((ArtifactError, ParameterError)) as stop:
        read_claim(path)
    assert "\n" not in str(stop.value)
    assert len(str(stop.value)) < 600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere:loop", "--claim", "claim.yaml"], "importable"),
        (["my_silent_loop", "--claim", "claim.yaml"], "module:function"),
        (["my_silent_loop:absent", "--claim", "claim.yaml"], "my_silent_loop:absent"),
        (["my_silent_loop:loop", "--claim", "absent.yaml"], "absent.yaml"),
        (["my_silent_loop:loop", "--claim", "claim.yaml", "--workers", "0"], "--workers"),
        (["my_silent_loop:loop", "--claim", "claim.yaml", "--significance", "7"], "--significance"),
        (["my_silent_loop:loop", "--claim", "claim.yaml", "--seed", "-1"], "--seed"),
        (["my_silent_loop:loop", "--claim", "claim.yaml", "--timeout", "0"], "--timeout"),
        (["my_silent_loop:loop", "--claim", "claim.yaml", "--timeout", "inf"], "--timeout must be a finite number"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(capsys, here: Path, arguments: list[str], words: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
