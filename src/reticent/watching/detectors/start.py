"""Where a loop begins: steps that were taken before, and whether the start weights are random.

A second watch of the same model continues the ledger of the first. What is left is the condition that the start
weights do not depend on the training records: ``starts.fresh`` establishes it, ``start="declared"`` and
``start="base-model"`` state it, and else nobody looked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn

from reticent import facts
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.kernel.errors import ParameterError
from reticent.records.chain import MOST_EARLIER, alone, continued, follows
from reticent.records.ledger import RunLedger, read_ledger, watched
from reticent.watching.detectors.base import Detector, Fields, Loop
from reticent.watching.detectors.moves import Moves, has_stepped
from reticent.watching.models import bare, fingerprint

_LAST: WeakKeyDictionary[nn.Module, RunLedger] = WeakKeyDictionary()
_BEGAN: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()
"""Weights at which a loop began that continued none: a model that is put back there has forgotten what followed."""
_FRESH: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
_LOST: WeakSet[nn.Module] = WeakSet()
"""Models of a loop that was watched and has no ledger."""


def drawn_anew(model: Any) -> None:
    """All weights of ``model`` were drawn anew: what was trained before is forgotten."""
    _FRESH[bare(model)] = fingerprint(model)
    _LAST.pop(bare(model), None)
    _LOST.discard(bare(model))


def lose(model: Any) -> None:
    """Nobody knows any more what moved the weights of ``model``."""
    _LOST.add(bare(model))


class Start(Detector):
    """Steps that were taken before the watch, and weights that were changed between two.

    Kind: start.

    Seen: a fingerprint of the start weights, the name of a pretrained model, weights that stay as they are, the state
    of the optimizer, the trainer's count of steps.

    Not seen: what comes [before the loop](#what-is-not-seen).

    Attributes:
        begun: whether the watch was entered.
        before: the ledger that it continues, if any.
        earlier: the loops before this one, in order.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._model, self.begun = bare(loop.model), False
        self._left: str | None = None
        """The weights that the last step left, also where an error ended it after that; None if they changed."""
        self.earlier: tuple[RunLedger, ...] = ()

    def enters(self, again: bool) -> None:
        """What was trained before; when it goes on, as for the next pass, the weights must be where they were.

        Raises:
            ParameterError: what the program declares is unknown, is no ledger, or one that ended at other weights.
        """
        now = fingerprint(self._model)
        if again:
            if self._left != now:
                self._found(facts.WEIGHTS_CHANGED)
        else:
            self._begin(now, self._loop.said.start, self._loop.said.continues, self._loop.said.trainer_step)

    def _begin(self, now: str, said: str | None, continues: Any, trainer_step: int) -> None:
        if said not in (None, "declared", "base-model"):
            raise ParameterError("start", said, "declared, base-model, or left out")
        given = None if continues is None else _ledger_of(continues)
        known = _LAST.get(self._model) if given is None and said is None else given
        if given is None and now in _BEGAN.get(self._model, ()) and known is not None and known.weights_sha256 != now:
            known = None
        self.before = before = known if known is not None and known.weights_sha256 == now else None
        if before is not None and len(before.earlier) >= MOST_EARLIER:
            hint = f"at most {MOST_EARLIER + 1} times anew for one model: enter the same watch again for each pass"
            raise ParameterError("watch", f"made {MOST_EARLIER + 2} times", hint)
        self.earlier = () if before is None else (*before.earlier, alone(before))
        if given is not None and self.before is None:
            hint = "the ledger that ended at these weights. Where they were averaged since, say start='declared' and "
            hint += "certify all ledgers together, rt.certify([first, second])"
            raise ParameterError("continues", "a ledger of other weights", hint)
        random = _FRESH.get(self._model) == now
        source = Source.DECLARED if said else Source.SEEN if random else Source.UNKNOWN
        named = getattr(getattr(self._model, "config", None), "_name_or_path", "")
        loaded = said == "base-model" or trainer_step > 0 or bool(named) or _partly_frozen(self._model)
        weights = "random" if random else "loaded" if loaded else "unknown"
        self._record, self._salt = start_at(now, weights, source, trainer_step)  # type: ignore[arg-type]
        stepped = trainer_step > 0 or has_stepped(self._optimizer) or known is not None or self._model in _LOST
        if stepped and (before is None or self._model in _LOST) and said is None:
            self._found(facts.STEPS_BEFORE)  # that no ledger knows; their momentum moves new random weights too
        elif before is None:
            _BEGAN.setdefault(self._model, set()).add(now)
        self.begun = True

    def left(self, complete: bool) -> None:
        """The weights are those of the last step, also after an error, or nobody knows them."""
        settled = complete or self._loop.of(Moves).settled()
        self._left = fingerprint(self._model) if settled else None

    def says(self) -> Fields:
        """The weights at which it began."""
        return {"start": self._record} if self.begun else {}

    def diagnostics(self) -> Fields:
        """The salt of the commitment to them."""
        return {"start_salt": self._salt}

    def close(self, run: RunLedger) -> RunLedger:
        """The ledger, with those that it continues; the next watch of this model continues it."""
        whole = continued(self.before, run) if self.before is not None and follows(run, self.before) else run
        _LAST[self._model] = whole
        if whole.weights_sha256 is None and self._left is not None:
            _LAST[self._model] = whole.model_copy(update={"weights_sha256": self._left}).sealed()
        return whole


def _partly_frozen(model: nn.Module) -> bool:
    """Whether some weights stay as they are beside trained ones, as under an adapter or a new last layer."""
    return len({p.requires_grad for p in model.parameters()}) == 2


def _ledger_of(continues: Any) -> RunLedger:
    if isinstance(continues, (str, Path)):
        continues = read_ledger(Path(continues))
    found = watched(continues)
    if found is None:
        raise ParameterError("continues", type(continues).__name__, "a watch that has ended, its ledger, or its file")
    return found
