"""Event trees: nothing is lost, nothing is invented, and the numbers agree with dp_accounting's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from reticent.interop.dp_events import from_dp_event, relation, to_dp_event
from reticent.kernel.accountants import compose
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta
from reticent.mechanisms import ZCDP, Guarantee, Laplace, RandomisedResponse, Selection
from reticent.pairs import Fixed
from reticent.samplers import FixedSize, Shuffled, TruncatedPoisson

G, L = dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent
P, S, C = dp_event.PoissonSampledDpEvent, dp_event.SelfComposedDpEvent, dp_event.ComposedDpEvent
W = dp_event.SampledWithoutReplacementDpEvent

CASES = [
    (G(2.0), Gaussian(2.0)),
    (S(G(2.0), 7), Gaussian(2.0, releases=7)),
    (S(S(G(2.0), 3), 7), Gaussian(2.0, releases=21)),
    (S(L(2.0), 5), Laplace(2.0, releases=5)),
    (S(P(0.1, L(2.0)), 5), Laplace(2.0, releases=5, sample_rate=0.1)),
    (S(P(0.1, G(1.0)), 50), DPSGD(1.0, 0.1, 50)),
    (P(0.1, P(0.5, G(1.0))), DPSGD(1.0, 0.05, 1)),
    (S(P(0.1, S(G(2.0), 4)), 3), DPSGD(1.0, 0.1, 3)),
    (P(0.1, C([S(G(4.0), 3), dp_event.NoOpDpEvent(), G(4.0)])), DPSGD(2.0, 0.1, 1)),
    (C([G(3.0), S(P(0.2, G(1.5)), 4)]), Ledger((Gaussian(3.0), DPSGD(1.5, 0.2, 4)))),
    (S(C([G(3.0), L(4.0)]), 6), Ledger((Gaussian(3.0, releases=6), Laplace(4.0, releases=6)))),
    (C([S(C([S(G(3.0), 2)]), 5), dp_event.NoOpDpEvent()]), Gaussian(3.0, releases=10)),
    (C([P(0.0, G(1.0)), G(2.0)]), Gaussian(2.0)),
    (P(1.0, G(2.0)), DPSGD(2.0, 1.0, 1)),
    (dp_event.NonPrivateDpEvent(), Gaussian(0.0)),
    (dp_event.RandomizedResponseDpEvent(0.5, 2), RandomisedResponse(0.25)),
    (P(0.3, dp_event.NonPrivateDpEvent()), DPSGD(0.0, 0.3, 1)),
    (
        S(W(1000, 10, G(1.0)), 20),
        DPSGD(1.0, 0.01, 20, batch_size=10, dataset_size=1000, sampler=FixedSize()),
    ),
]


@pytest.mark.parametrize(("event", "mechanism"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_tree_to_mechanism_and_back(event, mechanism):
    assert from_dp_event(event) == mechanism
    full = mechanism == DPSGD(2.0, 1.0, 1)  # full batches are plain Gaussian releases
    assert from_dp_event(to_dp_event(mechanism)) == (Gaussian(2.0) if full else mechanism)


def dp_accounting_epsilons(event, neighbouring: Neighbouring, deltas, grid: float = 1e-3) -> list[float]:
    accountant = PLDAccountant(relation(neighbouring), value_discretization_interval=grid)
    accountant.compose(event)
    return [accountant.get_epsilon(delta) for delta in deltas]


LAW = [
    (S(G(3.0), 5), Neighbouring.ADD_REMOVE),
    (S(G(3.0), 5), Neighbouring.REPLACE),
    (S(L(6.0), 20), Neighbouring.ADD_REMOVE),
    (S(P(0.05, G(1.0)), 100), Neighbouring.ADD_REMOVE),
    (S(P(0.05, G(1.0)), 100), Neighbouring.ZERO_OUT),
    (S(P(0.05, G(1.2)), 60), Neighbouring.REPLACE),
    (C([dp_event.RandomizedResponseDpEvent(0.8, 2)] * 20), Neighbouring.REPLACE),
    (C([S(P(0.05, G(1.0)), 40), S(C([L(10.0), G(8.0)]), 3), dp_event.NoOpDpEvent()]), Neighbouring.ADD_REMOVE),
]


LONG = {1, 3, 4, 5}  # releases of a kind that another entry has


@pytest.mark.parametrize(
    ("event", "neighbouring"),
    [pytest.param(*case, marks=pytest.mark.slow if i in LONG else ()) for i, case in enumerate(LAW)],
    ids=[f"{i}-{r.value}" for i, (_, r) in enumerate(LAW)],
)
def test_tree_mechanism_tree_keeps_epsilon(event, neighbouring):
    """The law: dp_accounting's number for both trees, and our enclosure, agree within its grid error."""
    deltas = (1e-3, 1e-6)
    mechanism = from_dp_event(event)
    before = dp_accounting_epsilons(event, neighbouring, deltas)
    after = dp_accounting_epsilons(to_dp_event(mechanism), neighbouring, deltas)
    assert after == pytest.approx(before, rel=1e-3, abs=0)
    bracket = compose(mechanism, neighbouring)
    for delta, value in zip(deltas, before, strict=True):
        low = epsilon_at_delta(bracket.optimistic, delta)
        high = epsilon_at_delta(bracket.pessimistic, delta)
        # dp_accounting rounds losses up: never below the truth, and above it by little.
        assert low * (1 - 1e-9) <= value <= high * 1.01 + 2e-3
        assert low <= high <= low * 1.001 + 1e-4


def test_a_count_is_never_skipped():
    """n at once equals n one by one equals nested counts, in dp_accounting's own number."""
    once, nested = S(P(0.1, G(1.5)), 12), C([S(S(P(0.1, G(1.5)), 2), 3), *[P(0.1, G(1.5))] * 6])
    (expected,) = dp_accounting_epsilons(once, Neighbouring.ADD_REMOVE, [1e-5])
    for event in (once, nested):
        bracket = compose(from_dp_event(event), Neighbouring.ADD_REMOVE)
        assert epsilon_at_delta(bracket.pessimistic, 1e-5) == pytest.approx(expected, rel=0.01, abs=0)
    (single,) = dp_accounting_epsilons(P(0.1, G(1.5)), Neighbouring.ADD_REMOVE, [1e-5])
    assert expected > 1.5 * single


REFUSED = [
    (dp_event.UnsupportedDpEvent(), "UnsupportedDpEvent"),
    (dp_event.ZCDpEvent(0.1, 0.2), "ZCDpEvent: only a rho without a xi"),
    (dp_event.RandomizedResponseDpEvent(0.5, 3), "RandomizedResponseDpEvent"),
    (dp_event.DiscreteLaplaceDpEvent(0.5, 1), "DiscreteLaplaceDpEvent"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2]), "MixtureOfGaussiansDpEvent"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 3.0], [0.25, 0.5, 0.25]), "MixtureOfGaussiansDpEvent"),
    (dp_event.SampledWithReplacementDpEvent(100, 10, G(1.0)), "SampledWithReplacementDpEvent"),
    (P(0.1, C([G(1.0), L(1.0)])), "PoissonSampledDpEvent of ComposedDpEvent"),
    (P(0.1, W(10, 2, G(1.0))), "PoissonSampledDpEvent of SampledWithoutReplacementDpEvent"),
    (W(10, 2, P(0.1, G(1.0))), "SampledWithoutReplacementDpEvent of PoissonSampledDpEvent"),
    (dp_event.NoOpDpEvent(), "releases nothing"),
    (C([]), "releases nothing"),
    ("gaussian", "str is not a DpEvent"),
]


@pytest.mark.parametrize(("event", "message"), REFUSED, ids=[m.split(":")[0] for _, m in REFUSED])
def test_what_has_no_counterpart_is_refused_by_name(event, message):
    with pytest.raises(UnsupportedError, match=message):
        from_dp_event(event)
    if isinstance(event, dp_event.DpEvent) and "nothing" not in message:
        with pytest.raises(UnsupportedError, match=message.split(":")[0]):
            from_dp_event(C([G(1.0), S(event, 3)]))


def test_batches_that_are_cut():
    event = dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 10, 1.0)
    run = DPSGD(1.0, 0.1, 7, sampler=TruncatedPoisson(10), dataset_size=100)
    assert from_dp_event(S(event, 7)) == run
    assert to_dp_event(run) == S(event, 7)


def test_binomial_mixtures():
    """All records of a person are written so, and read back."""
    person = DPSGD(2.0, 0.05, 3, records_per_user=4)
    read = from_dp_event(to_dp_event(person))
    assert read.sample_rate == pytest.approx(0.05, rel=1e-12, abs=0)
    assert (read.noise_multiplier, read.steps, read.records_per_user) == (2.0, 3, 4)
    plain = from_dp_event(dp_event.MixtureOfGaussiansDpEvent(3.0, [2.0, 0.0], [0.25, 0.75]))
    assert (plain.noise_multiplier, plain.records_per_user) == (1.5, None)
    assert plain.sample_rate == pytest.approx(0.25, rel=1e-12, abs=0)


def test_events_of_newer_versions(monkeypatch):
    """What states an epsilon is read; a new unknown event is refused by name."""

    def newer(name, **fields):
        return type(name, (dp_event.DpEvent,), {"__init__": lambda self: self.__dict__.update(fields)})()

    assert from_dp_event(newer("EpsilonDeltaDpEvent", epsilon=1.0, delta=1e-6)) == Guarantee(1.0, 1e-6)
    assert from_dp_event(S(newer("ExponentialMechanismDpEvent", epsilon=0.5), 3)) == Guarantee(0.5, 0.0, 3)
    assert from_dp_event(newer("PermuteAndFlipDpEvent", epsilon=0.5)) == Guarantee(0.5)
    with pytest.raises(UnsupportedError, match="DiscreteGaussianDpEvent: this event is not known"):
        from_dp_event(newer("DiscreteGaussianDpEvent", sigma=1.0))
    with pytest.raises(UnsupportedError, match="no event for an epsilon"):
        to_dp_event(Guarantee(1.0))


def test_a_rho():
    """Of dp_accounting's orders it says what ours says."""
    event = S(dp_event.ZCDpEvent(0.1), 3)
    assert from_dp_event(event) == ZCDP(0.1, 3)
    assert to_dp_event(ZCDP(0.1, 3)) == event
    accountant = RdpAccountant().compose(event)
    theirs, ours = accountant.get_epsilon(1e-5), compose(ZCDP(0.1, 3), Neighbouring.ADD_REMOVE).pessimistic
    assert epsilon_at_delta(ours, 1e-5) == pytest.approx(theirs, rel=0.01, abs=0)


def test_every_event_of_dp_accounting_is_decided():
    """A new event type must be met by a decision, not by an accident."""
    decided = {type(event).__name__ for event, _ in [*CASES, *LAW, *REFUSED] if isinstance(event, dp_event.DpEvent)}
    decided |= {"TruncatedSubsampledGaussianDpEvent"}
    decided |= {"RepeatAndSelectDpEvent"}  # below
    decided |= {"SingleEpochTreeAggregationDpEvent"}  # tests/mechanisms/test_matrix.py
    decided |= {"GaussianDpEvent", "LaplaceDpEvent", "NoOpDpEvent", "PoissonSampledDpEvent", "NonPrivateDpEvent"}
    known = {c.__name__ for c in vars(dp_event).values() if isinstance(c, type) and issubclass(c, dp_event.DpEvent)}
    assert known - {"DpEvent"} <= decided


BAD = [
    (G(-1.0), "noise_multiplier"),
    (S(G(1.0), 2.5), "count must be a whole number >= 1, got 2.5"),
    (P(1.5, G(1.0)), "sampling_probability must be a number in"),
    (W(10, 11, G(1.0)), "sample_rate"),
    (W(0, 1, G(1.0)), "source_dataset_size"),
]


@pytest.mark.parametrize(("event", "message"), BAD)
def test_bad_parameters(event, message):
    with pytest.raises(ParameterError, match=message):
        from_dp_event(event)


def test_runs_that_are_not_poisson():
    shuffled = DPSGD(1.0, 0.1, 25, sampler=Shuffled())
    assert to_dp_event(shuffled) == S(G(1.0), 3)  # 2.5 epochs: three started
    with pytest.raises(UnsupportedError, match="needs dataset_size and batch_size"):
        to_dp_event(DPSGD(1.0, 0.1, 25, sampler=FixedSize()))


def test_relations():
    assert relation(Neighbouring.ADD_REMOVE) is NeighboringRelation.ADD_OR_REMOVE_ONE
    assert relation(Neighbouring.REPLACE) is NeighboringRelation.REPLACE_ONE
    assert relation(Neighbouring.ZERO_OUT) is NeighboringRelation.REPLACE_SPECIAL


def test_repeated_answers_are_spelt_out():
    """dp_accounting counts a repeated randomised response once, so its own number of ours must not rest on that."""
    tree = to_dp_event(RandomisedResponse(0.4, releases=20))
    (whole,) = dp_accounting_epsilons(tree, Neighbouring.REPLACE, [1e-3])
    truth = compose(RandomisedResponse(0.4, releases=20), Neighbouring.REPLACE).pessimistic
    assert whole == pytest.approx(epsilon_at_delta(truth, 1e-3), rel=1e-2, abs=0)
    assert from_dp_event(S(dp_event.RandomizedResponseDpEvent(0.8, 2), 20)) == RandomisedResponse(0.4, releases=20)


@pytest.mark.parametrize("shape", [math.inf, 1.0, 0.0, 2.5])
def test_repeat_and_select(shape: float) -> None:
    event = dp_event.RepeatAndSelectDpEvent(dp_event.PoissonSampledDpEvent(0.01, G(1.0)), 20.0, shape)
    assert to_dp_event(from_dp_event(event)) == event
    twice = from_dp_event(dp_event.SelfComposedDpEvent(event, 2))
    assert isinstance(twice, Ledger)
    assert len(twice.parts) == 2
    with pytest.raises(UnsupportedError, match="fixed number"):
        to_dp_event(Selection(Gaussian(1.0), Fixed(3)))


def test_a_file_is_no_mechanism() -> None:
    with pytest.raises(ParameterError, match=r"mechanism must be a mechanism, .* read files, got 'a.json'"):
        to_dp_event("a.json")  # type: ignore[arg-type]


class Tensor:
    """What TensorFlow hands out: a number behind ``__array__``, which is no Python number."""

    def __init__(self, value: float) -> None:
        self.value = np.float32(value)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self.value, dtype=dtype)


def test_a_tensor_of_tensorflow_privacy_is_the_number_that_it_holds() -> None:
    sum_event, quantile_event = dp_event.GaussianDpEvent(Tensor(1.1)), dp_event.GaussianDpEvent(Tensor(10.0))
    assert from_dp_event(sum_event) == Gaussian(float(np.float32(1.1)))
    adaptive = dp_event.ComposedDpEvent([sum_event, quantile_event])
    run = from_dp_event(S(P(0.01, adaptive), 1000))
    noise = (1.1**-2 + 10.0**-2) ** -0.5
    assert (run.sample_rate, run.steps) == (0.01, 1000)
    assert run.noise_multiplier == pytest.approx(noise, rel=1e-7, abs=0)
    assert type(run.noise_multiplier) is float
    laplace = dp_event.PoissonSampledDpEvent(0.5, dp_event.LaplaceDpEvent(Tensor(3.0)))
    assert from_dp_event(laplace).noise_multiplier == 3.0


def test_a_tensor_with_several_numbers_is_no_noise() -> None:
    with pytest.raises(ValueError, match="noise_multiplier"):
        from_dp_event(dp_event.GaussianDpEvent(np.ones(2)))
