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

from reticent.certificates.document.schema import Certificate
from reticent.certificates.verify import verify
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Gaussian, Ledger
from reticent.mechanisms.codec import mechanism_of
from reticent.mechanisms.matrix import MatrixMechanism
from tests.certificates.edits import document_of
from tests.certificates.making import of
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
RECORDS = {"kind": "dpsgd", "noise_multiplier": 500.0, "sample_rate": 0.01, "steps": 100}
ONE = MATRIX | {"steps": 10**6, "participations": 1, "separation": 10**6}
BOMBS: dict[str, dict[str, Any]] = {
    "nine kilobytes": MATRIX,
    "one participation": MATRIX | {"participations": 1},
    "all ones": MATRIX | {"strategy": "prefix", "participations": 10**8, "separation": 1},
    "identity": MATRIX | {"strategy": "identity", "participations": 10**8, "separation": 1},
    "a tree": MATRIX | {"strategy": "tree"},
    "a tree, small": MATRIX | {"strategy": "tree", "steps": 2048, "participations": 2048, "separation": 1},
    "coefficients that rise": MATRIX | {"strategy": "1,2,1", "steps": 2048, "participations": 2048, "separation": 1},
    "blocks": MATRIX | {"strategy": "1,0.5", "participations": 1, "separation": 2, "sample_rate": 0.01},
    "many parts": {"kind": "ledger", "parts": [ONE] * 64},
    "records of a person": RECORDS | {"records_per_user": 10**12},
}
USUAL: tuple[dict[str, Any], ...] = (
    ONE,
    MATRIX | {"steps": 10**6, "participations": 1},
    MATRIX | {"steps": 10**5, "participations": 100, "separation": 1000},
    MATRIX | {"strategy": "tree", "steps": 2000, "participations": 10, "separation": 200},
    MATRIX | {"steps": 10**5, "strategy": "1,0.5", "participations": 1, "separation": 100, "sample_rate": 0.01},
    RECORDS | {"records_per_user": 1000},
)


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return document_of(of(Gaussian(2.0)))


@pytest.mark.parametrize("case", BOMBS)
def test_work_is_estimated_before_it_is_done(small: dict[str, Any], case: str) -> None:
    begun = time.process_time()
    with pytest.raises(ArtifactError, match="numbers, more than the 1e\\+08 that a document may ask for"):
        verify(Certificate.parse(small | {"mechanism": BOMBS[case]}))
    assert time.process_time() - begun < 1.0


def test_what_is_usual_is_within_reach() -> None:
    for mechanism in USUAL:
        assert 0 < mechanism_of(mechanism).work <= 1e8
    large = MatrixMechanism(1.0, 10**8, "square-root", participations=1000, separation=10)
    assert Ledger((large, Gaussian(1.0), large)).work == 2 * large.work
    with pytest.raises(ParameterError, match="at most 400000 characters"):
        MatrixMechanism(1.0, 10, "1," * 300_000)


def test_what_takes_too_long_ends_in_one_line(small: dict[str, Any], tmp_path: Path) -> None:
    """In a process of its own: it is ended from another thread, whatever the first one does."""
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


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("verify",), (2, "reticent: the document cannot be derived")),
        (("gate", "--policy", "p.yaml"), (1, "BREACH  the certificate verifies: the document cannot be derived")),
    ],
)
def test_memory_is_limited(
    small: dict[str, Any], command: Any, said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr("reticent.certificates.verify.derive", lambda *_, **__: bytearray(4 << 30))
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(small))
    Path("p.yaml").write_text("schema: reticent.policy/1\nlimits: [{measure: advantage, at_most: 0.999}]\n")
    code, out, err = run(capsys, command[0], "c.json", *command[1:])
    assert (code, said[1] in out + err) == (said[0], True)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
