"""The accountant for Flower: numbers beside dp_accounting's, states, refusals, and Flower's own strategy around it."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtr

import reticent as rt
from reticent.interop.flower import Accountant
from reticent.kernel.errors import ArtifactError, MissingError, ParameterError
from reticent.kernel.pairs import Neighbouring

DELTA = 1e-5


@dataclass(frozen=True)
class Config:
    """The fields of Flower's ``PrivacyConfig``; Flower's enumerations are texts."""

    target_delta: float = DELTA
    population_size: int = 100
    neighboring_relation: str = "add-or-remove-one"
    sampling_method: str = "no-amplification"
    max_epsilon: float | None = None


@dataclass(frozen=True)
class Event:
    noise_multiplier: float = 2.0
    sample_size: int = 10
    population_size: int = 100


POISSON = Config(sampling_method="poisson")
REPLACING = Config(sampling_method="without-replacement", neighboring_relation="replace-one")


def filled(config: Config, *rounds: tuple[Event, int], **more: Any) -> Accountant:
    accountant = Accountant(config, **more)
    for event, count in rounds:
        accountant.compose(event, count)
    return accountant


def pld(*rounds: tuple[dp_event.DpEvent, int]) -> float:
    accountant = PLDAccountant(value_discretization_interval=1e-2)
    for event, count in rounds:
        accountant.compose(event, count)
    return accountant.get_epsilon(DELTA)


def rdp(event: dp_event.DpEvent, count: int, relation: str = "ADD_OR_REMOVE_ONE") -> float:
    accountant = RdpAccountant(neighboring_relation=getattr(NeighboringRelation, relation))
    return accountant.compose(event, count).get_epsilon(DELTA)


def one_round(rate: float, noise: float, epsilon: float) -> float:
    """Delta where all others push the other way: the client moves the sum by two clip norms if it is drawn.

    (1 - q) N(0, s) + q N(2, s) exceeds e^epsilon N(0, s) above a point that the ratio of densities gives.
    """
    if epsilon <= np.log1p(-rate):
        return -np.expm1(epsilon)
    point = noise**2 / 2 * np.log((np.exp(epsilon) - 1 + rate) / rate) + 1
    none, moved = ndtr(-point / noise), ndtr((2 - point) / noise)
    return (1 - rate) * none + rate * moved - np.exp(epsilon) * none


@pytest.mark.parametrize(("noise", "rounds"), [(1.0, 1), (2.0, 20), (0.7, 3)])
def test_where_all_clients_take_part_a_round_is_one_gaussian_release(noise: float, rounds: int) -> None:
    found = filled(Config(), (Event(noise, 100), rounds)).get_epsilon(DELTA)
    gaussian = dp_event.GaussianDpEvent(noise)
    assert found == pytest.approx(pld((gaussian, rounds)), rel=2e-3, abs=0)
    assert found <= rdp(gaussian, rounds)


@pytest.mark.parametrize(("noise", "rounds"), [(1.0, 1), (2.0, 20)])
def test_a_client_that_takes_another_ones_place_counts_twice(noise: float, rounds: int) -> None:
    found = filled(Config(), (Event(noise), rounds)).get_epsilon(DELTA)
    assert found == pytest.approx(pld((dp_event.GaussianDpEvent(noise / 2), rounds)), rel=2e-3, abs=0)


@pytest.mark.parametrize(("cohort", "rounds"), [(5, 1), (10, 50), (60, 4)])
def test_poisson_cohorts(cohort: int, rounds: int) -> None:
    found = filled(POISSON, (Event(1.1, cohort), rounds)).get_epsilon(DELTA)
    event = dp_event.PoissonSampledDpEvent(cohort / 100, dp_event.GaussianDpEvent(1.1))
    assert found == pytest.approx(pld((event, rounds)), rel=5e-3, abs=0)
    assert found <= rdp(event, rounds)


@pytest.mark.parametrize(("cohort", "rounds"), [(5, 1), (10, 20), (50, 4)])
def test_replaced_clients_lie_between_an_attack_and_renyi(cohort: int, rounds: int) -> None:
    """dp_accounting's noise multiplier is over the change of the sum, which is two clip norms."""
    accountant = filled(REPLACING, (Event(2.0, cohort), rounds))
    event = dp_event.SampledWithoutReplacementDpEvent(100, cohort, dp_event.GaussianDpEvent(1.0))
    found = accountant.get_epsilon(DELTA)
    assert found <= rdp(event, rounds, "REPLACE_ONE")
    assert one_round(cohort / 100, 2.0, found) <= DELTA * (1 + 1e-6)


@pytest.mark.parametrize(("cohort", "noise"), [(10, 1.0), (50, 1.0), (90, 1.0), (10, 2.0)])
def test_uniform_cohorts_are_attained_by_others_who_push_the_other_way(cohort: int, noise: float) -> None:
    accountant = filled(Config(), (Event(noise, cohort), 1), uniform=True)
    found = accountant.get_epsilon(DELTA)
    assert one_round(cohort / 100, noise, found) == pytest.approx(DELTA, rel=1e-6, abs=0)
    for epsilon in (0.1, 1.0, 3.0):
        assert accountant.get_delta(epsilon) == pytest.approx(one_round(cohort / 100, noise, epsilon), rel=1e-6, abs=0)
    assert found <= filled(Config(), (Event(noise, cohort), 1)).get_epsilon(DELTA)


def test_counted_once_the_place_that_is_taken_is_forgotten() -> None:
    """What Flower's own accountant says of a cohort of ten among a hundred: the attack above does better."""
    counted_once = rdp(dp_event.GaussianDpEvent(1.0), 1)
    assert counted_once == pytest.approx(4.7285, rel=1e-4, abs=0)
    assert one_round(0.1, 1.0, counted_once) > 20 * DELTA


def test_rounds_of_several_kinds_compose_as_they_came() -> None:
    rounds = [(Event(1.1, 10), 4), (Event(1.1, 10), 2), (Event(2.0, 30), 5), (Event(1.1, 10), 1)]
    accountant = filled(POISSON, *rounds)
    events = [
        (dp_event.PoissonSampledDpEvent(e.sample_size / 100, dp_event.GaussianDpEvent(e.noise_multiplier)), n)
        for e, n in rounds
    ]
    assert accountant.num_releases == 12
    assert accountant.get_epsilon(DELTA) == pytest.approx(pld(*events), rel=5e-3, abs=0)
    assert accountant.get_delta(accountant.get_epsilon(DELTA)) == pytest.approx(DELTA, rel=1e-6, abs=0)
    assert len(accountant.released().parts) == 3


def test_before_the_first_round_nothing_is_spent() -> None:
    accountant = Accountant(POISSON)
    assert accountant.neighbouring is Neighbouring.ADD_REMOVE
    assert Accountant(REPLACING).neighbouring is Neighbouring.REPLACE
    assert (accountant.num_releases, accountant.get_epsilon(DELTA), accountant.get_delta(0.0)) == (0, 0.0, 0.0)
    with pytest.raises(ParameterError, match="at least one"):
        accountant.released()


def test_other_attackers_stand_beside_the_worst_case() -> None:
    accountant = filled(Config(), (Event(2.0, 100), 5))
    relaxed, worst = rt.assess(accountant.released(), ["relaxed", "worst-case"])
    found = [one.measure(rt.epsilon_at_delta, DELTA).value for one in (relaxed, worst)]
    assert found[0] < 0.9 * found[1]
    assert found[1] == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-9, abs=0)
    assert accountant.released().unit == "client"


def test_a_limit_is_exceeded_when_epsilon_is_above_it() -> None:
    event, epsilons = Event(2.0, 100), []
    for rounds in range(1, 6):
        epsilons.append(filled(Config(), (event, rounds)).get_epsilon(DELTA))
    assert epsilons == sorted(epsilons)
    accountant = filled(Config(max_epsilon=epsilons[2]), (event, 1))
    assert [accountant.would_exceed(event, count=count) for count in (1, 2, 3, 4)] == [False, False, True, True]
    assert [accountant.would_exceed(event, limit) for limit in (epsilons[1], epsilons[1] * (1 - 1e-9))] == [False, True]
    assert accountant.would_exceed(replace(event, noise_multiplier=0.5))
    assert accountant.num_releases == 1
    with pytest.raises(ParameterError, match="max_epsilon"):
        filled(Config(), (event, 1)).would_exceed(event)


@pytest.mark.parametrize(
    ("config", "more"), [(Config(max_epsilon=9.0), {}), (Config(), {"uniform": True}), (REPLACING, {})]
)
def test_a_state_goes_through_json(config: Config, more: dict[str, Any]) -> None:
    saved = filled(config, (Event(), 3), (Event(1.5), 1), (Event(), 2), **more)
    text = json.dumps(saved.state_dict())
    restored = filled(config, (Event(9.0), 7), **more)
    restored.load_state_dict(json.loads(text))
    assert json.dumps(restored.state_dict()) == text
    assert restored.released() == saved.released()


def damaged(*path: Any, to: Any = None, drop: bool = False) -> dict[str, Any]:
    state = json.loads(json.dumps(filled(Config(), (Event(), 3)).state_dict()))
    inside = state
    for name in path[:-1]:
        inside = inside[name]
    if drop:
        del inside[path[-1]]
    else:
        inside[path[-1]] = to
    return state


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        b"pickle",
        damaged("schema_version", to=2),
        damaged("backend", to="rdp"),
        damaged("orders", to=[2.0]),
        damaged("uniform", to=True),
        damaged("uniform", drop=True),
        damaged("config", "population_size", to=101),
        damaged("config", "target_delta", drop=True),
        damaged("compositions", to={}),
        damaged("compositions", 0, to=[]),
        damaged("compositions", 0, "count", to=0),
        damaged("compositions", 0, "count", to=True),
        damaged("compositions", 0, "count", drop=True),
        damaged("compositions", 0, "more", to=1),
        damaged("compositions", 0, "event", to=3),
        damaged("compositions", 0, "event", "noise_multiplier", to=-1.0),
        damaged("compositions", 0, "event", "noise_multiplier", to="2"),
        damaged("compositions", 0, "event", "noise_multiplier", to=inf),
        damaged("compositions", 0, "event", "sample_size", to=101),
        damaged("compositions", 0, "event", "sample_size", to=10.0),
        damaged("compositions", 0, "event", "population_size", to=200),
        damaged("compositions", 0, "event", "sample_rate", to=0.1),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state: Any) -> None:
    accountant = filled(Config(), (Event(), 5))
    before = accountant.state_dict()
    with pytest.raises(ArtifactError, match="accountant state"):
        accountant.load_state_dict(state)
    assert accountant.state_dict() == before


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (POISSON, "uniform"),  # such draws go with no amplification alone
        (Config(sampling_method="without-replacement"), "replace-one"),
        (Config(sampling_method="shuffled"), "poisson"),
        (Config(neighboring_relation="replace-one"), "no-amplification"),
        (Config(target_delta=0.0), "target_delta"),
        (Config(target_delta=1.0), "target_delta"),
        (Config(population_size=0), "population_size"),
        (Config(population_size=True), "population_size"),
        (Config(max_epsilon=0.0), "max_epsilon"),
        (None, "sampling_method"),
    ],
)
def test_a_config_that_says_nothing_definite_is_refused(config: Config, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        Accountant(config, uniform=word == "uniform")


@pytest.mark.parametrize(
    ("event", "count", "word"),
    [
        (Event(0.0), 1, "noise_multiplier"),
        (Event(float("nan")), 1, "noise_multiplier"),
        (Event(2.0, 0), 1, "sample_size"),
        (Event(2.0, 101), 1, "sample_size"),
        (Event(2.0, 10, 99), 1, "population_size"),
        (Event(), 0, "count"),
        (Event(), True, "count"),
        ("event", 1, "population_size"),
    ],
)
def test_an_event_that_cannot_be_is_refused_and_changes_nothing(event: Any, count: Any, word: str) -> None:
    accountant = filled(Config(max_epsilon=3.0), (Event(), 1))
    for ask in (lambda: accountant.compose(event, count), lambda: accountant.would_exceed(event, count=count)):
        with pytest.raises(ParameterError, match=word):
            ask()
    assert accountant.num_releases == 1


def test_numbers_are_asked_where_they_exist() -> None:
    accountant = filled(Config(), (Event(), 1))
    for ask in (lambda: accountant.get_epsilon(0.0), lambda: accountant.get_epsilon(1.0)):
        with pytest.raises(ParameterError, match="delta"):
            ask()
    with pytest.raises(ParameterError, match="epsilon"):
        accountant.get_delta(-1.0)


def test_what_needs_flower_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flwr.serverapp", None)
    with pytest.raises(MissingError, match=r"reticent\[flower\]"):
        Accountant(Config()).get_privacy_spent()


@pytest.fixture
def flower() -> Any:
    found = pytest.importorskip("flwr.serverapp", reason="Flower is not installed: pip install 'reticent[flower]'")
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # as ``flwr run`` does
    return found


def privacy(flower: Any, **more: Any) -> Any:
    fields = {"target_delta": DELTA, "population_size": 20, "max_epsilon": None}
    none = (flower.NeighboringRelation.ADD_OR_REMOVE_ONE, flower.SamplingMethod.NO_AMPLIFICATION)
    return flower.PrivacyConfig(**fields | more, neighboring_relation=none[0], sampling_method=none[1])


class Here:
    """A grid of clients in this process, who add 1 to each weight that they got, or ``missing`` of them nothing."""

    def __init__(self, clients: int, missing: int = 0, weights: tuple[int, ...] = (1,)) -> None:
        self.clients, self.missing, self.weights, self.seen = clients, missing, weights, []

    def get_node_ids(self) -> range:
        return range(1, self.clients + 1)

    def send_and_receive(self, messages: Any, timeout: float) -> list[Any]:
        from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

        messages = list(messages)
        self.seen.append({one.metadata.dst_node_id for one in messages})
        replies = []
        for place, one in enumerate(messages[self.missing :]):
            counted = MetricRecord({"num-examples": self.weights[place % len(self.weights)]})
            sent = ArrayRecord([part + 1.0 for part in one.content["arrays"].to_numpy_ndarrays()])
            content = RecordDict({"arrays": sent, "metrics": counted})
            replies.append(Message(content, reply_to=one))
        return replies


def strategy_with(accountant: Any, cohort: int = 5, noise: float = 2.0) -> Any:
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    drawn = FedAvg(fraction_train=0.0001, min_train_nodes=cohort, min_available_nodes=cohort, fraction_evaluate=0.0)
    return DifferentialPrivacyServerSideFixedClipping(drawn, noise, 0.5, cohort, accountant=accountant)


def start(strategy: Any, grid: Here, rounds: int, size: int = 4) -> Any:
    from flwr.app import ArrayRecord

    return strategy.start(grid, ArrayRecord([np.ones(size)]), rounds)


def test_it_has_every_member_of_flowers_protocol(flower: Any) -> None:
    members = {name: one for name, one in vars(flower.PrivacyAccountant).items() if not name.startswith("_")}
    assert len(members) == 9
    for name, one in members.items():
        ours = vars(Accountant)[name]
        assert type(ours) is type(one)
        if inspect.isfunction(one):
            wanted = inspect.signature(one).parameters.values()
            found = inspect.signature(ours).parameters.values()
            assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in wanted]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("uniform", [True, False])
def test_flowers_strategy_tells_it_each_round(flower: Any, uniform: bool) -> None:
    accountant, grid = Accountant(privacy(flower), uniform=uniform), Here(20)
    strategy = strategy_with(accountant)
    start(strategy, grid, 6)
    spent = strategy.privacy_spent()
    assert [len(cohort) for cohort in grid.seen if cohort] == [5] * 6
    assert isinstance(spent, flower.PrivacySpent)
    assert (spent.num_releases, spent.delta, spent.accounting_method) == (6, DELTA, "reticent")
    same = filled(Config(population_size=20), (Event(2.0, 5, 20), 6), uniform=uniform)
    assert spent.epsilon == pytest.approx(same.get_epsilon(DELTA), rel=1e-9, abs=0)
    assert accountant.state_dict() == same.state_dict()


@pytest.mark.filterwarnings("default")
def test_flowers_strategy_stops_before_the_budget_is_exceeded(flower: Any) -> None:
    third = filled(Config(population_size=20), (Event(2.0, 5, 20), 3), uniform=True).get_epsilon(DELTA)
    accountant = Accountant(privacy(flower, max_epsilon=third), uniform=True)
    with pytest.raises(Exception, match="would exceed max_epsilon") as stopped:
        start(strategy_with(accountant), Here(20), 10)
    assert type(stopped.value).__name__ == "PrivacyBudgetExhausted"
    assert accountant.num_releases == 3


@pytest.mark.filterwarnings("default")
def test_flower_releases_nothing_where_a_client_is_missing_or_weighs_more(flower: Any) -> None:
    accountant = Accountant(privacy(flower))
    start(strategy_with(accountant), Here(20, missing=1), 3)
    assert accountant.num_releases == 0
    with pytest.raises(ValueError, match="equal client weights"):
        start(strategy_with(accountant), Here(20, weights=(1, 2)), 1)
    assert accountant.num_releases == 0


@pytest.mark.filterwarnings("default")
def test_flowers_own_accountant_agrees_where_all_clients_take_part(flower: Any) -> None:
    """And says less where a client takes another one's place (see the attack above)."""
    own, ours = flower.RdpAccountant(privacy(flower)), Accountant(privacy(flower))
    for cohort, twice in ((20, 1.0), (10, 2.0)):
        event = flower.GaussianPrivacyEvent(2.0 / twice, cohort, 20)
        other = flower.GaussianPrivacyEvent(2.0, cohort, 20)
        for accountant, one in ((own, event), (ours, other)):
            accountant.compose(one, 3)
        assert 0.85 * own.get_epsilon(DELTA) < ours.get_epsilon(DELTA) < own.get_epsilon(DELTA)


@pytest.mark.filterwarnings("default")
def test_the_noise_of_flowers_strategy_has_the_standard_deviation_that_it_states(flower: Any) -> None:
    """Each update is clipped to the length 0.5, so all have the same mean; the noise is 2 times 0.5 over 5."""
    np.random.seed(7)
    size = 200_000
    (found,) = start(strategy_with(Accountant(privacy(flower))), Here(20), 1, size).arrays.to_numpy_ndarrays()
    assert np.mean(found) == pytest.approx(1.0 + 0.5 / size**0.5, abs=0.002)
    assert np.std(found) == pytest.approx(0.2, rel=0.01, abs=0)
