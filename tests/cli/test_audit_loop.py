"""``reticent audit-loop module:function --claim claim.yaml``, and what a claim may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reticent.attacks.claims import read_claim
from reticent.attacks.mechanics import audit_mechanics
from reticent.kernel.errors import ArtifactError, ParameterError
from tests.cli.calling import CLAIM, put_silent_loop, run

ASKED = ("audit-loop", "my_silent_loop:loop", "--claim", "claim.yaml", "--workers", "1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put_silent_loop(tmp_path, "my_silent_loop")
    return tmp_path


@pytest.mark.slow
def test_a_loop_without_noise_is_refuted_in_a_process_of_its_own(capsys) -> None:
    assert run(capsys, *ASKED)[0] == 1


def test_a_loop_without_noise_is_refuted_with_exit_code_1(capsys, monkeypatch) -> None:
    """In this process; a table says first what was audited."""
    monkeypatch.setattr("reticent.attacks.loop.audit_loop", lambda loop, claim, **_: audit_mechanics(loop, claim))
    code, out, err = run(capsys, *ASKED, "--json")
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert (document["schema"], document["refuted"]) == ("reticent.loop-audit/1", True)
    assert "noise scale" in {check["name"] for check in document["checks"] if check["failed"]}
    assert "New runs" in document["about"]
    code, out, _ = run(capsys, *ASKED)
    assert (code, out.startswith("New runs of the loop"), "REFUTED" in out) == (1, True, True)
    assert "my_silent_loop:loop: " in out


@pytest.mark.parametrize(
    "given",
    ["sample_rate: 0.1\ndataset_size: 200", "batch_size: 20\ndataset_size: 200", "sample_rate: 0.1\nbatch_size: 20"],
)
def test_of_rate_batch_and_size_two_are_enough(here: Path, given: str) -> None:
    (here / "claim.yaml").write_text(f"noise_multiplier: 2\nsteps: 7\n{given}\n")
    claim = read_claim(here / "claim.yaml")
    assert (claim.sample_rate, claim.batch_size, claim.dataset_size, claim.steps) == (0.1, 20, 200, 7)


@pytest.mark.parametrize(
    "text",
    [
        CLAIM + "epsilon: 3\n",
        CLAIM.replace("noise_multiplier: 1.0\n", ""),
        "noise_multiplier: 1\nsteps: 3\nsample_rate: 0.1\n",
        CLAIM.replace("12", "2024-13-45"),
        CLAIM.replace("12", "9" * 5000),
        "[1, 2]",
        "",
        CLAIM.replace("0.1", "1.5"),
        CLAIM.replace("1.0", ".nan"),
    ],
)
def test_a_bad_claim_is_one_line(here: Path, text: str) -> None:
    (here / "claim.yaml").write_text(text)
    with pytest.raises((ArtifactError, ParameterError)) as stop:
        read_claim(here / "claim.yaml")
    assert "\n" not in str(stop.value)
    assert len(str(stop.value)) < 600
