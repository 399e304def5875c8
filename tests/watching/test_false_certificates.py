"""Loops that a watch once certified falsely: each has the right number now, a fault, or a condition."""

from __future__ import annotations

import contextlib
import copy
import math
import os
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

import reticent as rt
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD
from reticent.proofs import Status
from reticent.records.watch_faults import Fault
from reticent.records.watched_run import PublicWatchedRun, WatchedRun
from reticent.watching.starts import fresh
from tests.conftest import some
from tests.watching.loops import BATCH, NOISE, RATE, RECORDS, network, plain_step, private, records, run

DELTA = 1e-5


def watched(*made, how=None, **options):
    with rt.watch(*made[:3], **options) as seen:
        run(*made, **(how or {}))
    return seen


def shuffled(**options):
    return private(DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=False, **options)


def wide(**options):
    """Its noise is longer than a block of the generator."""
    data = TensorDataset(torch.randn(RECORDS, 40), torch.randint(0, 40, (RECORDS,)))
    return private(DataLoader(data, batch_size=BATCH, shuffle=True), model=nn.Linear(40, 40), **options)


def epsilon(what):
    return rt.epsilon_at_delta(rt.assess(what)[0].curve, DELTA)


def void(seen):
    return seen.mechanism().noise_multiplier == 0.0


class TestPhases:
    """Loop 1: what ran before the watch."""

    def test_a_second_watch_of_a_model_continues_the_first(self):
        made = private()
        made[1].noise_multiplier = 0.6
        first = watched(*made)
        made[1].noise_multiplier = 3.0
        second = watched(*made)
        parts = second.mechanism().parts
        assert [(p.noise_multiplier, p.steps) for p in parts] == [(0.6, 12), (3.0, 12)]
        alone = epsilon(DPSGD(3.0, RATE, 12))
        assert epsilon(second) > epsilon(first) > 10 * alone
        assert list(second.ledger.contradictions()) == []

    def test_ledgers_of_other_processes_are_chained_by_hand(self, tmp_path):
        made = private()
        watched(*made).save(tmp_path / "first.json")
        other = private()
        other[0].load_state_dict(made[0].state_dict())
        second = watched(*other, continues=tmp_path / "first.json")
        assert second.mechanism() == DPSGD(NOISE, RATE, 24, num_parameters=44, dataset_size=RECORDS)
        third = private()
        with pytest.raises(ParameterError, match="ended at these weights"):
            watched(*third, continues=tmp_path / "first.json")

    def test_certify_takes_a_list_of_ledgers_that_meet(self, quick_documents):
        made, other = private(), private()
        first = watched(*made)
        other[0].load_state_dict(made[0].state_dict())
        second = watched(*other)
        assert Fault.STEPS_BEFORE not in second.ledger.faults
        assert "start-weights" not in second.ledger.vouches()
        whole = rt.certify([first, second])
        assert whole.verify().accepted
        assert whole.certificate.mechanism["steps"] == 24
        with pytest.raises(ParameterError, match="begin at the weights"):
            rt.certify([second, first])

    def test_a_chain_that_was_cut_or_forged_is_noticed(self):
        made = private()
        watched(*made)
        document = watched(*made).ledger.public()
        whole = PublicWatchedRun.model_validate(document)
        assert list(whole.contradictions()) == []
        assert PublicWatchedRun.model_validate(whole.model_dump(mode="json", by_alias=True)) == whole
        document["earlier"][0]["weights_sha256"] = "0" * 64
        forged = PublicWatchedRun.model_validate(document)
        assert {"digest", "earlier.0", "earlier.0.digest"} <= {field for field, _ in forged.contradictions()}

    def test_faults_of_an_earlier_loop_stay(self):
        made = private()
        torch.manual_seed(0)
        assert void(watched(*made))
        torch.seed()
        second = watched(*made)
        assert Fault.PUBLIC_SEED in second.ledger.faults
        assert void(second)

    def test_steps_of_the_optimizer_before_the_watch_are_seen_in_its_state(self):
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for features, labels in DataLoader(records(), batch_size=BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
        optimizer.zero_grad()
        with rt.watch(model, optimizer) as seen:
            seen.step(noise_multiplier=3.0)
        assert Fault.STEPS_BEFORE in seen.ledger.faults
        assert void(seen)
        with rt.watch(model, optimizer, start="declared") as told:
            told.step(noise_multiplier=3.0)
        assert not void(told)
        assert told.ledger.vouches()["start-weights"] is Status.DECLARED

    def test_momentum_betrays_steps_before(self):
        made = private()
        made[1].original_optimizer.param_groups[0]["momentum"] = 0.9
        run(*made, epochs=1)
        assert Fault.STEPS_BEFORE in watched(*made).ledger.faults

    def test_steps_between_two_watches_are_seen(self):
        made = private()
        watched(*made)
        run(*made, epochs=1)
        assert Fault.STEPS_BEFORE in watched(*made).ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    def test_gradients_that_wait_since_before_are_seen(self):
        """Found by the fuzzer: pieces of a batch that was broken off went into the first step of the next watch."""
        model, optimizer, loader, criterion = shuffled()
        features, labels = next(iter(loader))
        optimizer.signal_skip_step()
        criterion(model(features), labels).backward()
        optimizer.step()
        seen = watched(model, optimizer, loader, criterion)
        assert Fault.STEPS_BEFORE in seen.ledger.faults
        made = shuffled()
        run(*made, epochs=1)  # released, though not cleared: nothing waits
        assert Fault.STEPS_BEFORE not in watched(*made).ledger.faults

    def test_steps_that_a_trainer_says_it_took_are_seen(self):
        from reticent.watching.session import Watch

        made = private()
        with Watch(*made[:3], trainer_step=12) as seen:
            run(*made)
        assert Fault.STEPS_BEFORE in seen.ledger.faults
        assert (seen.ledger.start.weights, seen.ledger.start.trainer_step) == ("loaded", 12)

    def test_random_weights_are_checked_where_they_were_drawn_in_sight(self):
        made = private()
        fresh(made[0])
        seen = watched(*made)
        assert seen.ledger.start.weights == "random"
        assert seen.ledger.vouches()["start-weights"] is Status.CHECKED
        other = private()
        fresh(other[0])
        with torch.no_grad():
            next(other[0].parameters()).add_(1.0)
        assert "start-weights" not in watched(*other).ledger.vouches()

    def test_weights_that_cannot_be_drawn_anew_are_named(self):
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(2))

        with pytest.raises(UnsupportedError, match="Own"):
            fresh(nn.Sequential(Own()))

    def test_the_commitment_to_the_start_is_salted_and_the_salt_is_not_public(self):
        seen = watched(*private()).ledger
        assert "salt" not in seen.public()["start"]
        assert "start_salt" not in str(seen.public())
        again = watched(*private()).ledger
        assert seen.start.commitment != again.start.commitment

    def test_a_ledger_of_before_loads(self):
        document = watched(*private()).ledger.model_dump(mode="json", by_alias=True)
        del document["start"], document["diagnostics"]["start_salt"]
        old = WatchedRun.model_validate(document)
        assert old.start is None
        assert "start-weights" not in old.vouches()


class TestEnteredAgain:
    """Loop 2: one watch around each pass over the data."""

    def test_ten_entries_are_ten_passes(self):
        made = shuffled()
        watch = rt.watch(*made[:3])
        for _ in range(10):
            with watch:
                run(*made, epochs=1)
        assert watch.ledger.segments[0].passes == 10
        assert watch.mechanism().steps == 60
        assert epsilon(watch) == pytest.approx(epsilon(rt.Gaussian(NOISE, 10)), rel=1e-6, abs=0)
        assert not void(watch)

    def test_steps_between_two_entries_are_seen(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=1)
        run(*made, epochs=1, most=1)
        with watch:
            run(*made, epochs=1)
        assert void(watch)

    def test_a_write_by_data_between_two_entries_is_seen(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=1)
        next(made[0].parameters()).data.sub_(1.0)
        with watch:
            run(*made, epochs=1)
        assert Fault.WEIGHTS_CHANGED in watch.ledger.faults

    def test_entering_twice_at_once_is_refused(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            with pytest.raises(ParameterError, match="entered twice"):
                watch.__enter__()
            run(*made, epochs=1)


class TestSeeds:
    """Loop 3: noise that somebody else can draw again."""

    @pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, torch.Generator().initial_seed()])
    def test_a_small_or_known_seed_before_the_watch(self, seed):
        made = private()
        torch.manual_seed(seed)
        seen = watched(*made)
        assert {Fault.PUBLIC_SEED, Fault.PUBLIC_DRAWS} <= set(seen.ledger.faults)
        assert rt.assess(seen)[0].measure(rt.advantage).value == 1.0

    @pytest.mark.parametrize("seed", [0, 2**60 + 7])
    def test_a_seed_set_before_each_step(self, seed):
        made = private()
        seen = watched(*made, how={"after": lambda _: torch.manual_seed(seed)})
        assert Fault.PUBLIC_SEED in seen.ledger.faults

    def test_a_seed_from_the_operating_system_is_none_of_these(self):
        made = private()
        torch.manual_seed(0)
        torch.seed()
        seen = watched(*made, how={"after": lambda _: torch.seed()})
        assert seen.mechanism() == DPSGD(NOISE, RATE, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_state_that_is_put_back_gives_the_same_noise(self):
        made = private()
        state = torch.get_rng_state()
        seen = watched(*made, how={"after": lambda _: torch.set_rng_state(state)})
        assert Fault.REPEATED_NOISE in seen.ledger.faults
        assert void(seen)

    def test_a_state_between_two_looks_is_known_too(self):
        """So much is drawn around it that no look falls near it."""
        made = wide()
        states = []

        def after(count):
            torch.randn(2000)
            if count == 1:
                states.append(torch.get_rng_state())
                torch.randn(1000)
            if count == 11:
                torch.set_rng_state(states[0])

        seen = watched(*made, how={"after": after})
        assert Fault.REPEATED_NOISE in seen.ledger.faults
        assert void(seen)

    def test_a_state_of_the_generator_itself_right_after_noise(self):
        """Put back by a method that the program took before the watch: a look is taken there."""
        noise = torch.Generator()
        noise.manual_seed(2**60 + 19)
        made = wide(noise_generator=noise)
        states, put = [], noise.set_state

        def after(count):
            states.append(noise.get_state())
            torch.randn(2000, generator=noise)
            if count == 5:
                put(states[0])

        seen = watched(*made, how={"after": after})
        assert Fault.REPEATED_NOISE in seen.ledger.faults

    @pytest.mark.parametrize("when", ["before the watch", "in it"])
    def test_a_state_that_the_generator_itself_gave_between_two_looks(self, when):
        """So much is drawn around it that no look falls near it."""
        made = wide()
        states = [torch.default_generator.get_state()]
        torch.randn(1000)

        def after(count):
            torch.randn(2000)
            if count == 1 and when == "in it":
                states[0] = torch.default_generator.get_state()
            if count == 1:
                torch.randn(1000)
            if count == 11:
                torch.default_generator.set_state(states[0])

        seen = watched(*made, how={"after": after})
        assert Fault.REPEATED_NOISE in seen.ledger.faults
        assert void(seen)
        assert type(vars(torch.Generator)["set_state"]).__name__ == "method_descriptor"

    @pytest.mark.parametrize("how", ["same seed", "clone"])
    def test_a_generator_that_is_exchanged_during_the_run(self, how):
        noise = torch.Generator()
        noise.manual_seed(2**60 + 2**31 + 29)
        made = wide(noise_generator=noise)
        kept = noise.clone_state()

        def after(count):
            if count == 6:
                made[1].generator = torch.Generator() if how == "same seed" else kept
                made[1].generator.manual_seed(2**60 + 2**31 + 29) if how == "same seed" else None

        seen = watched(*made, how={"after": after})
        assert {Fault.PUBLIC_SEED, Fault.REPEATED_NOISE} <= set(seen.ledger.faults)

    def test_a_generator_that_is_seeded_as_it_was(self):
        made = wide()
        torch.manual_seed(2**60 + 2**30 + 31)

        def after(count):
            if count == 3:
                torch.manual_seed(2**60 + 2**30 + 31)
                torch.rand(1000)  # into the noise of the first step, where no look fell

        seen = watched(*made, how={"after": after})
        assert Fault.REPEATED_NOISE in seen.ledger.faults

    def test_batches_from_a_state_that_was_put_back_between_two_watches(self):
        """Found by the fuzzer: noise is secure, and nobody saw the generator being set."""
        found = []
        for drawn in (0, 7):
            made = private()
            rt.secure_noise(made[1])
            torch.manual_seed(2**60 + 2**29 + 37)
            torch.rand(drawn)
            found.append(Fault.PUBLIC_DRAWS in watched(*made).ledger.faults)
        assert found == [False, True]

    def test_evaluation_on_the_private_loader_inside_fork_rng(self):
        """Its coins come again, and no step used them."""
        made = private()

        def look(_):
            with torch.random.fork_rng(), torch.no_grad():
                for features, _labels in made[2]:
                    made[0](features)

        seen = watched(*made, how={"after": look, "epochs": 1})
        assert not {Fault.REPEATED_NOISE, Fault.PUBLIC_DRAWS} & set(seen.ledger.faults)
        assert seen.mechanism() == DPSGD(NOISE, RATE, 6, num_parameters=44, dataset_size=RECORDS)

    def test_states_that_are_put_back_before_any_noise_repeat_nothing(self):
        """Evaluation in ``fork_rng``, recomputed forward passes, and a state from before a new seed."""
        made = private()

        def after(_):
            first = torch.get_rng_state()
            torch.randn(2000)
            second = torch.get_rng_state()
            torch.randn(2000)
            with torch.random.fork_rng():
                torch.set_rng_state(first)
                torch.randn(2000)
            torch.set_rng_state(second)

        seen = watched(*made, how={"after": after})
        assert not {Fault.REPEATED_NOISE, Fault.PUBLIC_DRAWS, Fault.PUBLIC_SEED} & set(seen.ledger.faults)
        assert torch.get_rng_state.__module__ == torch.set_rng_state.__module__ == "torch.random"
        kept = torch.get_rng_state()
        with torch.random.fork_rng():
            torch.seed()
            watched(*private())
        torch.set_rng_state(kept)
        assert Fault.REPEATED_NOISE not in watched(*private()).ledger.faults

    def test_a_state_that_is_put_back_draws_the_same_batches(self):
        """Found by the fuzzer: with secure noise, the coins of the sampler alone came again."""
        made = private()
        rt.secure_noise(made[1])
        state = torch.get_rng_state()
        seen = watched(*made, how={"after": lambda _: torch.set_rng_state(state)})
        assert Fault.PUBLIC_DRAWS in seen.ledger.faults
        assert seen.mechanism() == DPSGD(NOISE, 1.0, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_generator_of_the_program(self):
        public = watched(*private(noise_generator=torch.Generator()))
        assert Fault.PUBLIC_SEED in public.ledger.faults
        secret = torch.Generator()
        secret.manual_seed(int.from_bytes(os.urandom(7), "big") + 2**56)
        kept = watched(*private(noise_generator=secret))
        assert Fault.PUBLIC_SEED not in kept.ledger.faults
        assert Fault.SEEDED_NOISE in kept.ledger.faults

    def test_a_seeded_sampler_alone_costs_the_amplification(self):
        made = private()
        made[2].batch_sampler.generator = torch.Generator().manual_seed(3)
        seen = watched(*made)
        assert Fault.PUBLIC_SEED not in seen.ledger.faults
        assert seen.mechanism() == DPSGD(NOISE, 1.0, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_loop_of_ones_own_is_looked_at_too(self):
        model = network()
        torch.manual_seed(1)
        with rt.watch(model) as seen:
            seen.step(noise_multiplier=2.0)
        assert Fault.PUBLIC_SEED in seen.ledger.faults

    @pytest.mark.parametrize("kind", [{}, {"mode": "ghost"}, {"clipping": "per_layer"}])
    def test_secure_noise_needs_no_seed(self, kind):
        made = private(**kind)
        assert rt.secure_noise(made[1]) is made[1]
        rt.secure_noise(made[1])
        torch.manual_seed(0)
        seen = watched(*made)
        assert seen.ledger.randomness.startswith("secure")
        assert not {Fault.PUBLIC_SEED, Fault.INSECURE_GENERATOR, Fault.UNKNOWN_CLIPPING} & set(seen.ledger.faults)
        assert seen.mechanism().noise_multiplier == NOISE
        assert seen.ledger.vouches()["unpredictable-noise"] is Status.CHECKED

    def test_secure_noise_is_normal_and_never_the_same(self):
        from reticent.watching.secure_noise import normal

        drawn = normal((200_001,), 3.0, torch.float64, torch.device("cpu"))
        assert float(drawn.mean()) == pytest.approx(0.0, abs=0.05)
        assert float(drawn.std()) == pytest.approx(3.0, rel=0.01, abs=0)
        assert float((drawn**4).mean()) == pytest.approx(3 * 81.0, rel=0.05, abs=0)
        assert float((drawn.abs() > 3.0).double().mean()) == pytest.approx(math.erfc(1 / math.sqrt(2)), rel=0.02, abs=0)
        halves = drawn[:65_536], drawn[65_536:131_072]  # the two numbers of each pair
        assert abs(float(torch.corrcoef(torch.stack(halves))[0, 1])) < 0.02
        assert not torch.equal(drawn, normal((200_001,), 3.0, torch.float64, torch.device("cpu")))

    def test_secure_noise_is_for_private_optimizers(self):
        with pytest.raises(ParameterError, match="make_private"):
            rt.secure_noise(torch.optim.SGD(network().parameters(), lr=0.1))
        with pytest.raises(UnsupportedError, match="adaptive"):
            rt.secure_noise(private(clipping="adaptive")[1])

    def test_secure_mode_without_a_generator_is_not_secure(self):
        made = private()
        made[1].secure_mode = True
        torch.manual_seed(0)
        seen = watched(*made).ledger
        assert Fault.PUBLIC_SEED in seen.faults
        assert not seen.randomness.startswith("secure")


def by_data(model):
    next(model.parameters()).data.sub_(0.5)


def by_exchange(model):
    p = next(model.parameters())
    p.data = p.data + 0.5


def by_vector(model):
    vector_to_parameters(parameters_to_vector(model.parameters()) * 1.5, model.parameters())


def by_assignment(model):
    state = {name: value.clone() * 1.5 for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def by_new_head(model):
    inner = getattr(model, "_module", model)
    inner[2] = nn.Linear(6, 2)


WRITES = [by_data, by_exchange, by_vector, by_assignment, by_new_head]


class TestHiddenWrites:
    """Loop 4: writes that torch does not count."""

    @pytest.mark.parametrize("write", [by_data, by_exchange, by_vector])
    def test_a_write_between_two_steps(self, write):
        made = private()
        seen = watched(*made, how={"after": lambda step: write(made[0]) if step == 3 else None})
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_after_the_last_step(self, write):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made)
            write(made[0])
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults
        assert void(seen)

    def test_a_head_from_least_squares(self):
        """The last layer overwritten by the best fit to raw records."""
        model, optimizer, loader, criterion = private()
        data = records()
        with rt.watch(model, optimizer, loader) as seen:
            run(model, optimizer, loader, criterion)
            inner = model._module
            with torch.no_grad():
                hidden = inner[1](inner[0](data.tensors[0]))
            best = torch.linalg.lstsq(hidden, nn.functional.one_hot(data.tensors[1], 2).float()).solution
            inner[2].weight.data.copy_(best.T)
        assert void(seen)

    @pytest.mark.parametrize("when", ["pre", "post"])
    def test_hooks_of_the_optimizer_that_write(self, when):
        made = private()
        inner = made[1].original_optimizer
        with rt.watch(*made[:3]) as seen:
            register = inner.register_step_pre_hook if when == "pre" else inner.register_step_post_hook
            register(lambda *_: by_data(made[0]))
            run(*made)
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults

    def test_a_row_of_a_large_layer(self):
        model = nn.Linear(300, 400)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer) as seen:
            for _ in range(2):
                model(torch.randn(4, 300)).sum().backward()
                optimizer.step()
                seen.step(noise_multiplier=1.0)
            model.weight.data[77] += 1.0
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults

    @pytest.mark.parametrize("large", [False, True])
    @pytest.mark.parametrize("back", [True, False])
    def test_a_running_mean_of_the_weights_for_evaluation(self, back, large):
        """What comes back bit for bit was not written; of a large tensor only ``evaluation`` sees all values."""
        made = wide() if large else private()
        mean = [p.detach().clone() + 0.1 for p in made[0].parameters()]
        seen = rt.watch(*made[:3])

        def put(values):
            with torch.no_grad():
                for p, value in zip(made[0].parameters(), values, strict=True):
                    p.copy_(value)

        def look(_):
            with seen.evaluation() if large else contextlib.nullcontext():
                kept = [p.detach().clone() for p in made[0].parameters()]
                put(mean)
                made[0].eval()
                made[0](made[2].dataset[0][0][None])
                made[0].train()
                put(kept if back else [value + 0.01 for value in kept])

        with seen:
            run(*made, after=look)
        assert (Fault.WEIGHTS_CHANGED in seen.ledger.faults) != back

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    def test_gradients_at_other_weights_that_came_back_in_time(self):
        """Weights that depend on all records make the gradient of each depend on all."""
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                kept = [p.detach().clone() for p in model.parameters()]
                with torch.no_grad():
                    for p in model.parameters():
                        p.add_(features.sum())
                loss = criterion(model(features), labels)
                loss.backward()
                with torch.no_grad():
                    for p, value in zip(model.parameters(), kept, strict=True):
                        p.copy_(value)
                optimizer.step()
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("swap", [True, False])
    def test_gradients_at_weights_that_were_lent_by_data(self, swap):
        """As sharpness-aware training does it; torch counts none of these writes."""
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                kept = [p.data if swap else p.data.clone() for p in model.parameters()]
                for p in model.parameters():
                    if swap:
                        p.data = p.data + features.sum()
                    else:
                        p.data.add_(features.sum())
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                for p, value in zip(model.parameters(), kept, strict=True):
                    if swap:
                        p.data = value
                    else:
                        p.data.copy_(value)
                optimizer.step()
        assert void(seen)
        assert Fault.WEIGHTS_CHANGED in seen.ledger.faults

    def test_a_functional_call_of_the_program_is_no_write(self):
        model, loader = network(), DataLoader(records(), batch_size=BATCH)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0, batch_size=BATCH)
        assert not void(seen)

    def test_evaluation_and_copies_are_no_writes(self):
        made = private()

        def look(_):
            made[0].eval()
            with torch.no_grad():
                made[0](records().tensors[0])
            copy.deepcopy(made[0]._module.state_dict())
            made[0].train()

        assert not void(watched(*made, how={"after": look}))


class TestWithoutOptimizer:
    """Loop 5: updates by hand."""

    def loop(self, updates, write, size=None):
        model, loader = network(), DataLoader(records(), batch_size=BATCH, shuffle=True)
        with rt.watch(model, None, loader) as seen:
            done = 0
            while done < updates:
                for features, labels in loader:
                    nn.functional.cross_entropy(model(features), labels).backward()
                    for p in model.parameters():
                        write(p)
                        p.grad = None
                    done += 1
                    if done == updates:
                        break
            seen.step(noise_multiplier=1.0, batch_size=size)
        return seen

    @staticmethod
    def counted(p):
        with torch.no_grad():
            p.sub_(0.1 * p.grad)

    @staticmethod
    def uncounted(p):
        p.data.sub_(0.1 * p.grad)

    @pytest.mark.parametrize("write", ["counted", "uncounted"])
    @pytest.mark.parametrize("size", [None, BATCH])
    def test_many_updates_are_not_one_step(self, write, size):
        seen = self.loop(200, getattr(self, write), size)
        truth = rt.Gaussian(1.0, 34)  # passes, were there noise
        assert void(seen) or epsilon(seen) >= epsilon(truth)

    def test_updates_after_the_last_step(self):
        model = network()
        with rt.watch(model) as seen:
            seen.step(noise_multiplier=1.0)
            for p in model.parameters():
                p.data.sub_(0.1)
        assert Fault.UNRECORDED_STEPS in seen.ledger.faults

    def test_one_update_for_each_step_is_right(self):
        model = network()
        with rt.watch(model) as seen:
            for _ in range(5):
                for p in model.parameters():
                    with torch.no_grad():
                        p.mul_(0.99).sub_(0.1)
                seen.step(noise_multiplier=1.0)
        assert Fault.UNRECORDED_STEPS not in seen.ledger.faults


class RunningMean(nn.Module):
    def __init__(self, learns=True):
        super().__init__()
        self.learns = learns
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        if self.learns and self.training:
            self.mean.lerp_(x.mean(0).detach(), 0.1)
        return x - self.mean


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0, keepdim=True)


class TestBuffersAndMixing:
    """Loop 6: what clipping does not reach."""

    def loop(self, first, loss=None, dropout=0.0):
        model = nn.Sequential(first, nn.Linear(4, 6), nn.Dropout(dropout), nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, DataLoader(records(), batch_size=BATCH)) as seen:
            for features, labels in DataLoader(records(), batch_size=BATCH):
                optimizer.zero_grad()
                (loss or nn.functional.cross_entropy)(model(features), labels).backward()
                optimizer.step()
                seen.step(noise_multiplier=1.0, batch_size=BATCH)
        return set(seen.ledger.faults)

    def test_buffers_that_learn(self):
        assert Fault.BUFFERS_LEARNT in self.loop(RunningMean())
        assert Fault.BUFFERS_LEARNT not in self.loop(RunningMean(learns=False))

    def test_records_mixed_in_the_forward_pass(self):
        assert Fault.MIXES_RECORDS in self.loop(Centred())
        assert Fault.MIXES_RECORDS not in self.loop(nn.Identity(), dropout=0.5)

    def test_records_mixed_in_the_loss(self):
        def spread(logits, labels):
            return nn.functional.cross_entropy(logits, labels) + logits.mean(0).square().sum()

        assert Fault.MIXES_RECORDS in self.loop(nn.Identity(), spread)
        for fine in (nn.CrossEntropyLoss(reduction="sum"), lambda a, b: (a[:, 0] - b).square().mean()):
            assert Fault.MIXES_RECORDS not in self.loop(nn.Identity(), fine)

    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
    def test_records_mixed_in_a_loop_of_opacus(self, mode):
        class Mixing(nn.CrossEntropyLoss):
            def forward(self, logits, labels):
                return super().forward(logits - logits.mean(0), labels)

        model, optimizer, loader, criterion = private(mode=mode)
        if mode == "ghost":
            criterion.criterion = Mixing(reduction="none")
        else:
            criterion = Mixing()
        assert Fault.MIXES_RECORDS in watched(model, optimizer, loader, criterion).ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    @pytest.mark.parametrize("together", [True, False])
    def test_two_batches_in_one_backward_pass(self, mode, together):
        """Opacus adds the gradients at one place of both batches: whoever leaves moves a clipped pair by up to 2 C."""
        model, optimizer, loader, criterion = private(mode=mode)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                if len(labels) < 4:
                    continue
                half = len(labels) // 2
                parts = [(features[:half], labels[:half]), (features[half : 2 * half], labels[half : 2 * half])]
                optimizer.zero_grad()
                if together:
                    sum(criterion(model(x), y) for x, y in parts).backward()
                else:
                    criterion(model(features), labels).backward()
                optimizer.step()
        assert (Fault.MIXES_RECORDS in seen.ledger.faults) == together


class TestLookingHarmsNothing:
    """The look at a record alone leaves no trace in the loop."""

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("wrap", [True, False])
    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
    def test_a_model_that_is_one_layer(self, mode, wrap):
        from opacus import PrivacyEngine

        found = []
        for look in (True, False):
            torch.manual_seed(5)
            model = nn.Linear(4, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with pytest.warns(UserWarning, match="Secure RNG"):
                made = PrivacyEngine().make_private(
                    module=model,
                    optimizer=optimizer,
                    data_loader=DataLoader(records(), batch_size=BATCH),
                    noise_multiplier=NOISE,
                    max_grad_norm=1.0,
                    grad_sample_mode=mode,
                    criterion=nn.CrossEntropyLoss(),
                    wrap_model=wrap,
                )
            _, private_optimizer, *criterion, loader = made
            criterion = criterion[0] if criterion else nn.CrossEntropyLoss()
            called = made[0] if wrap else model
            if look:
                with rt.watch(called, private_optimizer, loader):
                    run(called, private_optimizer, loader, criterion)
            else:
                run(called, private_optimizer, loader, criterion)
            torch.seed()
            found.append(parameters_to_vector(model.parameters()).detach())
        assert torch.equal(*found)

    def test_hooks_of_the_program_see_their_own_passes_only(self):
        model, seen = network(), []
        for layer in model:
            layer.register_full_backward_hook(lambda *_: seen.append(1))
            layer.register_forward_hook(lambda *_: seen.append(2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer) as ledger:
            inputs = torch.randn(5, 4, requires_grad=True)
            model(inputs).square().sum().backward()
            optimizer.step()
            ledger.step(noise_multiplier=1.0)
        assert sorted(seen) == [1] * 3 + [2] * 3


class TestReplaced:
    """Loop 7: noise, gradients, data and schedules that are not what they seem."""

    def test_noise_replaced_on_the_object_before_the_watch(self):
        made = private()

        def quiet():
            for p in made[1].params:
                p.grad = p.summed_grad.view_as(p)

        made[1].add_noise = quiet
        seen = watched(*made)
        assert {Fault.UNKNOWN_CLIPPING, Fault.TOO_LITTLE_NOISE} <= set(seen.ledger.faults)
        assert void(seen)

    def test_noise_replaced_on_the_object_between_two_entries(self):
        """Found by the fuzzer: steps after the first eight were not measured."""
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=2)

        def quiet():
            for p in made[1].params:
                p.grad = p.summed_grad.view_as(p).clone()

        made[1].add_noise = quiet
        with watch:
            run(*made, epochs=1)
        assert {Fault.UNKNOWN_CLIPPING, Fault.TOO_LITTLE_NOISE} <= set(watch.ledger.faults)

    @pytest.mark.parametrize("share", [0.0, 0.5])
    def test_noise_replaced_in_opacus(self, share, monkeypatch):
        import opacus.optimizers.optimizer as inside

        made, own = private(), inside._generate_noise
        monkeypatch.setattr(inside, "_generate_noise", lambda std, *a, **k: own(max(share * std, 1e-9), *a, **k))
        seen = watched(*made)
        assert Fault.TOO_LITTLE_NOISE in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize("how", ["step_hook", "early", "late", "data"])
    def test_a_hook_that_adds_the_noiseless_sum(self, how):
        made = private()

        def add(*_):
            for p in made[1].params:
                if how == "data":
                    p.grad.data.add_(p.summed_grad.view_as(p))
                else:
                    p.grad = p.grad + p.summed_grad.view_as(p)

        if how == "step_hook":
            made[1].attach_step_hook(add)
        elif how in ("early", "data"):
            made[1].original_optimizer.register_step_pre_hook(add)
        with rt.watch(*made[:3]) as seen:
            if how == "late":
                made[1].original_optimizer.register_step_pre_hook(add)
            run(*made)
        assert Fault.CHANGED_GRADIENTS in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize(
        ("make", "poisson"), some([*product(("subset", "concat", "both"), (True, False))], 0, 3, 4)
    )
    def test_one_record_many_times(self, make, poisson):
        data = records()
        listed = {
            "subset": Subset(data, [0] * 6 + list(range(54))),
            "concat": ConcatDataset([Subset(data, range(10))] * 6),
            "both": Subset(ConcatDataset([data, data]), [0, 60, *range(1, 59)]),
        }[make]
        most = {"subset": 7, "concat": 6, "both": 2}[make]
        seen = watched(*private(DataLoader(listed, batch_size=BATCH, shuffle=True), poisson_sampling=poisson))
        assert seen.ledger.sampler.copies == most
        assert Fault.REPEATED_RECORDS in seen.ledger.faults
        assert seen.mechanism().records_per_user == most
        assert epsilon(seen) > epsilon(watched(*(private() if poisson else shuffled())))

    @pytest.mark.parametrize("said", ["poisson", "fixed-size", "shuffled"])
    def test_one_record_many_times_where_draws_are_declared(self, said):
        """A loader whose draws nobody knows still shows which records it lists twice."""
        data, model = records(), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        own = [list(range(start, start + BATCH)) for start in range(0, 2 * RECORDS, BATCH)]
        loader = DataLoader(ConcatDataset([data, data]), batch_sampler=own)
        with rt.watch(model, optimizer, loader, sampler=said) as seen:
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                seen.step(noise_multiplier=NOISE, **({} if said == "shuffled" else {"sample_rate": RATE}))
        assert seen.ledger.sampler.copies == 2
        assert Fault.REPEATED_RECORDS in seen.ledger.faults
        assert seen.mechanism().records_per_user == 2

    def test_one_record_many_times_from_the_second_pass_on(self):
        """A curriculum that changes its Subset while it trains."""
        subset = Subset(records(), list(range(RECORDS)))
        made = private(DataLoader(subset, batch_size=BATCH, shuffle=True))

        def narrow(count):
            if count == 6:
                subset.indices[:] = [0, 1, 2] * 20

        seen = watched(*made, how={"after": narrow})
        assert seen.ledger.sampler.copies == 20
        assert Fault.REPEATED_RECORDS in seen.ledger.faults

    def test_records_listed_once_are_not_repeated(self):
        data = records()
        for listed in (Subset(data, range(60)), ConcatDataset([data, records(1)]), list(range(60))):
            assert rt.watch(network(), None, DataLoader(listed))._recorder.sampler.copies is None

    def test_a_list_that_holds_one_record_often(self):
        one, other = (torch.zeros(4), 0), (torch.ones(4), 1)
        assert rt.watch(network(), None, DataLoader([one, one, other]))._recorder.sampler.copies == 2

    def test_a_learning_rate_that_follows_a_metric(self):
        made = private()
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(made[1])
        seen = watched(*made, how={"after": lambda _: schedule.step(1.0)})
        assert Fault.METRIC_SCHEDULE in seen.ledger.faults
        other = private()
        fixed = torch.optim.lr_scheduler.StepLR(other[1], 2)
        assert Fault.METRIC_SCHEDULE not in watched(*other, how={"after": lambda _: fixed.step()}).ledger.faults

    def test_features_that_are_trained_outside_of_the_model(self):
        model, optimizer, loader, criterion = private()
        encoder = nn.Linear(4, 4)
        beside = torch.optim.SGD(encoder.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(model(encoder(features)), labels).backward()
                optimizer.step()
                beside.step()
        assert {Fault.TRAINED_OUTSIDE, Fault.OTHER_MODEL} <= set(seen.ledger.faults)
        assert void(seen)


class TestFalseAlarms:
    """Loop 8, and what is refused at the door."""

    @pytest.mark.filterwarnings("ignore")
    def test_adaptive_ghost_clipping_keeps_its_noise(self):
        from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping

        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, criterion, loader = PrivacyEngineAdaptiveClipping().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=DataLoader(records(), batch_size=30),
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
            criterion=nn.CrossEntropyLoss(),
        )
        seen = watched(model, optimizer, loader, criterion, how={"epochs": 6})
        assert Fault.CHANGED_NOISE not in seen.ledger.faults
        assert [s.noise_multiplier for s in seen.ledger.segments] == [pytest.approx(NOISE, rel=1e-12, abs=0)]

    def test_rounding_of_a_computer_is_no_other_noise(self):
        from types import SimpleNamespace

        from reticent.watching.optimisers import _noise

        found = set()
        for size in range(12, 400):
            adjusted = (NOISE**-2 - (size / 10.0) ** -2) ** -0.5
            found.add(_noise(SimpleNamespace(_adjusted_noise_multiplier=adjusted, noise_multiplier=NOISE), size))
        assert max(found) <= NOISE
        assert max(found) <= min(found) * (1 + 1e-12)
        seen = watched(*private()).ledger
        first = seen.segments[0]
        near = first.model_copy(update={"noise_multiplier": NOISE * (1 + 2e-16)})
        both = seen.model_copy(update={"segments": (first, near)})
        assert Fault.CHANGED_NOISE not in set(both.demanded())
        other = seen.model_copy(
            update={"segments": (first, first.model_copy(update={"noise_multiplier": NOISE + 1e-6}))}
        )
        assert Fault.CHANGED_NOISE in set(other.demanded())

    def test_a_wrong_optimizer_is_refused_at_the_door(self):
        made = private()
        with pytest.raises(ParameterError, match="private one"):
            rt.watch(made[0], made[1].original_optimizer, made[2])
        with pytest.raises(ParameterError, match="private one"):
            rt.watch(made[0], None, made[2])
        with pytest.raises(ParameterError, match="parameters of this model"):
            rt.watch(network(), torch.optim.SGD(network().parameters(), lr=0.1))
        with pytest.raises(ParameterError, match="optimizer of torch"):
            rt.watch(network(), "adam")
