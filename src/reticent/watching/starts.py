"""Where a loop begins: steps that were taken before, and whether the start weights are random.

A second watch of the same model continues the ledger of the first. What is left is the condition that the start
weights do not depend on the training records: ``fresh`` establishes it, ``start="declared"`` states it, and else
nobody looked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from reticent.errors import ParameterError, UnsupportedError
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.records.chain import MOST_EARLIER, alone, continued, follows
from reticent.records.ledger import RunLedger, read_ledger, watched
from reticent.watching.models import bare, fingerprint

_LAST: WeakKeyDictionary[nn.Module, RunLedger] = WeakKeyDictionary()
_BEGAN: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()
"""Weights at which a loop began that continued none: a model that is put back there has forgotten what followed."""
_FRESH: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
_LOST: WeakSet[nn.Module] = WeakSet()
"""Models of a loop that was watched and has no ledger."""


def fresh(model: Any) -> Any:
    """Draw all weights of ``model`` anew, each layer by its own ``reset_parameters``; a watch then knows that they are.

    Call it before training and before ``make_private``.

    Returns:
        The model.

    Raises:
        UnsupportedError: a parameter or buffer belongs to a layer that cannot draw it anew.
    """
    for name, layer in bare(model).named_modules():
        own = [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
        reset = getattr(layer, "reset_parameters", None)
        if own and not callable(reset):
            raise UnsupportedError(
                f"{name or 'the model'} ({type(layer).__name__}) has weights and no reset_parameters"
            )
        if own and callable(reset):
            with torch.no_grad():
                for tensor in own:
                    tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor.zero_()
            reset()
    if any(bool(p.isnan().any()) for p in bare(model).parameters()):
        raise UnsupportedError("reset_parameters of a layer does not change its weights")
    _FRESH[bare(model)] = fingerprint(model)
    _LAST.pop(bare(model), None)
    _LOST.discard(bare(model))
    return model


def lose(model: Any) -> None:
    """Nobody knows any more what moved the weights of ``model``."""
    _LOST.add(bare(model))


class Start:
    """The beginning of one watch."""

    def __init__(self, model: Any, optimizer: Any, said: str | None, continues: Any, trainer_step: int) -> None:
        """Look; nothing is changed.

        Raises:
            ParameterError: ``said`` is unknown, or ``continues`` is not a ledger, or one that ended at other weights.
        """
        if said not in (None, "declared"):
            raise ParameterError("start", said, "declared, or left out")
        self._model = bare(model)
        now = fingerprint(model)
        given = None if continues is None else _ledger_of(continues)
        known = _LAST.get(self._model) if given is None and said is None else given
        if given is None and now in _BEGAN.get(self._model, ()) and known is not None and known.weights_sha256 != now:
            known = None
        self.before = before = known if known is not None and known.weights_sha256 == now else None
        if before is not None and len(before.earlier) >= MOST_EARLIER:
            hint = f"at most {MOST_EARLIER + 1} times anew for one model: enter the same watch again for each pass"
            raise ParameterError("watch", f"made {MOST_EARLIER + 2} times", hint)
        self.earlier = () if before is None else (*before.earlier, alone(before))
        """The loops before this one, in order."""
        if given is not None and self.before is None:
            hint = "the ledger that ended at these weights. Where they were averaged since, say start='declared' and "
            hint += "certify all ledgers together, rt.certify([first, second])"
            raise ParameterError("continues", "a ledger of other weights", hint)
        random = _FRESH.get(self._model) == now
        source = Source.DECLARED if said else Source.SEEN if random else Source.UNKNOWN
        loaded = trainer_step > 0 or bool(getattr(getattr(self._model, "config", None), "_name_or_path", ""))
        weights = "random" if random else "loaded" if loaded else "unknown"
        self.record, self.salt = start_at(now, weights, source, trainer_step)  # type: ignore[arg-type]
        stepped = trainer_step > 0 or has_stepped(optimizer) or known is not None or self._model in _LOST
        self.unseen = stepped and (self.before is None or self._model in _LOST) and said is None
        """Whether steps were taken before that no ledger knows. Their momentum moves new random weights too."""
        if not self.unseen and self.before is None:
            _BEGAN.setdefault(self._model, set()).add(now)

    def close(self, run: RunLedger, left: str | None) -> RunLedger:
        """The ledger, with those that it continues; the next watch of this model continues it.

        Args:
            run: this loop.
            left: the weights that its last step left, also where an error ended it after that; None if they changed.
        """
        whole = continued(self.before, run) if self.before is not None and follows(run, self.before) else run
        _LAST[self._model] = whole
        if whole.weights_sha256 is None and left is not None:
            _LAST[self._model] = whole.model_copy(update={"weights_sha256": left}).sealed()
        return whole


def has_stepped(optimizer: Any) -> bool:
    """Whether the state of an optimizer shows that it took steps. Plain SGD keeps none."""
    states = getattr(optimizer, "state", None) or {}
    return any(_moved(state) for state in list(states.values()) if isinstance(state, dict))


def _moved(state: dict[str, Any]) -> bool:
    if state.get("step") is not None:
        return float(state["step"]) > 0.0
    return any(isinstance(value, torch.Tensor) and bool(value.any()) for value in state.values())


def _ledger_of(continues: Any) -> RunLedger:
    if isinstance(continues, (str, Path)):
        continues = read_ledger(Path(continues))
    found = watched(continues)
    if found is None:
        raise ParameterError("continues", type(continues).__name__, "a watch that has ended, its ledger, or its file")
    return found
