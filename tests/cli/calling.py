"""Calling the command line as a user does."""

from __future__ import annotations

import json
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
HOSTILE = "<script>alert(1)</script> name"
"""The subject of a certificate."""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


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
