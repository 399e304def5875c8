"""Attacks that use gradients: canaries through the code that trained the run, and GLiR on the steps it recorded."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from reticent.attacks.base import Attack, AttackSettings
from reticent.auditing.scores import Scores
from reticent.tasks import Progress

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

        release = check_release(run)
        claim = release.run.ledger.equal_steps()
        size = max(claim.dataset_size or 0, settings.canaries)
        audit = CanaryAudit(settings.canaries, settings.seed)
        found = audit.scores(OwnTrainer(settings.steps_done), replace(claim, dataset_size=size))
        meta = {**found.meta, "subject": SUBJECT, "release": str(release)}
        return Scores(found.member, found.non_member, meta, found.design)


class GlirAttack(Attack):
    """GLiR on a run that was recorded with ``reticent train --trace``; see ``glir_audit``."""

    name: ClassVar[str] = "glir"
    summary: ClassVar[str] = "likelihood ratios of the recorded gradients; needs a run trained with --trace"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Score members and non-members of the run on its recorded steps."""
        from reticent.attacks.glir import MOST_STEPS, glir_audit
        from reticent.training.rundir import load_run

        started, total = time.monotonic(), 0

        def report(done: int) -> None:
            if settings.progress is not None:
                elapsed = time.monotonic() - started
                settings.progress(Progress(done, total, elapsed, elapsed * (total - done) / done))

        opened = load_run(run)
        trace = opened.trace()
        total = 0 if trace is None else min(len(trace), MOST_STEPS)
        audit = glir_audit(opened, records=settings.records, seed=settings.seed, progress=report)
        if settings.announce is not None:
            for warning in audit.extras["warnings"]:
                settings.announce(warning)
        return audit.scores()
