"""A callback for Lightning: ``Trainer(callbacks=[watch := WatchCallback()])``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reticent.kernel.errors import ParameterError, needing

with needing("reticent.watching.lightning", "lightning"):
    from lightning.pytorch.callbacks import Callback

    from reticent.watching.callbacks import Watching


class WatchCallback(Watching, Callback):
    """Watches what the Trainer really does, from the first step to the last.

    The module's ``configure_optimizers`` returns the private optimizer. After training ``rt.certify(callback)``.
    """

    _trains = "trainer.fit()"

    def __init__(self, **options: Any) -> None:
        """Args: ``options`` are keywords of ``rt.watch``."""
        super().__init__(**options)
        self._begun = False
        self._restore: Callable[[], Any] = lambda: None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Be there when the Trainer asks for its loader: it draws from it before training is said to start.

        Raises:
            ParameterError: there is not exactly one optimizer.
        """
        if len(trainer.optimizers) != 1:
            raise ParameterError("optimizers", len(trainer.optimizers), "one: each further one is another release")
        self._begun = False
        source: Any = getattr(trainer.fit_loop, "_data_source", None)
        ask = getattr(source, "dataloader", None)
        if ask is None:
            return

        def loader_of() -> Any:
            loader = ask()
            if not self._begun:
                self._begin_of(trainer, pl_module, loader)
            return loader

        source.dataloader = loader_of
        self._restore = lambda: vars(source).pop("dataloader", None)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin now if the loader could not be seen before: then it stays unknown."""
        if not self._begun:
            self._begin_of(trainer, pl_module, None)

    def _begin_of(self, trainer: Any, pl_module: Any, loader: Any) -> None:
        self._begin(pl_module, trainer.optimizers[0], loader, int(trainer.global_step))
        self._begun = True

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        """Log the risk so far with the loss, now and then; end training where a step more would exceed ``stop_at``."""
        if self._watch is None or not len(self._watch):
            return
        trainer.should_stop |= self._watch.should_stop
        if len(self._watch) % trainer.log_every_n_steps == 0 or self._watch.should_stop:
            found = self._watch.risk().metrics()
            pl_module.log_dict({name.replace("/", "_"): value for name, value in found.items()}, prog_bar=True)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write the ledger."""
        self._restore()
        if self._watch is not None:
            self._watch.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Write down what was seen until training failed."""
        self._restore()
        if self._watch is not None:
            self._watch.__exit__(type(exception), exception, exception.__traceback__)
