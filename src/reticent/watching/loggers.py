"""The risk of a training loop in TensorBoard, Weights & Biases, MLflow, a logger of Python, or a progress bar.

Each function gives what ``rt.watch(..., log=...)`` takes. No library is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from reticent.kernel.errors import UnsupportedError
from reticent.watching.live import LiveRisk, Log


def printed(loss: Callable[[], float] | None = None, write: Callable[[str], Any] = print) -> Log:
    """One line with the risk, and with the loss where ``loss`` says it.

    Args:
        loss: called for each line. A loss of the training records is computed without noise and covered by no
            guarantee: print it for yourself, and do not publish it.
        write: takes the line; ``print``, or the method of a logger.
    """

    def log(risk: LiveRisk) -> None:
        write(str(risk) if loss is None else f"{risk}; loss {float(loss()):.4g}")

    return log


def tensorboard(writer: Any) -> Log:
    """Scalars of a ``SummaryWriter``, in the group ``privacy``.

    Args:
        writer: of ``torch.utils.tensorboard`` or of another library with ``add_scalar``.

    Raises:
        UnsupportedError: it cannot take scalars.
    """
    _needs(writer, "add_scalar", "a SummaryWriter")

    def log(risk: LiveRisk) -> None:
        for name, value in risk.metrics().items():
            writer.add_scalar(name, value, risk.steps)

    return log


def wandb(run: Any = None) -> Log:
    """Metrics of a run of Weights & Biases; the numbers join the step that is being logged.

    Args:
        run: what ``wandb.init`` gave; None takes the run that is active.

    Raises:
        UnsupportedError: the library is not installed, or ``run`` is none.
    """
    known = _library("wandb") if run is None else run
    _needs(known, "log", "a run of wandb")
    return lambda risk: known.log(risk.metrics(), commit=False)


def mlflow(client: Any = None) -> Log:
    """Metrics of the active run of MLflow.

    Args:
        client: the module, or what else has ``log_metrics``; None imports it.

    Raises:
        UnsupportedError: the library is not installed, or ``client`` cannot take metrics.
    """
    known = _library("mlflow") if client is None else client
    _needs(known, "log_metrics", "mlflow")
    return lambda risk: known.log_metrics(risk.metrics(), step=risk.steps)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UnsupportedError(f"logging to {name} needs it: pip install {name} ({error})") from None


def _needs(what: Any, method: str, wanted: str) -> None:
    if not callable(getattr(what, method, None)):
        raise UnsupportedError(f"{type(what).__name__} has no {method}: give {wanted}")
