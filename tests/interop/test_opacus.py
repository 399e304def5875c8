"""``PrivacyEngine(accountant="reticent")`` on a real model."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from opacus.accountants import create_accountant

from reticent.errors import ArtifactError, ParameterError
from reticent.interop.opacus import ReticentAccountant
from reticent.mechanism import DPSGD, Ledger, Neighbouring, Sampler
from reticent.risk import advantage


def reference(delta: float, *segments: tuple[float, float, int]) -> float:
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    for noise, rate, steps in segments:
        event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
        accountant.compose(dp_event.SelfComposedDpEvent(event, steps))
    return accountant.get_epsilon(delta)


def filled(*segments: tuple[float, float, int]) -> ReticentAccountant:
    accountant = ReticentAccountant()
    for noise, rate, steps in segments:
        for _ in range(steps):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
    return accountant


@pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:Full backward hook")
def test_engine_counts_every_step_of_a_training_run():
    from opacus import PrivacyEngine

    data = torch.utils.data.TensorDataset(torch.randn(40, 3), torch.randint(2, (40,)))
    model = torch.nn.Linear(3, 2)
    engine = PrivacyEngine(accountant="reticent")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=8),
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(3):
            for features, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(features), labels).backward()
                optimizer.step()
    assert isinstance(engine.accountant, ReticentAccountant)
    assert len(engine.accountant) == 15
    assert engine.accountant.released() == DPSGD(1.1, 0.2, 15)
    assert engine.get_epsilon(1e-5) == pytest.approx(reference(1e-5, (1.1, 0.2, 15)), rel=0.01, abs=0)


def test_epsilon_is_an_upper_bound_and_close():
    segments = ((1.0, 0.05, 60), (1.5, 0.02, 40))
    accountant = filled(*segments)
    assert accountant.history == list(segments)
    assert accountant.released() == Ledger((DPSGD(1.0, 0.05, 60), DPSGD(1.5, 0.02, 40)))
    exact = reference(1e-6, *segments)
    assert accountant.get_epsilon(1e-6) == pytest.approx(exact, rel=0.01, abs=0)
    assert accountant.get_epsilon(delta=1e-6, neighbouring=Neighbouring.REPLACE) > exact


def test_length_counts_steps_not_segments():
    """Opacus's own accountants return the number of segments."""
    accountant = filled((1.0, 0.1, 50))
    assert len(accountant) == 50
    assert len(accountant.history) == 1


def test_steps_in_another_order_give_the_same_epsilon():
    one, other = filled((1.0, 0.1, 5), (2.0, 0.1, 5)), filled((2.0, 0.1, 5), (1.0, 0.1, 5))
    assert one.get_epsilon(1e-5) == other.get_epsilon(1e-5)


def test_nothing_released_and_no_noise():
    assert ReticentAccountant().get_epsilon(1e-5) == 0.0
    assert len(ReticentAccountant()) == 0
    assert filled((0.0, 0.5, 2)).get_epsilon(1e-5) == math.inf


def test_samplers_other_than_poisson_claim_no_more_than_is_proven():
    poisson, shuffled = filled((1.0, 0.1, 20)), filled((1.0, 0.1, 20))
    shuffled.sampler = Sampler.SHUFFLED
    assert shuffled.get_epsilon(1e-5) > poisson.get_epsilon(1e-5)
    assert shuffled.released().sampler is Sampler.SHUFFLED


def test_state_round_trip_through_opacus_names():
    accountant = filled((1.0, 0.05, 6), (1.5, 0.02, 4))
    accountant.sampler = Sampler.FIXED_SIZE
    state = accountant.state_dict()
    assert state["mechanism"] == ReticentAccountant.mechanism() == "reticent"
    other = create_accountant("reticent")
    other.load_state_dict(state)
    assert other.history == accountant.history
    assert other.sampler is Sampler.FIXED_SIZE
    other.step(noise_multiplier=1.5, sample_rate=0.02)
    assert len(other) == 11
    assert len(accountant) == 10


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"mechanism": "prv", "history": []},
        {"mechanism": "reticent"},
        {"mechanism": "reticent", "history": [(1.0, 0.1)]},
        {"mechanism": "reticent", "history": [(1.0, 0.1, 0)]},
        {"mechanism": "reticent", "history": [(-1.0, 0.1, 1)]},
        {"mechanism": "reticent", "history": [(1.0, 1.1, 1)]},
        {"mechanism": "reticent", "history": [], "sampler": "weighted"},
    ],
)
def test_damaged_states_are_refused_and_change_nothing(state):
    accountant = filled((1.0, 0.05, 6))
    with pytest.raises(ArtifactError):
        accountant.load_state_dict(state)
    assert accountant.history == [(1.0, 0.05, 6)]


def test_bad_input():
    accountant = filled((1.0, 0.05, 1))
    with pytest.raises(ParameterError, match="delta"):
        accountant.get_epsilon(0.0)
    with pytest.raises(ParameterError, match="eps_error"):
        accountant.get_epsilon(1e-5, eps_error=0.1)
    with pytest.raises(ParameterError, match="sample_rate"):
        accountant.step(noise_multiplier=1.0, sample_rate=1.2)


def test_curve_under_an_adversary():
    from reticent.threat import WorstCase

    accountant = filled((1.0, 0.05, 20))
    curve = accountant.curve(WorstCase())
    assert advantage(curve) == pytest.approx(advantage(accountant.bracket().pessimistic), rel=1e-3, abs=0)
