"""Small documents that ask for a great deal: refused before the work, and ended where an estimate fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Gaussian, Ledger
from reticent.mechanisms.codec import mechanism_of
from reticent.mechanisms.matrix import MatrixMechanism
from tests.cli.calling import run

MATRIX = {
    "kind": "matrix",
    "noise_multiplier": 1.0,
    "steps": 10**8,
    "strategy": "square-root",
    "bands": None,
    "participations": 1000,
    "separation": 10,
    "sample_rate": 1.0,
}
BOMBS: dict[str, dict[str, Any]] = {
    "nine kilobytes": {},
    "one participation": {"participations": 1},
    "all ones": {"strategy": "prefix", "participations": 10**8, "separation": 1},
    "identity": {"strategy": "identity", "participations": 10**8, "separation": 1},
    "a tree": {"strategy": "tree"},
    "a tree, small": {"strategy": "tree", "steps": 2048, "participations": 2048, "separation": 1},
    "coefficients that rise": {"strategy": "1,2,1", "steps": 2048, "participations": 2048, "separation": 1},
    "blocks": {"strategy": "1,0.5", "participations": 1, "separation": 2, "sample_rate": 0.01},
}


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    declared = Declaration(subject="a release", created="2026-11-22")
    document: dict[str, Any] = json.loads(certify(Gaussian(2.0), declared, adversaries=(WorstCase(),)).to_json())
    return document


@pytest.mark.parametrize("case", BOMBS)
def test_work_is_estimated_before_it_is_done(small: dict[str, Any], case: str) -> None:
    begun = time.process_time()
    for mechanism in (MATRIX | BOMBS[case], {"kind": "ledger", "parts": [MATRIX | BOMBS[case]] * 2}):
        with pytest.raises(ArtifactError, match="numbers, more than the 1e\\+08 that a document may ask for"):
            verify(Certificate.parse(small | {"mechanism": mechanism}))
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("records", [10**5, 10**12])
def test_nobody_has_that_many_records(small: dict[str, Any], records: int) -> None:
    fields = {"kind": "dpsgd", "noise_multiplier": 500.0, "sample_rate": 0.01, "steps": 100}
    assert mechanism_of(fields | {"records_per_user": 1000}).work == pytest.approx(1e7, rel=0.01, abs=0)
    with pytest.raises(ArtifactError, match="more than the 1e\\+08 that a document may ask for"):
        verify(Certificate.parse(small | {"mechanism": fields | {"records_per_user": records}}))


def test_many_parts_together_are_too_much() -> None:
    one = MATRIX | {"steps": 10**6, "participations": 1, "separation": 10**6}
    mechanism_of(one)
    with pytest.raises(ArtifactError, match="more than the 1e\\+08"):
        mechanism_of({"kind": "ledger", "parts": [one] * 64})


def test_an_estimate_is_no_computation() -> None:
    begun = time.process_time()
    large = MatrixMechanism(1.0, 10**8, "square-root", participations=1000, separation=10)
    assert large.work > 1e10
    assert Ledger((large, Gaussian(1.0), large)).work == 2 * large.work
    assert time.process_time() - begun < 0.5
    with pytest.raises(ParameterError, match="at most 400000 characters"):
        MatrixMechanism(1.0, 10, "1," * 300_000)


def test_usual_strategies_are_within_reach() -> None:
    for usual in (
        {"steps": 10**6, "participations": 1},
        {"steps": 10**5, "participations": 100, "separation": 1000},
        {"strategy": "tree", "steps": 2000, "participations": 10, "separation": 200},
        {"steps": 10**5, "strategy": "1,0.5", "participations": 1, "separation": 100, "sample_rate": 0.01},
    ):
        assert mechanism_of(MATRIX | usual).work <= 1e8


def test_what_takes_too_long_ends_in_one_line(small: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(small))
    slow = "import time, reticent.verbs.verifying as v; v.check = lambda *a, **k: time.sleep(60); "
    script = slow + "import sys; from reticent.cli import main; sys.argv = ['reticent', 'verify', 'c.json', "
    script += "'--timeout', '0.2']; main()"
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=os.environ, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "reticent: c.json: not done after 0.2 seconds (--timeout); it may ask for far too much\n"
    assert time.monotonic() - begun < 50


@pytest.mark.parametrize("command", ["verify", "gate"])
def test_memory_is_limited(
    small: dict[str, Any],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)

    def greedy(*_: object, **__: object) -> None:
        bytearray(4 << 30)

    monkeypatch.setattr("reticent.certificates.verify.derive", greedy)
    (tmp_path / "c.json").write_text(json.dumps(small))
    (tmp_path / "p.yaml").write_text("schema: reticent.policy/1\nlimits: [{measure: advantage, at_most: 0.999}]\n")
    more = ["--policy", str(tmp_path / "p.yaml")] if command == "gate" else []
    code, out, err = run(capsys, command, tmp_path / "c.json", *more)
    if command == "verify":
        assert code == 2
        assert err.startswith("reticent: the document cannot be derived")
    else:
        assert code == 1
        assert "BREACH  the certificate verifies: the document cannot be derived" in out
    assert resource.getrlimit(resource.RLIMIT_AS) == before
