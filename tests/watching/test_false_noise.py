"""Noise that was once certified falsely: seeds that somebody knows, draws that repeat, states that are put back."""

from __future__ import annotations

import math
import os

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError, UnsupportedError
from reticent.facts.steps import Generator
from reticent.mechanisms import DPSGD
from reticent.proofs import Status
from tests.watching.loops import (
    BATCH,
    NOISE,
    RATE,
    RECORDS,
    network,
    plain_step,
    private,
    records,
    run,
    void,
    watched,
    wide,
)


class TestSeeds:
    """Loop 3: noise that somebody else can draw again."""

    @pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, torch.Generator().initial_seed()])
    def test_a_small_or_known_seed_before_the_watch(self, seed):
        made = private()
        torch.manual_seed(seed)
        seen = watched(*made)
        assert {facts.PUBLIC_SEED, facts.PUBLIC_DRAWS} <= set(seen.ledger.faults)
        assert rt.assess(seen)[0].measure(rt.advantage).value == 1.0

    @pytest.mark.parametrize("seed", [0, 2**60 + 7])
    def test_a_seed_set_before_each_step(self, seed):
        made = private()
        seen = watched(*made, how={"after": lambda _: torch.manual_seed(seed)})
        assert facts.PUBLIC_SEED in seen.ledger.faults

    def test_a_large_seed_that_is_set_while_the_loop_runs_is_a_note(self):
        """Nobody can guess it; whether the program keeps it, nobody sees."""
        made, seeds = private(), iter(range(2**60 + 2**40 + 2**20, 2**61, 2**41 + 2**20))
        seen = watched(*made, how={"after": lambda _: torch.manual_seed(next(seeds))})
        assert facts.SEEDED_ON_THE_WAY in seen.ledger.faults
        assert seen.mechanism() == DPSGD(NOISE, RATE, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_seed_from_the_operating_system_is_none_of_these(self):
        made = private()
        torch.manual_seed(0)
        torch.seed()
        seen = watched(*made, how={"after": lambda _: torch.seed()})
        assert seen.mechanism() == DPSGD(NOISE, RATE, 12, num_parameters=44, dataset_size=RECORDS)
        assert facts.SEEDED_ON_THE_WAY in seen.ledger.faults

    def test_a_state_that_is_put_back_gives_the_same_noise(self):
        made = private()
        state = torch.get_rng_state()
        seen = watched(*made, how={"after": lambda _: torch.set_rng_state(state)})
        assert facts.REPEATED_NOISE in seen.ledger.faults
        assert void(seen)

    def test_a_public_seed_without_noise_is_said_and_repeats_nothing(self):
        made = private(poisson_sampling=False)  # whose draws do not move the generator in each step
        made[1].noise_multiplier = 0.0
        torch.manual_seed(0)
        try:
            found = watched(*made).ledger.faults
        finally:
            torch.seed()
        assert {facts.NO_NOISE, facts.PUBLIC_SEED} <= set(found)
        assert not {facts.REPEATED_NOISE, facts.NOT_FOLLOWED} & set(found)

    @pytest.mark.parametrize("read", [1, 9])
    def test_a_state_of_any_step_is_known(self, read):
        made, states = wide(), []

        def after(count):
            torch.randn(2000)
            if count == read:
                states.append(torch.get_rng_state())
            if count == 11:
                torch.set_rng_state(states[0])

        seen = watched(*made, how={"after": after})
        assert facts.REPEATED_NOISE in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize("noise_again", [True, False])
    def test_a_state_that_is_restored_between_steps_of_a_loop_of_ones_own(self, noise_again):
        """Found by the fuzzer: only seeds were looked at there. A draw that is put back at once is none."""
        model, loader, steps = network(), DataLoader(records(), batch_size=BATCH), 0
        optimizer, states = torch.optim.SGD(model.parameters(), lr=0.1), []
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                if noise_again and steps == 3:
                    torch.set_rng_state(states[1])
                if not noise_again:
                    state = torch.get_rng_state()
                    torch.randn(10)
                    torch.set_rng_state(state)
                states.append(torch.get_rng_state())
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0, batch_size=len(labels))
                steps += 1
        assert void(seen) == noise_again
        assert (facts.REPEATED_NOISE in seen.ledger.faults) == noise_again

    @pytest.mark.parametrize("more", [0, 1, 7])
    def test_a_state_of_the_generator_itself_and_a_few_numbers_more(self, more):
        """The new noise begins within the old: in the same block of the twister, at another place."""
        noise = torch.Generator()
        noise.manual_seed(2**60 + 19)
        torch.rand(300, generator=noise)
        made, states = wide(noise_generator=noise), [noise.get_state()]

        def after(count):
            if count == 5:
                noise.set_state(states[0])
                torch.rand(more, generator=noise)

        seen = watched(*made, how={"after": after})
        assert facts.REPEATED_NOISE in seen.ledger.faults

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
        assert facts.REPEATED_NOISE in seen.ledger.faults

    def test_another_generator_during_the_run_repeats_nothing(self):
        noise, other = torch.Generator(), torch.Generator()
        noise.manual_seed(2**60 + 2**31 + 37)
        other.manual_seed(2**60 + 2**32 + 2**30 + 41)
        made = wide(noise_generator=noise)
        seen = watched(*made, how={"after": lambda count: count == 6 and setattr(made[1], "generator", other)})
        assert not void(seen)

    def test_a_generator_that_is_seeded_as_it_was(self):
        made, drawn = wide(), 1000
        torch.manual_seed(2**60 + 2**30 + 31)
        torch.rand(drawn)

        def after(count):
            if count == 3:
                torch.manual_seed(2**60 + 2**30 + 31)
                torch.rand(drawn)

        seen = watched(*made, how={"after": after})
        assert facts.REPEATED_NOISE in seen.ledger.faults

    def test_batches_from_a_state_that_was_put_back_between_two_watches(self):
        """Found by the fuzzer: noise is secure, and nobody saw the generator being set."""
        found = []
        for drawn in (0, 7):
            made = private()
            rt.secure_noise(made[1])
            torch.manual_seed(2**60 + 2**29 + 37)
            torch.rand(drawn)
            found.append(facts.PUBLIC_DRAWS in watched(*made).ledger.faults)
        assert found == [False, True]

    def test_evaluation_on_the_private_loader_inside_fork_rng(self):
        """Its coins come again, and no step used them."""
        made = private()

        def look(_):
            with torch.random.fork_rng(), torch.no_grad():
                for features, _labels in made[2]:
                    made[0](features)

        seen = watched(*made, how={"after": look, "epochs": 1})
        assert not {facts.REPEATED_NOISE, facts.PUBLIC_DRAWS} & set(seen.ledger.faults)
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
        assert not {facts.REPEATED_NOISE, facts.PUBLIC_DRAWS, facts.PUBLIC_SEED} & set(seen.ledger.faults)
        assert torch.get_rng_state.__module__ == torch.set_rng_state.__module__ == "torch.random"
        kept = torch.get_rng_state()
        with torch.random.fork_rng():
            torch.seed()
            watched(*private())
        torch.set_rng_state(kept)
        assert facts.REPEATED_NOISE not in watched(*private()).ledger.faults

    def test_a_state_that_is_put_back_draws_the_same_batches(self):
        """Found by the fuzzer: with secure noise, the coins of the sampler alone came again."""
        made = private()
        rt.secure_noise(made[1])
        state = torch.get_rng_state()
        seen = watched(*made, how={"after": lambda _: torch.set_rng_state(state)})
        assert facts.PUBLIC_DRAWS in seen.ledger.faults
        assert seen.mechanism() == DPSGD(NOISE, 1.0, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_generator_of_the_program(self):
        public = watched(*private(noise_generator=torch.Generator()))
        assert facts.PUBLIC_SEED in public.ledger.faults
        secret = torch.Generator()
        secret.manual_seed(int.from_bytes(os.urandom(7), "big") + 2**56)
        kept = watched(*private(noise_generator=secret))
        assert facts.PUBLIC_SEED not in kept.ledger.faults
        assert facts.SEEDED_NOISE in kept.ledger.faults

    def test_a_seeded_sampler_alone_costs_the_amplification(self):
        made = private()
        made[2].batch_sampler.generator = torch.Generator().manual_seed(3)
        seen = watched(*made)
        assert facts.PUBLIC_SEED not in seen.ledger.faults
        assert seen.mechanism() == DPSGD(NOISE, 1.0, 12, num_parameters=44, dataset_size=RECORDS)

    def test_a_loop_of_ones_own_is_looked_at_too(self):
        model = network()
        torch.manual_seed(1)
        with rt.watch(model) as seen:
            seen.step(noise_multiplier=2.0)
        assert facts.PUBLIC_SEED in seen.ledger.faults

    def test_a_secure_source_for_the_last_step_alone_is_none_of_the_run(self):
        """Found by somebody who read the page: the source was asked when the loop had ended."""
        made = private()
        seen = watched(*made, how={"after": lambda step: rt.secure_noise(made[1]) if step == 5 else None})
        assert seen.ledger.environment.randomness is Generator.DEFAULT
        assert facts.INSECURE_GENERATOR in seen.ledger.faults

    def test_a_source_that_is_less_secure_for_some_steps_counts(self):
        """Secure at first, and not when the watch is entered again."""
        made = private()
        rt.secure_noise(made[1])
        seen = rt.watch(*made[:3])
        for _ in range(2):
            with seen:
                run(*made, epochs=1)
            vars(made[1]).pop("add_noise", None)
        assert seen.ledger.environment.randomness is Generator.DEFAULT

    @pytest.mark.parametrize("kind", [{}, {"mode": "ghost"}, {"clipping": "per_layer"}])
    def test_secure_noise_needs_no_seed(self, kind):
        made = private(**kind)
        assert rt.secure_noise(made[1]) is made[1]
        rt.secure_noise(made[1])
        torch.manual_seed(0)
        seen = watched(*made)
        assert seen.ledger.environment.randomness.startswith("secure")
        assert not {facts.PUBLIC_SEED, facts.INSECURE_GENERATOR, facts.UNKNOWN_CLIPPING} & set(seen.ledger.faults)
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
        assert facts.PUBLIC_SEED in seen.faults
        assert not seen.environment.randomness.startswith("secure")
