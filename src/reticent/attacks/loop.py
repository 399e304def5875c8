"""Audit your own training loop: one function, the settings it claims to follow, and a verdict with p-values.

The function is called as ``train_fn(model, data, claim)`` in worker processes, about two dozen times, or until a test
has failed:

* ``model`` is a small torch module to be trained in place, by the cross-entropy of its logits;
* ``data`` is a ``torch.utils.data.TensorDataset`` of ``claim.dataset_size`` records and labels;
* ``claim`` holds the settings to train with; ``noise_multiplier`` and ``steps`` differ between calls.

Each ``step()`` of a torch optimizer on the model's parameters counts as one release: the gradient that it finds is
what the attacker sees. Loops that use no torch optimizer return the releases instead.
"""

from __future__ import annotations

import pkgutil
import traceback
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from itertools import islice
from pathlib import Path

from reticent.attacks.experiments import Experiment, experiments
from reticent.attacks.mechanics import SIGNIFICANCE, Judging, MechanicsReport
from reticent.attacks.white_box import Released, TrainFunction
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, ReticentError, WorkerError
from reticent.kernel.mechanisms import DPSGD
from reticent.tasks.engines import processes


def audit_loop(
    train_fn: TrainFunction,
    claim: DPSGD,
    *,
    significance: float = SIGNIFICANCE,
    workers: int = 2,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    timeout: float | None = None,
    whole: bool = False,
) -> MechanicsReport:
    """Is this training loop the DP-SGD that it claims to be?

    Args:
        train_fn: called as ``train_fn(model, data, claim)``; see the module. It must draw fresh randomness each time.
        claim: what the loop says that it does: Poisson sampling, with ``batch_size`` and ``dataset_size``; the noisy
            sum is divided by ``batch_size``.
        significance: probability of accusing a correct loop, at most.
        workers: processes in which the loop runs.
        seed: of the audit's own choices; the loop never sees it.
        progress: called with (runs done, runs planned).
        timeout: give up when no run has ended for this many seconds; by default never.
        whole: go on when a test has failed: every test is made, and the likely fault is a better guess.

    Returns:
        The tests that were made with their p-values; ``report.accused`` says whether the claim is refuted.

    Raises:
        UnsupportedError: the claim is not Poisson sampling.
        ParameterError: the claim lacks sizes or noise, or what the loop released does not fit it.
        WorkerError: the loop failed, or the process in which it ran was killed; one line says where.
    """
    checks.count(workers=workers)
    setup = experiments(claim, seed)
    judging = Judging(setup, significance=significance, seed=seed)
    waiting, done = iter(enumerate(setup)), 0
    pending: dict[Future[Released | str], int] = {}
    with processes(workers) as executor:
        while True:
            for number, experiment in islice(waiting, workers - len(pending)):
                pending[executor.submit(_perform, train_fn, experiment)] = number
            if not pending:
                return judging.report
            ended, _ = wait(pending, timeout=timeout, return_when=FIRST_COMPLETED)
            if not ended:
                raise WorkerError(f"no run of the loop has ended for {timeout:g} s")
            for future in ended:
                number = pending.pop(future)
                judging.see(number, _released(future, f"the process of run {number + 1} of {len(setup)}"))
            done += len(ended)
            if progress is not None:
                progress(done, len(setup))
            if judging.report.accused and not whole:
                return judging.report


def _released(future: Future[Released | str], who: str) -> Released:
    """What a run released.

    Raises:
        WorkerError: it failed, or its process died.
    """
    try:
        found = future.result()
    except BrokenExecutor:
        raise WorkerError(f"{who} died: it was killed, or ran out of memory") from None
    if isinstance(found, str):
        raise WorkerError(found)
    return found


def find_loop(name: str) -> TrainFunction:
    """The function that ``module:function`` names; the module is imported, so its code runs.

    Raises:
        ParameterError: the name has another form, or there is no such module or function.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ParameterError("function", name, "of the form module:function")
    try:
        found = pkgutil.resolve_name(name)
    except AttributeError:
        found = None
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        raise ParameterError("function", name, f"importable ({line})") from None
    if not callable(found):
        raise ParameterError("function", name, f"a function in the module {module}")
    return found


def _perform(train_fn: TrainFunction, experiment: Experiment) -> Released | str:
    """One run in a worker. Errors come back as values: one line, not the traceback of another process."""
    try:
        return experiment.perform(train_fn)
    except ReticentError as error:
        return str(error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return f"the loop failed with {line} ({Path(frame.filename).name}, line {frame.lineno})"
