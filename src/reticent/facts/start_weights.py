"""The weights at which a loop begins, and who says that they do not depend on the records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from reticent.facts.base import Fact, section
from reticent.facts.draws import VOUCHED
from reticent.facts.steps import Source
from reticent.io.commitments import commit, new_salt, opens
from reticent.io.models import Sha256, Terse, Whole
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_WHAT = "start-weights"


class StartRecord(Terse):
    """The weights at which a watched loop began.

    Attributes:
        weights: ``random`` where ``reticent.watching.starts.fresh`` drew them, ``loaded`` where the program says so, a
            trainer took up a checkpoint, a name of a pretrained model is known or some weights stay as they are beside
            trained ones; else ``unknown``.
        source: who says that they do not depend on the training records: seen for random ones, declared, or unknown.
        commitment: HMAC-SHA256 of their SHA-256 under a salt, so that nobody can guess them from a public page.
        salt: the salt, where the weights are public anyway: they are those at which an earlier ledger ended.
        trainer_step: steps that the trainer says it took before.
    """

    weights: Literal["random", "loaded", "unknown"]
    source: Source
    commitment: Sha256
    salt: Sha256 | None = None
    trainer_step: Whole = 0

    left_out = ("salt",)

    def opened_by(self, salt: str | None, weights_sha256: str | None) -> bool:
        """Whether these are the weights with this SHA-256."""
        if salt is None or weights_sha256 is None:
            return False
        return opens(self.commitment, salt, _WHAT, bytes.fromhex(weights_sha256))


def start_at(
    weights_sha256: str, weights: Literal["random", "loaded", "unknown"], source: Source, trainer_step: int = 0
) -> tuple[StartRecord, str]:
    """A record of weights with this SHA-256, and the salt of its commitment."""
    salt = new_salt()
    digest = commit(salt, _WHAT, bytes.fromhex(weights_sha256))
    return StartRecord(weights=weights, source=source, commitment=digest, trainer_step=trainer_step), salt


def drawn_here(run: RunLedger) -> bool:
    """Whether our trainer drew the weights itself, from a seed."""
    return run.config is not None and section(run.config, "model").get("kind", "custom") != "custom"


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """Weights that our trainer drew depend on no record. A loop that continues another begins where that one ended."""
    if run.config is not None:
        return {_WHAT: Status.CHECKED} if drawn_here(run) else {}
    start = run.loops[0].start
    if start is None:
        return {}
    found = Status.CHECKED if start.salt is not None else VOUCHED.get(start.source)
    return {} if found is None else {_WHAT: found}


def _silent(run: RunLedger) -> bool:
    """Where the model of our trainer is a class of one's own, nobody stated its start."""
    return run.config is None or section(run.config, "model").get("kind", "") == "custom"


STEPS_BEFORE = Fact("steps-before-the-watch", vouches=_vouches, silent={_WHAT: _silent})
