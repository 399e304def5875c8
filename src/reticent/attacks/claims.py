"""What a training loop claims to do, in a file of a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reticent.io import yaml
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD

_LARGEST_CLAIM = 4096
_WHOLE = ("steps", "batch_size", "dataset_size")
KEYS = ("noise_multiplier", "sample_rate", "max_grad_norm", *_WHOLE)


def read_claim(path: Path) -> DPSGD:
    """A flat YAML mapping of names to numbers; of rate, batch and data size any two are enough.

    Raises:
        ArtifactError: the file cannot be read, is no such mapping, or lacks a key.
        ParameterError: a number is outside its domain.
    """
    document = yaml.load_file(path, yaml.Limits(size=_LARGEST_CLAIM))
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of names to numbers")
    for name, value in document.items():
        if name not in KEYS:
            raise ArtifactError(f"{path}: {name[:60]!r} is not one of {', '.join(KEYS)}")
        _check_number(path, name, value)
    return _claim(path, document)


def _check_number(path: Path, name: str, value: object) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and (name in _WHOLE or not isinstance(value, float)):
        kind = "a whole number" if name in _WHOLE else "a number"
        shown = value[:60] if isinstance(value, str) else "a list or mapping" if value else value
        raise ArtifactError(f"{path}: {name} must be {kind}, got {shown!r}")


def _claim(path: Path, given: Mapping[str, Any]) -> DPSGD:
    for name in ("noise_multiplier", "steps"):
        if name not in given:
            raise ArtifactError(f"{path}: lacks {name}")
    rate, batch, size = (given.get(name) for name in ("sample_rate", "batch_size", "dataset_size"))
    if rate is None and batch and size:
        rate = batch / size
    if batch is None and rate and size:
        batch = max(1, round(rate * size))
    if size is None and batch and rate:
        size = round(batch / rate)
    if rate is None or batch is None or size is None:
        raise ArtifactError(f"{path}: needs two of sample_rate, batch_size and dataset_size")
    return DPSGD(**{**given, "sample_rate": rate, "batch_size": batch, "dataset_size": size})
