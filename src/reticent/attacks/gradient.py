"""The canary audit of a run: the run's settings and the code that trained it, with chosen gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from reticent.attacks.canaries import CanaryAudit
from reticent.attacks.own_trainer import OwnTrainer
from reticent.attacks.registry import AttackSettings
from reticent.attacks.release import check_release
from reticent.auditing.scores import Scores

SUBJECT = "a NEW run of reticent's own training loop with this run's settings, not the released model"


class CanaryAttack:
    """Dirac canaries through a whole run of the training loop with the settings of the run.

    It audits the code and its settings, not the released weights: canaries take part in a run of their own,
    with the same noise, rate, clip norm and number of steps. The release itself is only checked for being whole.
    """

    name: ClassVar[str] = "canary"
    summary: ClassVar[str] = "gradient canaries through the training loop with the run's settings"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Check the release, train once on the probe, and score every canary by its likelihood ratio over all steps."""
        release = check_release(run)
        claim = release.run.ledger.equal_steps()
        size = max(claim.dataset_size or 0, settings.canaries)
        audit = CanaryAudit(settings.canaries, settings.seed)
        found = audit.scores(OwnTrainer(settings.steps_done), replace(claim, dataset_size=size))
        meta = {**found.meta, "subject": SUBJECT, "release": str(release)}
        return Scores(found.member, found.non_member, meta, found.design)
