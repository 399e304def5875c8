"""A callback for the Hugging Face Trainer: ``Trainer(..., callbacks=[watch := WatchCallback()])``."""

from __future__ import annotations

from typing import Any

from reticent.kernel.errors import needing

with needing("reticent.watching.huggingface", "hf"):
    from transformers import TrainerCallback

    from reticent.watching.callbacks import Watching


class WatchCallback(Watching, TrainerCallback):
    """Watches what the Trainer really does, from the first step to the last.

    The model is the one inside the Trainer; make it private before (Opacus with ``wrap_model=False``), and hand the
    private optimizer to the Trainer. After training ``rt.certify(callback)``.
    """

    _trains = "trainer.train()"

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to watch; in the Trainer model, optimizer and loader are ready now."""
        self.close()
        loader = kwargs.get("train_dataloader")
        packs = bool(getattr(args, "packing", False))  # of TRL
        self._begin(kwargs["model"], kwargs["optimizer"], loader, int(state.global_step), packs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """End training where a further step would exceed ``stop_at``."""
        control.should_training_stop |= self._watch is not None and self._watch.should_stop
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Print the risk so far with the loss."""
        if self._watch is not None and logs is not None and len(self._watch) and "loss" in logs:
            logs |= {name.replace("/", "_"): value for name, value in self._watch.risk().metrics().items()}

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the ledger."""
        if self._watch is not None:
            self._watch.__exit__(None, None, None)

    def close(self) -> None:
        """Write down what was seen of a training that was broken off, which the Trainer tells nobody."""
        if self._watch is not None and self._watch.entered:
            self._watch.__exit__(InterruptedError, None, None)
