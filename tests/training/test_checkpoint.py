"""A run that is killed and goes on ends where an undisturbed run ends, bit for bit.

Reproducible randomness is used for this comparison only; it is marked in the ledger and carries no guarantee.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch
from safetensors import safe_open

from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.training import load_run, train
from reticent.training.checkpoint import Checkpoint
from reticent.training.randomness import SeededSource
from tests.training.small import records

SMOOTH = {"learning_rate_schedule": {"warmup": 0.2}, "average_last": 0.6}
CASES = {
    "momentum": {"momentum": 0.9, **SMOOTH},
    "adam": {"optimiser": "adam", **SMOOTH},
    "fixed-size": {"sampler": "fixed-size", "physical_batch_size": 5},
    "dropout": {"model": f"{__name__}:Dropping", "momentum": 0.5},
    "views": {"model": {"kind": "convnet", "channels": [2]}, "augmentation": {"times": 2, "flips": True}, "steps": 20},
}


class Dropping(torch.nn.Sequential):
    """Draws from torch's global generator in every step."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__(torch.nn.Linear(shape[0], 6), torch.nn.Dropout(0.5), torch.nn.Linear(6, classes))


class Killed(Exception):  # noqa: N818
    """Stands for a kill: nobody catches it."""


def same(first, second) -> bool:
    weights = zip(first.weights().values(), second.weights().values(), strict=True)
    changing = {"created", "diagnostics", "digest"}
    ledgers = [run.ledger.model_dump(mode="json", exclude={"data": {"salt"}}) for run in (first, second)]
    details = [ledger["diagnostics"] | {"seconds": 0.0} for ledger in ledgers]
    rest = [{k: v for k, v in ledger.items() if k not in changing} for ledger in ledgers]
    return all(torch.equal(a, b) for a, b in weights) and details[0] == details[1] and rest[0] == rest[1]


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow if c in ("momentum", "adam") else ()) for c in CASES]
)
def test_killed_ten_times_in_the_middle_of_a_step(make_config, dataset, tmp_path, monkeypatch, case):
    config = make_config(**{"steps": 40, **CASES[case]})
    if case == "views":
        dataset = records(np.random.default_rng(0).normal(size=(80, 1, 4, 4)))
    torch.manual_seed(5)
    undisturbed = train(config, tmp_path / "one", dataset=dataset)
    rng, draws, kills = np.random.default_rng(len(case)), 0, 0
    normal = SeededSource.normal

    def fragile(self: SeededSource, size: int, device: torch.device) -> torch.Tensor:
        nonlocal draws, kills
        draws += 1
        if kills < 10 and rng.random() < 0.25:
            kills += 1
            raise Killed
        return normal(self, size, device)

    monkeypatch.setattr(SeededSource, "normal", fragile)
    torch.manual_seed(5)
    for _ in range(11):
        try:
            resumed = train(config, tmp_path / "two", dataset=dataset, checkpoint=tmp_path / "kept", checkpoint_every=3)
            break
        except Killed:
            torch.manual_seed(99)  # a new process has another state
            torch.manual_seed(5) if not (tmp_path / "kept").exists() else None
            assert not (tmp_path / "two").exists()
    assert kills == 10
    assert draws > config.steps
    assert same(undisturbed, resumed)
    assert not (tmp_path / "kept").exists()
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


@pytest.fixture
def killed(dataset, tmp_path):
    """The file that a run of nine steps leaves which is killed after seven."""

    def progress(done: int, planned: int) -> None:
        if done == 7:
            raise Killed

    def made(config):
        with pytest.raises(Killed):
            train(config, tmp_path / "run", progress, dataset=dataset, checkpoint=tmp_path / "kept", checkpoint_every=2)
        return tmp_path / "kept"

    return made


def test_what_fresh_randomness_keeps_is_private_and_no_random_state(make_config, killed, dataset, tmp_path):
    config = make_config(randomness="fresh", steps=9)
    kept = killed(config)
    assert kept.stat().st_mode & 0o777 == 0o600
    with safe_open(kept, framework="pt") as file:
        assert json.loads(file.metadata()["run"])["sources"] == [None, None]
        assert "torch" not in file.keys()  # noqa: SIM118  no mapping
    run = train(config, tmp_path / "run", dataset=dataset, checkpoint=kept, checkpoint_every=2)
    assert run.ledger.steps == 9
    assert len(run.ledger.diagnostics.batch_sizes) == 9


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused_and_kept(make_config, killed, dataset, tmp_path):
    config = make_config(steps=9)
    kept = killed(config)
    content = kept.read_bytes()
    for other, mine in ((make_config(steps=9, noise_multiplier=2.0), dataset), (config, dataset.subset(59))):
        with pytest.raises(ArtifactError, match="belongs to another configuration, data set or version"):
            train(other, tmp_path / "run", dataset=mine, checkpoint=kept)
    for damaged in (content[:-30], content[:40], b"", b"x" * 100, content.replace(b"batch_sizes", b"batch_sixes")):
        kept.write_bytes(damaged)
        with pytest.raises(ArtifactError, match="kept: not a checkpoint of this run"):
            train(config, tmp_path / "run", dataset=dataset, checkpoint=kept)
        assert kept.read_bytes() == damaged
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes", [{"trace": {}}, {"sampler": "shuffled"}, {"schedule": [{"at": 4, "noise_factor": 0.5}]}]
)
def test_what_cannot_be_resumed_is_refused_before_training(make_config, dataset, tmp_path, changes):
    with pytest.raises(UnsupportedError, match="cannot be resumed: leave out the checkpoint"):
        train(make_config(**changes), tmp_path / "run", dataset=dataset, checkpoint=tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


_PROGRAM = """
    import sys, time
    from reticent.training import load_config, train
    slowly = lambda done, planned: time.sleep(0.002)
    train(load_config("c.yaml"), sys.argv[1], slowly, checkpoint="kept", checkpoint_every=7)
"""


@pytest.mark.slow
def test_a_process_that_is_really_killed(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "{data: {name: breast-cancer}, model: {kind: mlp, widths: [8]}, noise_multiplier: 1.0, batch_size: 40, "
        "steps: 1500, learning_rate: 0.2, momentum: 0.9, randomness: reproducible, average_last: 0.5}"
    )
    command = [sys.executable, "-c", textwrap.dedent(_PROGRAM)]
    subprocess.run([*command, "one"], cwd=tmp_path, check=True)
    rng, kills = np.random.default_rng(0), 0
    while not (tmp_path / "two").exists():
        process = subprocess.Popen([*command, "two"], cwd=tmp_path)
        if kills == 10:
            assert process.wait() == 0
            break
        while not (tmp_path / "kept").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.05, 0.6))
        process.kill()
        kills += process.wait() != 0
        for left in tmp_path.glob(".two.partial-*"):
            with pytest.raises(ArtifactError, match="half written"):
                load_run(left)
    assert kills == 10
    assert same(load_run(tmp_path / "one"), load_run(tmp_path / "two"))
    assert {path.name for path in tmp_path.iterdir()} == {"c.yaml", "one", "two"}, "what was half written is removed"


def test_one_process_at_a_time(make_config, dataset, tmp_path):
    path = tmp_path / "kept"
    for _ in range(2):
        with Checkpoint(path).held():
            with pytest.raises(ArtifactError, match="another process"), Checkpoint(path).held():
                pass
            with pytest.raises(ArtifactError, match="another process is training with this checkpoint"):
                train(make_config(steps=4), tmp_path / "run", dataset=dataset, checkpoint=path)
            with Checkpoint(tmp_path / "other").held():
                pass
    assert list(tmp_path.iterdir()) == []
