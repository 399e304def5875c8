"""Scores that other tools left on disk: LiRA experiment folders and ML Privacy Meter logs.

Only ``.npy`` arrays of numbers are read, header first and without pickle; model checkpoints next to
them are never opened.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reticent.auditing.scores import Scores
from reticent.io.npz import read_arrays, read_npy
from reticent.kernel.errors import ArtifactError, ParameterError

_MOST_BYTES = 1 << 30
_LIRA_FOLDER = re.compile(r"experiment[-_](\d+)_of_(\d+)")


@dataclass(frozen=True, eq=False)
class ShadowScores:
    """Confidences of several models on the same records, with who trained on what.

    What a likelihood-ratio attack needs; ``reticent.attacks.shadow_scores`` turns it into scores.

    Attributes:
        keep: models x records, whether the model trained on the record.
        values: models x records x augmentations, the scaled confidence
            log p_y - log sum of the other p; higher for members.
    """

    keep: np.ndarray
    values: np.ndarray


def import_lira(folder: str | os.PathLike[str]) -> ShadowScores:
    """Read ``experiment_i_of_n/{keep.npy, scores/<epoch>.npy}`` (also with hyphens), newest epoch of each.

    Raises:
        ArtifactError: no experiment, a file is missing, damaged or hostile, or shapes differ.
    """
    root = Path(folder)
    found = sorted((int(match[1]), path) for path in _children(root) if (match := _LIRA_FOLDER.fullmatch(path.name)))
    if not found:
        raise ArtifactError(f"{root}: no folder experiment_i_of_n")
    keep = [_file(path / "keep.npy", root) for _, path in found]
    values = [_file(_newest(path / "scores"), root) for _, path in found]
    values = [value[:, None] if value.ndim == 1 else value for value in values]
    if len({k.shape for k in keep}) != 1 or len({v.shape for v in values}) != 1:
        raise ArtifactError(f"{root}: the experiments do not have the same shape")
    if any(k.dtype.kind not in "bu" or k.max(initial=0) > 1 for k in keep) or values[0].dtype.kind != "f":
        raise ArtifactError(f"{root}: keep.npy must be boolean and scores floating point")
    shadows = ShadowScores(np.stack(keep).astype(bool), np.stack(values).astype(float))
    fits = shadows.keep.ndim == 2 and shadows.values.ndim == 3 and shadows.values.shape[:2] == shadows.keep.shape
    if not fits or not np.all(np.isfinite(shadows.values)):
        known = "models x records x augmentations, finite"
        raise ArtifactError(f"{root}: values must be {known}, got shape {shadows.values.shape}")
    return shadows


def import_privacy_meter(path: str | os.PathLike[str], model: int = 0) -> Scores:
    """Read the attack result of one target model from a Privacy Meter log directory, or from one .npz of it.

    Looks for ``report/exp/attack_result_<model>.npz`` (or ``report/attack_result_<model>.npz``) and reads
    its arrays ``scores`` and ``memberships``; the other arrays are not opened.

    Raises:
        ArtifactError: the file is missing, damaged, hostile or not laid out so.
    """
    root = Path(path)
    name = f"attack_result_{model}.npz"
    candidates = [root] if root.is_file() else [root / "report" / "exp" / name, root / "report" / name, root / name]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        raise ArtifactError(f"{root}: no report/exp/{name}")
    with file.open("rb") as stream:
        arrays = read_arrays(stream, str(file), ("scores", "memberships"), _MOST_BYTES, also=None)
    scores, memberships = arrays["scores"], arrays["memberships"]
    if scores.shape != memberships.shape or memberships.dtype.kind not in "biuf":
        raise ArtifactError(f"{file}: scores and memberships differ in shape")
    if not np.all((memberships == 0) | (memberships == 1)):
        raise ArtifactError(f"{file}: memberships must be 0 or 1")
    member = memberships.astype(bool).ravel()
    try:
        return Scores(scores.ravel()[member], scores.ravel()[~member], {"attack": "privacy-meter", "source": file.name})
    except ParameterError as error:
        raise ArtifactError(f"{file}: {error}") from error


def _children(root: Path) -> list[Path]:
    if not root.is_dir():
        raise ArtifactError(f"{root}: not a folder")
    return list(root.iterdir())


def _newest(folder: Path) -> Path:
    names = [path for path in _children(folder) if re.fullmatch(r"\d{1,18}\.npy", path.name)]
    if not names:
        raise ArtifactError(f"{folder}: no scores/<epoch>.npy")
    return max(names, key=lambda path: int(path.stem))


def _file(path: Path, root: Path) -> np.ndarray:
    """One .npy file that really lies below ``root`` (links that lead out are refused)."""
    if not path.is_file():
        raise ArtifactError(f"{path}: no such file")
    if not path.resolve().is_relative_to(root.resolve()):
        raise ArtifactError(f"{path}: leads out of {root}")
    if path.stat().st_size > _MOST_BYTES:
        raise ArtifactError(f"{path}: larger than {_MOST_BYTES} bytes")
    return read_npy(path.read_bytes(), str(path))
