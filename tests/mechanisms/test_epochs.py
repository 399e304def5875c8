"""Passes over the data as steps: one conversion for every door, never too few.

Theorems: RETICENT:shuffled-epochs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import reticent as rt
from reticent.calibration.samplers import Plan
from reticent.dashboard.requests import assess_of
from reticent.dashboard.state import State
from reticent.interop.opacus import ReticentAccountant
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.samplers import Poisson, Sampler
from reticent.kernel.samplers.epochs import batches_of_a_pass, epochs_to_steps, whole_batches_of_a_pass
from tests.laws.leaves import BY_NAME


def test_steps_are_never_too_few_and_at_most_one_too_many() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        size = int(rng.integers(1, 10**6))
        batch = int(rng.integers(1, size + 1))
        epochs = Fraction(int(rng.integers(1, 400)), int(rng.integers(1, 9)))
        exact = max(1, math.ceil(epochs * size / batch))
        assert epochs_to_steps(float(epochs), batch / size) == exact


@pytest.mark.parametrize("epochs", [0.0, -1.0, math.nan, math.inf, "3", 1e300])
def test_bad_epochs_are_named(epochs) -> None:
    with pytest.raises(ParameterError, match="epochs"):
        epochs_to_steps(epochs, 0.01)


def test_every_door_counts_a_step_that_was_begun() -> None:
    wanted = 23  # 100 records in batches of 7 are 14.29 steps: 1.6 passes are 22.86
    assert rt.dpsgd(noise_multiplier=1.0, batch_size=7, dataset_size=100, epochs=1.6).steps == wanted
    assert DPSGD.resolved({"batch_size": 7, "dataset_size": 100, "epochs": 1.6})["steps"] == wanted
    page = State.of({"by": "data", "dataset_size": "100", "batch_size": "7", "epochs": "1.6"})
    assert assess_of(page).mechanism.steps == wanted
    assert rt.dpsgd(noise_multiplier=1.0, batch_size=7, dataset_size=100, epochs=1.55).steps == 23  # 22.14


def test_stated_batches_of_a_pass_are_what_a_pass_takes() -> None:
    """455 records in batches of 64, the last one kept: ten passes are 80 steps, not 72, and count as ten releases."""
    given = {"batch_size": 64, "dataset_size": 455, "epochs": 10, "sampler": "shuffled", "batches_per_epoch": 8}
    run = DPSGD(noise_multiplier=1.0, **DPSGD.resolved(given))
    assert run.steps == 80
    assert run.accountable.steps == 10


@pytest.mark.parametrize("kind", [one for one in BY_NAME if one.in_passes])
@pytest.mark.parametrize(("records", "batch"), [(1000, 64), (455, 64), (1000, 600), (640, 64), (7, 7), (60001, 256)])
@pytest.mark.parametrize("epochs", [1, 2, 7, 60, 2.5])
def test_as_many_passes_are_counted_as_were_stated(
    kind: type[Sampler], records: int, batch: int, epochs: float
) -> None:
    """15.6 batches are one pass, whether the loader drops the last or keeps it; a pass that was begun is one."""
    stated = {"batch_size": batch, "dataset_size": records, "epochs": epochs, "sampler": kind.name}
    assert rt.dpsgd(noise_multiplier=1.0, **stated).accountable.steps == math.ceil(epochs)
    kept = DPSGD.resolved({**stated, "batches_per_epoch": -(-records // batch)})
    assert DPSGD(noise_multiplier=1.0, **kept).accountable.steps == math.ceil(epochs)
    state = {"by": "data", "dataset_size": str(records), "batch_size": str(batch), "epochs": str(epochs)}
    (run,) = assess_of(State.of({**state, "sampler": kind.name})).mechanism.trainings
    assert run.accountable.steps == math.ceil(epochs)
    assert Plan(records, epochs).run(kind, batch).accountable.steps == math.ceil(epochs)


@pytest.mark.parametrize("size", [10**6, 10**9 + 7, 10**10, 10**12 - 1])
def test_batches_of_a_pass_are_exact_whatever_is_left_over(size: int) -> None:
    """Next to a whole number of batches one record more is one batch more, for up to 10^12 records."""
    for batch in (1, 3, 100_000, size // 3, size // 2, size - 1, size):
        for records in (size, size // batch * batch, size // batch * batch - 1, size // batch * batch + 1):
            if batch <= records:
                assert batches_of_a_pass(batch / records) == -(-records // batch)
                assert whole_batches_of_a_pass(batch / records) == records // batch


def test_batches_that_opacus_adds_up_may_hold_a_record_more_than_once() -> None:
    """k batches of rate q are no batch of rate kq: a record that two of them drew moves the sum twice."""
    accountant = ReticentAccountant()
    accountant.sampler = Poisson()
    hook = accountant.get_optimizer_hook_fn(0.01)
    hook(SimpleNamespace(noise_multiplier=1.0, max_grad_norm=1.0, accumulated_iterations=4, params=[]))
    claimed = accountant.bracket().pessimistic
    truth = rt.WorstCase().assess(DPSGD(1.0, 0.01, 1, records_per_user=4))
    for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
        assert float(claimed.delta(epsilon)) * (1.0 + 1e-9) >= float(truth.curve.delta(epsilon))
