"""A callback for Lightning: ``Trainer(callbacks=[watch := WatchCallback()])``."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

from reticent.errors import ParameterError
from reticent.mechanism.watched_run import WatchedRun
from reticent.watch.session import Watch


class WatchCallback(Callback):
    """Watches what the Trainer really does, from the first step to the last.

    The module's ``configure_optimizers`` returns the private optimizer. After training ``rt.certify(callback)``.
    """

    def __init__(self, **options: Any) -> None:
        """Args: ``options`` are keywords of ``rt.watch``."""
        self._options = options
        self._watch: Watch | None = None

    @property
    def ledger(self) -> WatchedRun:
        """What was seen.

        Raises:
            ParameterError: nothing was trained, or training has not ended.
        """
        if self._watch is None:
            raise ParameterError("ledger", None, "read after trainer.fit()")
        return self._watch.ledger

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to watch; optimizer and loader are ready now.

        Raises:
            ParameterError: there is not exactly one optimizer.
        """
        if len(trainer.optimizers) != 1:
            raise ParameterError("optimizers", len(trainer.optimizers), "one: each further one is another release")
        optimizer, loader = trainer.optimizers[0], trainer.train_dataloader
        self._watch = Watch(pl_module, optimizer, loader, draws_ahead=True, **self._options)
        self._watch.__enter__()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write the ledger."""
        if self._watch is not None:
            self._watch.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write down what was seen until training failed."""
        if self._watch is not None:
            self._watch.__exit__(type(exception), exception, exception.__traceback__)
