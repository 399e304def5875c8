"""Calling the command line as a user does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reticent.cli import main

CONFIG = """
data: {name: digits, train_size: 200}
model: {kind: logistic}
noise_multiplier: 2.0
batch_size: 20
steps: 5
learning_rate: 0.1
"""
"""Of a run that takes a moment."""
CLAIM = "noise_multiplier: 1.0\nsample_rate: 0.1\nsteps: 12\ndataset_size: 100\n"
SILENT = """
import torch


def loop(model, data, claim):
    return torch.zeros(claim.steps, sum(p.numel() for p in model.parameters()))
"""
"""A loop that adds no noise at all, whatever its claim says."""
HOSTILE = "<script>alert(1)</script> name"
"""The subject of a certificate."""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def put_silent_loop(folder: Path, module: str) -> None:
    """The loop ``MODULE:loop`` and its ``claim.yaml``."""
    (folder / f"{module}.py").write_text(SILENT)
    (folder / "claim.yaml").write_text(CLAIM)


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a call prints as JSON, strictly, and nothing else."""
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, ""), (arguments, err)
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line, harmless to a terminal, with which a call ends that prints nothing."""
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), (arguments, out, err)
    assert "\x1b" not in err
    assert len(err) < 2100
    return err
