"""Attacks that use gradients: canaries through the code that trained the run, and GLiR on the steps it recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from reticent.attacks.base import Attack, AttackSettings
from reticent.auditing.scores import Scores

SUBJECT = "a NEW run of reticent's own training loop with this run's settings, not the released model"


class CanaryAttack(Attack):
    """Dirac canaries through a whole run of the training loop with the settings of the run.

    It audits the code and its settings, not the released weights: canaries take part in a run of their own,
    with the same noise, rate, clip norm and number of steps. The release itself is only checked for being whole.
    """

    name: ClassVar[str] = "canary"
    summary: ClassVar[str] = "gradient canaries through the training loop with the run's settings"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Check the release, train once on the probe, and score every canary by its likelihood ratio over all steps."""
        from reticent.attacks.canaries import CanaryAudit
        from reticent.attacks.own_trainer import OwnTrainer
        from reticent.attacks.release import check_release
        from reticent.training.rundir import load_run

        opened = load_run(run)
        release, claim = check_release(opened), opened.ledger.equal_steps()
        size = max(claim.dataset_size or 0, settings.canaries)
        audit = CanaryAudit(settings.canaries, settings.seed)
        found = audit.scores(OwnTrainer(settings.steps_done), replace(claim, dataset_size=size))
        meta = {**found.meta, "subject": SUBJECT, "release": release}
        return Scores(found.member, found.non_member, meta, found.design)


class GlirAttack(Attack):
    """GLiR on a run that was recorded with ``reticent train --trace``; see ``glir_audit``."""

    name: ClassVar[str] = "glir"
    summary: ClassVar[str] = "likelihood ratios of the recorded gradients; needs a run trained with --trace"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Score members and non-members of the run on its recorded steps."""
        from reticent.attacks.glir import glir_audit
        from reticent.training.rundir import load_run

        return glir_audit(
            load_run(run),
            records=settings.records,
            seed=settings.seed,
            progress=settings.steps_done,
            announce=settings.announce,
        )
