"""``PrivacyEngine(accountant="reticent")`` on a real model."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from opacus.accountants import create_accountant

import reticent as rt
from reticent.interop.opacus import PrivacyEngine, ReticentAccountant, get_noise_multiplier
from reticent.kernel.accountants import compose
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.kernel.samplers import Poisson
from reticent.samplers import FixedSize, RandomAllocation, Shuffled
from tests.interop.programs import made_private, trained


def reference(delta: float, *segments: tuple[float, float, int]) -> float:
    accountant = PLDAccountant(value_discretization_interval=2e-3)
    for noise, rate, steps in segments:
        event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
        accountant.compose(dp_event.SelfComposedDpEvent(event, steps))
    return accountant.get_epsilon(delta)


def filled(*segments: tuple[float, float, int]) -> ReticentAccountant:
    accountant = ReticentAccountant()
    accountant.sampler = Poisson()
    for noise, rate, steps in segments:
        for _ in range(steps):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
    return accountant


def reading(**how):
    data = torch.utils.data.TensorDataset(torch.randn(40, 3), torch.randint(2, (40,)))
    return torch.utils.data.DataLoader(data, batch_size=8, **how or {"shuffle": True})


def made(engine, loader=None, **options):
    return made_private(engine, torch.nn.Linear(3, 2), loader or reading(), **options)


opacus_remarks = pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:Full backward hook")


@opacus_remarks
def test_engine_counts_every_step_of_a_training_run():
    from opacus import PrivacyEngine

    engine = PrivacyEngine(accountant="reticent")
    model, optimizer, loader = made(engine)
    trained(model, optimizer, loader)
    engine.accountant.look_at(loader)
    assert isinstance(engine.accountant, ReticentAccountant)
    assert len(engine.accountant) == 15
    assert engine.accountant.released() == DPSGD(1.1, 0.2, 15)
    assert engine.get_epsilon(1e-5) == pytest.approx(reference(1e-5, (1.1, 0.2, 15)), rel=0.01, abs=0)


@opacus_remarks
def test_without_a_look_at_the_loader_nothing_is_taken_off_for_sampling():
    """Opacus's engine tells nobody what poisson_sampling is: the bridge must not say Poisson."""
    from opacus import PrivacyEngine

    engine = PrivacyEngine(accountant="reticent")
    model, optimizer, loader = made(engine, max_grad_norm=5.0, poisson_sampling=False)
    trained(model, optimizer, loader)
    accountant = engine.accountant
    assert accountant.released() == DPSGD(1.1, 1.0, 15, max_grad_norm=5.0)
    with pytest.warns(UserWarning, match="look_at"):
        unseen = engine.get_epsilon(1e-5)
    accountant.look_at(loader)
    run = accountant.released()
    assert run == DPSGD(1.1, 0.2, 15, max_grad_norm=5.0, sampler=Shuffled(5))
    three_passes = epsilon_at_delta(GaussianTradeOff(math.sqrt(3) / 1.1), 1e-5)
    assert engine.get_epsilon(1e-5) == pytest.approx(three_passes, rel=1e-6, abs=0)
    assert unseen > three_passes > reference(1e-5, (1.1, 0.2, 15))


@opacus_remarks
@pytest.mark.parametrize("poisson", [True, False])
def test_engine_of_this_module_sees_the_loader_and_calibrates_for_it(poisson):
    engine = PrivacyEngine()
    options = {"target_epsilon": 4.0, "target_delta": 1e-5, "epochs": 2}
    trained(*made(engine, poisson_sampling=poisson, **options), epochs=2)
    assert engine.accountant.sampler == (Poisson() if poisson else Shuffled())
    assert 3.99 < engine.get_epsilon(1e-5) <= 4.0


@opacus_remarks
@pytest.mark.parametrize("uses", [1, 2])
def test_the_loader_of_random_allocation_is_seen_without_a_watch(uses):
    """Noise for an epsilon is looked for where there are several uses: of one it takes thirty proofs."""
    loader, engine = rt.random_allocation(reading(), uses_per_epoch=uses), PrivacyEngine()
    target = {"target_epsilon": 4.0, "target_delta": 1e-5, "epochs": 1} if uses == 2 else {}
    trained(*made(engine, loader, poisson_sampling=False, **target), epochs=1)
    run = engine.accountant.released()
    assert (run.sampler, run.steps) == (RandomAllocation(5, uses_per_epoch=uses), 5)
    assert not target or 3.99 < engine.get_epsilon(1e-5) <= 4.0


@pytest.mark.parametrize("sampler", [Shuffled(), RandomAllocation()])
def test_each_pass_that_steps_of_one_noise_touch_counts(sampler):
    """Passes of 4 steps; noise 1 in steps 3 to 6, which are in two passes: a record may be used twice at noise 1."""
    accountant = filled((9.0, 0.25, 2), (1.0, 0.25, 4), (9.0, 0.25, 2))
    accountant.sampler, accountant._batches_per_epoch = sampler, 4
    assert [part.steps for part in accountant.released().parts] == [2, 8, 2]
    two = DPSGD(1.0, 0.25, 8, sampler=sampler)
    assert accountant.get_epsilon(1e-5) >= epsilon_at_delta(compose(two, Neighbouring.ADD_REMOVE).pessimistic, 1e-5)
    accountant._batches_per_epoch = None  # nobody knows where a pass begins
    assert [part.steps for part in accountant.released().parts] == [2, 8, 8]


@opacus_remarks
def test_a_weighted_sampler_counts_as_if_a_record_filled_each_batch():
    loader = reading(sampler=torch.utils.data.WeightedRandomSampler([1.0] * 40, 40))
    engine = PrivacyEngine()
    _, optimizer, loader = made(engine, loader, poisson_sampling=False)
    engine.accountant.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=0.2)
    assert engine.accountant.released() == DPSGD(1.1 / 8, 1.0, 1)
    with pytest.raises(ParameterError, match="twice"):
        made(PrivacyEngine(), loader, poisson_sampling=False, target_epsilon=3.0, target_delta=1e-5, epochs=1)


def test_noise_for_an_epsilon_is_the_least_that_calibrate_proves():
    noise = get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.02, epochs=3)
    assert reference(1e-5, (noise, 0.02, 150)) <= 2.001  # its grid errs upwards
    assert reference(1e-5, (0.98 * noise, 0.02, 150)) > 2.01
    more = get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.02, epochs=3, sampler=None)
    assert more > noise
    with pytest.raises(ParameterError, match="not both"):
        get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.02, epochs=3, steps=3)


def test_epsilon_is_an_upper_bound_and_close():
    segments = ((1.0, 0.05, 60), (1.5, 0.02, 40))
    accountant = filled(*segments)
    assert accountant.history == list(segments)
    assert len(accountant) == 100, "Opacus's own accountants return the number of segments"
    assert accountant.released() == Ledger((DPSGD(1.0, 0.05, 60), DPSGD(1.5, 0.02, 40)))
    exact = reference(1e-6, *segments)
    assert accountant.get_epsilon(1e-6) == pytest.approx(exact, rel=0.01, abs=0)
    assert accountant.get_epsilon(delta=1e-6, neighbouring=Neighbouring.REPLACE) > exact


@pytest.mark.slow
def test_steps_in_another_order_give_the_same_epsilon():
    one, other = filled((1.0, 0.1, 5), (2.0, 0.1, 5)), filled((2.0, 0.1, 5), (1.0, 0.1, 5))
    assert one.get_epsilon(1e-5) == other.get_epsilon(1e-5)


def test_nothing_released_and_no_noise():
    assert ReticentAccountant().get_epsilon(1e-5) == 0.0
    assert len(ReticentAccountant()) == 0
    assert filled((0.0, 0.5, 2)).get_epsilon(1e-5) == math.inf


def test_the_name_of_a_sampler_is_answered_with_what_to_write():
    """It was taken, and ended in an AttributeError when somebody asked for epsilon."""
    accountant = ReticentAccountant()
    wanted = r"sampler must be a sampler of reticent\.kernel\.samplers: write sampler=Poisson\(\), got 'poisson'"
    with pytest.raises(ParameterError, match=wanted):
        accountant.sampler = "poisson"
    assert accountant.sampler is None
    with pytest.raises(ParameterError, match=wanted):
        get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.02, epochs=3, sampler="poisson")


def test_state_round_trip_through_opacus_names():
    accountant = filled((1.0, 0.05, 6), (1.5, 0.02, 4))
    accountant.sampler, accountant.repeats = FixedSize(), 8
    state = accountant.state_dict()
    assert state["mechanism"] == ReticentAccountant.mechanism() == "reticent"
    other = create_accountant("reticent")
    other.load_state_dict(state)
    assert other.history == accountant.history
    assert isinstance(other.sampler, FixedSize)
    other.sampler = accountant.sampler = None
    assert other.released() == accountant.released()
    assert other.released().parts[0].noise_multiplier == 1.0 / 8
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
    with pytest.raises(ArtifactError, match=r"accountant state is (not one of mechanism|damaged)"):
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
    from reticent.kernel.adversaries import WorstCase

    accountant = filled((1.0, 0.05, 20))
    curve = accountant.curve(WorstCase())
    assert advantage(curve) == pytest.approx(advantage(accountant.bracket().pessimistic), rel=1e-3, abs=0)


def test_changes_of_gradients_count_against_the_smallest_clip_norm() -> None:
    """A gradient change of .3 is .6 of a clip norm of .5: counted against 2 it would be .15."""
    accountant = ReticentAccountant()
    hook = accountant.get_optimizer_hook_fn(0.1)
    for norm in (2.0, 0.5, 1.0):
        hook(SimpleNamespace(noise_multiplier=1.0, max_grad_norm=norm, accumulated_iterations=1, params=[]))
    assert accountant.max_grad_norm == 0.5
    assert accountant.released().max_grad_norm == 0.5
