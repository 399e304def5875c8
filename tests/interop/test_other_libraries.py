"""Events as JAX-Privacy 2.0.0 and 2.2.0 and TensorFlow Privacy 0.9.0 make them; docs/howto has where they come from."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event

from reticent.interop.dp_events import from_dp_event
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.samplers import FixedSize, TruncatedPoisson

GAUSSIAN = dp_event.GaussianDpEvent(1.1)
FIXED = dp_event.SampledWithoutReplacementDpEvent(source_dataset_size=5000, sample_size=50, event=GAUSSIAN)
REPLACED = dp_event.SampledWithReplacementDpEvent(source_dataset_size=5000, sample_size=50, event=GAUSSIAN)
TRUNCATED = dp_event.TruncatedSubsampledGaussianDpEvent(
    dataset_size=5000, sampling_probability=0.01, truncated_batch_size=80, noise_multiplier=1.1
)


class Tensor:
    """What TensorFlow hands out: a number behind ``__array__``, which is no Python number."""

    def __init__(self, value: float) -> None:
        self.value = np.float32(value)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.value, dtype=dtype)


def repeated(event: dp_event.DpEvent, count: int = 1000) -> dp_event.DpEvent:
    return dp_event.SelfComposedDpEvent(event, count)


@pytest.mark.parametrize(
    ("event", "mechanism"),
    [
        (repeated(dp_event.PoissonSampledDpEvent(0.01, GAUSSIAN)), DPSGD(1.1, 0.01, 1000)),
        (repeated(dp_event.PoissonSampledDpEvent(0.01, GAUSSIAN), 250), DPSGD(1.1, 0.01, 250)),  # four bands
        (repeated(FIXED), DPSGD(1.1, 0.01, 1000, batch_size=50, dataset_size=5000, sampler=FixedSize())),
    ],
)
def test_events_of_jax_privacy(event, mechanism) -> None:
    assert from_dp_event(event) == mechanism


def test_cut_batches_of_jax_privacy() -> None:
    run = from_dp_event(repeated(TRUNCATED))
    assert (type(run.sampler), run.steps) == (TruncatedPoisson, 1000)


@pytest.mark.parametrize(("event", "name"), [(REPLACED, "SampledWithReplacement")])
def test_events_of_jax_privacy_that_are_refused_by_name(event, name) -> None:
    with pytest.raises(UnsupportedError, match=name):
        from_dp_event(repeated(event))


def test_a_tensor_of_tensorflow_privacy_is_the_number_that_it_holds() -> None:
    sum_event, quantile_event = dp_event.GaussianDpEvent(Tensor(1.1)), dp_event.GaussianDpEvent(Tensor(10.0))
    assert from_dp_event(sum_event) == Gaussian(float(np.float32(1.1)))
    adaptive = dp_event.ComposedDpEvent([sum_event, quantile_event])
    run = from_dp_event(repeated(dp_event.PoissonSampledDpEvent(0.01, adaptive)))
    noise = (1.1**-2 + 10.0**-2) ** -0.5
    assert (run.sample_rate, run.steps) == (0.01, 1000)
    assert run.noise_multiplier == pytest.approx(noise, rel=1e-7, abs=0)
    assert type(run.noise_multiplier) is float
    laplace = dp_event.PoissonSampledDpEvent(0.5, dp_event.LaplaceDpEvent(Tensor(3.0)))
    assert from_dp_event(laplace).noise_multiplier == 3.0


def test_a_tensor_with_several_numbers_is_no_noise() -> None:
    with pytest.raises(ValueError, match="noise_multiplier"):
        from_dp_event(dp_event.GaussianDpEvent(np.ones(2)))
