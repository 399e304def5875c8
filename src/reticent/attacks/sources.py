"""Where the scores of an audit come from: a run that is attacked, a file, or another tool's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reticent.auditing import Design, Scores, import_lira, import_privacy_meter, load_scores
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.text import one_of
from reticent.training.rundir import check_run_folder

FORMATS = ("auto", "run", "scores", "lira", "privacy-meter")
_LIRA_ATTACKS = ("lira", "lira-offline")


def kind_of(source: Path, stated: str) -> str:
    """What lies at ``source``: run, scores, lira or privacy-meter; recognised by its files unless stated.

    Raises:
        ArtifactError: nothing lies there.
    """
    if stated != "auto":
        return stated
    if not source.exists():
        raise ArtifactError(f"{source} does not exist: give a run directory or a score file")
    if source.is_file():
        return "scores"
    check_run_folder(source)
    if (source / "ledger.json").exists() or (source / "manifest.json").exists():
        return "run"
    if (source / "report").is_dir():
        return "privacy-meter"
    if not any(source.glob("experiment*")):
        known = "a run (ledger.json), nor of Privacy Meter (report/), nor of LiRA (experiment_0_of_16/, ...)"
        raise ArtifactError(f"{source} is neither the folder of {known}")
    return "lira"


def read_scores(source: Path, kind: str, attack: str, target: int, design: Design | None) -> Scores:
    """Scores of a file or of another tool's folder; a LiRA folder is attacked with ``lira`` or ``lira-offline``.

    Raises:
        ArtifactError: it cannot be read.
        ParameterError: there is no such model or attack.
    """
    if kind == "scores":
        return load_scores(source, design)
    if kind == "privacy-meter":
        return import_privacy_meter(source, target)
    from reticent.attacks.shadow_scores import lira_offline, lira_online  # keep the statistics free of attacks

    shadows = import_lira(source)
    models = len(shadows.keep)
    if not 0 <= target < models:
        raise ParameterError("target", target, f"the number of one of {models} models, from 0")
    if attack not in (*_LIRA_ATTACKS, "loss"):
        raise ParameterError("attack", attack, one_of(attack, _LIRA_ATTACKS))
    name = "lira" if attack == "lira" else "lira-offline"
    compare, others = (lira_online if name == "lira" else lira_offline), np.arange(models) != target
    views = np.moveaxis(shadows.values, 2, 0)
    score = np.mean([compare(view[target], view[others], shadows.keep[others]) for view in views], axis=0)
    member = shadows.keep[target]
    return Scores(score[member], score[~member], {"attack": name, "models": models, "target": target})
