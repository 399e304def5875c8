"""The canary audit of a run: the run's settings and the code that trained it, with chosen gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from reticent.attack.own_trainer import OwnTrainer
from reticent.attack.registry import AttackSettings
from reticent.attack.white_box import CanaryAudit
from reticent.audit.scores import Scores
from reticent.train.rundir import load_run


class CanaryAttack:
    """Dirac canaries through a whole run of the training loop with the settings of the run.

    It audits the code and its settings, not the released weights: canaries take part in a run of their own,
    with the same noise, rate, clip norm and number of steps.
    """

    name: ClassVar[str] = "canary"
    summary: ClassVar[str] = "gradient canaries through the training loop with the run's settings"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Train once on the probe, and score every canary by its likelihood ratio over all steps."""
        claim = load_run(run).ledger.mechanism()
        size = max(claim.dataset_size or 0, settings.canaries)
        return CanaryAudit(settings.canaries, settings.seed).scores(OwnTrainer(), replace(claim, dataset_size=size))
