"""Calling the command line as a user does."""

from __future__ import annotations

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
