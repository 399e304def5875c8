"""What a bridge must keep: repeats of a record, the least clip norm, both halves of a distribution."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from dp_accounting.pld import privacy_loss_distribution

from reticent.interop.opacus import ReticentAccountant
from reticent.interop.pld import from_pld
from reticent.kernel.errors import ParameterError


def test_a_saved_accountant_keeps_how_often_a_record_can_be_drawn() -> None:
    accountant = ReticentAccountant()
    accountant.repeats = 8
    accountant.step(noise_multiplier=4.0, sample_rate=0.1)
    loaded = ReticentAccountant()
    loaded.load_state_dict(accountant.state_dict())
    assert loaded.released() == accountant.released()
    assert loaded.released().noise_multiplier == 0.5


def test_changes_of_gradients_count_against_the_smallest_clip_norm() -> None:
    """A gradient change of .3 is .6 of a clip norm of .5: counted against 2 it would be .15."""
    accountant = ReticentAccountant()
    hook = accountant.get_optimizer_hook_fn(0.1)
    for norm in (2.0, 0.5, 1.0):
        hook(SimpleNamespace(noise_multiplier=1.0, max_grad_norm=norm, accumulated_iterations=1, params=[]))
    assert accountant.max_grad_norm == 0.5
    assert accountant.released().max_grad_norm == 0.5


@pytest.mark.parametrize("optimistic", ["_pmf_remove", "_pmf_add"])
def test_half_a_bound_is_none(optimistic: str) -> None:
    safe, other = (
        privacy_loss_distribution.from_gaussian_mechanism(
            2.0, sampling_prob=0.2, pessimistic_estimate=side, value_discretization_interval=1e-2
        )
        for side in (True, False)
    )
    assert from_pld(safe).pessimistic.delta(0.0) > 0.0
    setattr(safe, optimistic, getattr(other, optimistic))
    with pytest.raises(ParameterError, match="optimistic"):
        from_pld(safe)
