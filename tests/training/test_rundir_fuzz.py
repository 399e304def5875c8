"""Random damage, with and without forged checksums: a clear error or a readable run, never anything else."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from reticent.kernel.errors import ReticentError
from reticent.training import load_run, train

FILES = ("manifest.json", "ledger.json", "weights.safetensors", "trace/trace.json", "trace/steps-00000.safetensors")
TOKENS = (
    b"-1",
    b"1e400",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"1e308",
    b"99999999999999999999999",
    b"true",
    b"\xff",
    b"0",
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    from reticent.data import Dataset
    from reticent.training import parse_config

    rng = np.random.default_rng(0)
    dataset = Dataset(
        "small", "test", rng.random((30, 3)).astype(np.float32), np.arange(30) % 2, 2, np.arange(20), np.arange(20, 30)
    )
    config = parse_config(
        {
            "data": {"name": "digits"},
            "model": {"kind": "logistic"},
            "noise_multiplier": 1.0,
            "batch_size": 5,
            "steps": 4,
            "learning_rate": 0.1,
            "trace": {"masks": True},
        }
    )
    path = tmp_path_factory.mktemp("fuzz") / "run"
    train(config, path, dataset=dataset)
    return path


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, insert, or replace one JSON-like token."""
    at = int(rng.integers(len(content)))
    kind = int(rng.integers(4))
    if kind == 0:
        return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content[:at] + rng.bytes(int(rng.integers(1, 20))) + content[at:]
    start = max(content.rfind(b":", 0, at), content.rfind(b",", 0, at), 0) + 1
    ends = [i for i in (content.find(b",", start), content.find(b"}", start), content.find(b"]", start)) if i >= 0]
    end = min(ends, default=len(content))
    return content[:start] + TOKENS[int(rng.integers(len(TOKENS)))] + content[end:]


def read_everything(path: Path) -> None:
    run = load_run(path)
    run.ledger.mechanism()
    run.ledger.public()
    run.config  # noqa: B018
    run.weights()
    run.model()
    for _ in run.trace() or ():
        pass


@pytest.mark.parametrize("forged", [False, True], ids=["damaged", "forged"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("trials", [24, pytest.param(120, marks=pytest.mark.slow)])
def test_only_clear_errors(pristine, tmp_path, name, forged, trials):
    rng = np.random.default_rng([FILES.index(name), forged])
    refused, messages = 0, []
    for trial in range(trials):
        path = tmp_path / f"run{trial}"
        shutil.copytree(pristine, path)
        content = mutate((path / name).read_bytes(), rng)
        (path / name).write_bytes(content)
        if forged and name != "manifest.json":
            manifest = json.loads((path / "manifest.json").read_text())
            manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            (path / "manifest.json").write_text(json.dumps(manifest))
        try:
            read_everything(path)
        except ReticentError as error:
            refused += 1
            messages.append(str(error))
        shutil.rmtree(path)
    assert all("\n" not in message for message in messages)
    # A checksum leaves no room; without one, changed digits and letters can make another valid run.
    assert refused == trials if not forged and name != "manifest.json" else refused >= trials / 3
