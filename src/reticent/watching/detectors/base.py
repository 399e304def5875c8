"""What a detector is: it gets events of a loop, keeps its own state, and says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from reticent import facts
from reticent.facts import Fact
from reticent.watching import optimisers
from reticent.watching.events import Undo
from reticent.watching.hooks import Hook, guarded
from reticent.watching.steps import Steps

Undos = Iterable[Undo]
"""Each ends a part of a look."""

Fields = Mapping[str, Any]
"""Values by the names that a ledger has for them."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the program declares; see ``rt.watch``."""

    clipping: str | None = None
    sampler: str | None = None
    start: str | None = None
    continues: Any = None
    trainer_step: int = 0
    draws_ahead: bool = False
    sensitive: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """A noisy step that is about to be taken.

    Attributes:
        measured: norms of single records and the noise are measured, which costs a pass over all gradients.
        close: it is looked at closely.
        usual: nothing that its release follows from is other than in the step before.
        noisy: the optimizer states some noise.
    """

    measured: bool
    close: bool
    usual: bool
    noisy: bool


class Detector:
    """Looks for one kind of fault.

    What a loop calls of it, events and hooks, is guarded: a detector that fails *could not look*, and ends no training.
    """

    of_opacus: ClassVar[bool] = False
    """Whether it looks at private optimizers of Opacus only."""

    @classmethod
    def fits(cls, loop: Loop) -> bool:
        """Whether it looks at this loop."""
        return loop.private or not cls.of_opacus

    def __init__(self, loop: Loop) -> None:
        """Look at what does not change.

        Raises:
            ParameterError: what is declared contradicts what is seen.
        """
        self._loop, self._found = loop, loop.found
        self._model, self._optimizer = loop.model, loop.optimizer

    def guarded(self, look: Callable[..., Any]) -> Callable[..., Any]:
        """A look that the loop may call."""
        return guarded(look, self._loop.failed)

    def hook(self, look: Callable[..., Any]) -> Hook:
        """A look that may lie in a model or an optimizer of the program."""
        return Hook(self.guarded(look))

    def enters(self, again: bool) -> None:
        """The watch is entered, for the first time or again."""

    def attach(self) -> Undos:
        """Look from now on; each of these ends a part of that."""
        return ()

    def on_pass(self) -> None:
        """A pass over the data begins."""

    def on_clip(self, size: int | None, batches: int) -> None:
        """Gradients of so many records, in so many batches, are about to be clipped."""

    def after_clip(self) -> None:
        """They were clipped."""

    def on_noise(self, step: Step) -> AbstractContextManager[Any] | None:
        """Noise is about to be added, in this context if there is one."""

    def after_noise(self) -> None:
        """Noise was added."""

    def on_scale(self) -> None:
        """The noisy gradients are about to be divided."""

    def after_scale(self, divisor: float) -> None:
        """They were divided, by this number as the optimizer states it."""

    def on_step(self) -> None:
        """The optimizer is about to move the weights."""

    def after_step(self) -> None:
        """The optimizer moved the weights."""

    def by_hand(self, skipped: bool) -> None:
        """The program says that it took a noisy step; whether batches were drawn before that belong to none."""

    def recorded(self, noise: float, norm: float, differ: bool, batches: int) -> None:
        """A step is written down that is not like the last one.

        Args:
            noise: multiplier of its noise.
            norm: of clipping.
            differ: the noise is scaled to another one.
            batches: that were drawn for it.
        """

    def left(self, complete: bool) -> None:
        """The watch is left; the loop did not end with an error if it is complete."""

    def ends(self) -> None:
        """The ledger is about to be written: look once more."""

    def says(self) -> Fields:
        """Fields of the ledger, as far as the loop ran."""
        return {}

    def facts(self) -> Fields:
        """Facts of the ledger by their keys, but for faults that were found on the way."""
        return {}

    def diagnostics(self) -> Fields:
        """Fields of its private part."""
        return {}


D = TypeVar("D", bound=Detector)


class Loop:
    """A loop that is watched, as its detectors see it.

    Attributes:
        model, optimizer, loader: of the program.
        said: what it declares.
        private: whether the optimizer is one of Opacus.
        ghost: whether that clips in the backward pass.
        faults: found so far.
        steps: noisy ones so far, but for those that wait.
        catch_up: writes down steps that wait.
        no_records: whether rows go through the model that hold no record, as the program says.
        last: fingerprint of the weights at the end, where it was reached.
    """

    def __init__(self, model: Any, optimizer: Any, loader: Any, said: Said, kinds: Iterable[type[Detector]]) -> None:
        """Let detectors of these kinds look, in this order, if they fit.

        Raises:
            ParameterError: what is declared contradicts what is seen.
        """
        self.model, self.optimizer, self.loader, self.said, self.steps = model, optimizer, loader, said, Steps()
        self.private = optimisers.is_private(optimizer)
        self.ghost = self.private and optimisers.is_ghost(optimizer)
        self.faults = set[Fact]()
        self.found = self.faults.add
        self.catch_up: Callable[[], None] = lambda: None
        self.no_records = False
        self.last: str | None = None
        self.detectors: dict[type[Detector], Detector] = {}
        for kind in kinds:
            if kind.fits(self):
                self.detectors[kind] = kind(self)

    def failed(self) -> None:
        """Somebody could not look: nobody knows what it would have found, and the worst is taken."""
        self.found(facts.NOT_FOLLOWED)

    def of(self, kind: type[D]) -> D:
        """The detector of this kind."""
        return self.detectors[kind]  # type: ignore[return-value]

    def tells(self, event: Callable[..., Any]) -> Callable[..., Any]:
        """What tells an event, one of ``Detector``, to all who listen; it gives the context that one of them wants."""
        name = event.__name__
        listen = [one for kind, one in self.detectors.items() if getattr(kind, name) is not event]
        looks = [one.guarded(getattr(one, name)) for one in listen]

        def tell(*given: Any) -> Any:
            wanted = None
            for look in looks:
                wanted = look(*given) or wanted
            return wanted

        return tell

    @property
    def count(self) -> int:
        """Noisy steps so far."""
        self.catch_up()
        return len(self.steps)
