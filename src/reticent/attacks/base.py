"""What an attack is, and the list of those that ``reticent audit RUN --attack NAME`` can run.

An attack turns a finished run into scores; what the scores prove is the business of ``reticent.auditing``. The list
can be had without torch: a file of an attack imports torch when the attack starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from reticent.auditing.scores import Scores
from reticent.kernel import checks
from reticent.kernel.registry import Registry
from reticent.tasks import Engine, Local, Progress


@dataclass(frozen=True)
class AttackSettings:
    """What a user may choose; an attack ignores what it has no use for.

    Attributes:
        records: members and non-members to score, at most this many of each.
        models: shadow models.
        canaries: gradient canaries of a white-box audit.
        seed: of every random choice of the attack.
        engine: where shadow models are trained.
        work: directory for shadow models; by default the run's path with ``-attack`` appended.
        resume: go on with what an earlier, interrupted or smaller attack left in ``work``.
        announce: called with one line before long work begins: what it will cost.
        progress: called with how far long work is.
        timeout: give up when no task was finished for this many seconds; None never does while workers are there.

    Raises:
        ParameterError: a field is outside its domain.
    """

    records: int = 1000
    models: int = 16
    canaries: int = 1000
    seed: int = 0
    engine: Engine = field(default_factory=Local)
    work: Path | None = None
    resume: bool = False
    announce: Callable[[str], None] | None = None
    progress: Callable[[Progress], None] | None = None
    timeout: float | None = None

    def steps_done(self, done: int, planned: int) -> None:
        """Tell ``progress`` how many steps of a training run are done."""
        if self.progress is not None:
            self.progress(Progress(done, planned))

    def __post_init__(self) -> None:
        for name in ("records", "models", "canaries"):
            checks.count(**{name: getattr(self, name)})
        if self.timeout is not None:
            checks.positive(timeout=self.timeout)
        checks.seed(seed=self.seed)


class Attack(ABC):
    """An attack on a finished run.

    Attributes:
        name: as the command line spells it.
        summary: a few words for people: what is scored.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def scores(self, run: Path, settings: AttackSettings) -> Scores:
        """Attack the run.

        Args:
            run: a directory written by ``reticent train``.
            settings: what the user chose.

        Raises:
            ArtifactError: the run, or what an earlier attack left, is incomplete, corrupt or hostile.
            ParameterError: a setting does not fit the run.
            UnsupportedError: the run lacks something that the attack needs.
        """


ATTACKS: Registry[Attack] = Registry("attack", "reticent.attacks", Attack, __package__)
"""Every attack that has a name."""


def find_attack(name: str) -> Attack:
    """The attack called ``name``.

    Raises:
        ParameterError: there is none; the message lists those there are.
    """
    return ATTACKS.find(name, "attack")()
