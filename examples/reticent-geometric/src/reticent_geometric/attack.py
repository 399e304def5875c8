"""An attack that knows nothing: the control for every audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reticent.attacks import Attack, AttackSettings
from reticent.auditing import Design, Scores


class Coin(Attack):
    """Scores that do not look at the run. An audit that finds something in them is broken."""

    name = "coin"
    summary = "random scores: the control that must find nothing"

    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        rng = np.random.default_rng(settings.seed)
        members, others = rng.standard_normal((2, settings.records))
        return Scores(members, others, {"attack": self.name, "run": str(run)}, Design.POPULATION)
