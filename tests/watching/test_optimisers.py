"""What is read off a private optimizer: the noise of adaptive clipping, whose count is released beside the sum."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reticent import facts
from reticent.watching.optimisers import release_of
from tests.watching.loops import watched
from tests.watching.programs import NOISE, private


def adaptive_noise(adjusted, nominal, size):
    """The noise multiplier that is recorded of a step of adaptive ghost clipping with so many records."""
    of_opacus = {"_adjusted_noise_multiplier": adjusted, "noise_multiplier": nominal, "max_grad_norm": 1.0}
    optimizer = SimpleNamespace(**of_opacus, loss_reduction="sum")
    return release_of(optimizer, 1.0, size, 1).noise_multiplier


@pytest.mark.parametrize("size", [20, 64, 1000])
@pytest.mark.parametrize("nominal", [0.6, 1.1])
def test_gradient_and_count_of_adaptive_clipping_are_one_release(size, nominal):
    """ANDREW2021, Theorem 1: the count has noise size / 20, and a record moves it by a half."""
    adjusted = 2.0 * nominal
    both = (adjusted**-2 + (2.0 * size / 20.0) ** -2) ** -0.5
    found = adaptive_noise(adjusted, nominal, size)
    assert found == pytest.approx(both, rel=1e-12, abs=0)
    assert found < adjusted
    assert adaptive_noise(adjusted, nominal, None) == 0.0


def test_rounding_of_a_computer_is_no_other_noise():
    found = set()
    for size in range(12, 400):
        adjusted = (NOISE**-2 - (size / 10.0) ** -2) ** -0.5
        found.add(adaptive_noise(adjusted, NOISE, size))
    assert max(found) <= NOISE
    assert max(found) <= min(found) * (1 + 1e-12)
    seen = watched(*private()).ledger
    first = seen.segments[0]
    near = first.model_copy(update={"noise_multiplier": NOISE * (1 + 2e-16)})
    both = seen.model_copy(update={"segments": (first, near)})
    assert facts.CHANGED_NOISE not in both.faults
    other = seen.model_copy(update={"segments": (first, first.model_copy(update={"noise_multiplier": NOISE + 1e-6}))})
    assert facts.CHANGED_NOISE in other.faults
