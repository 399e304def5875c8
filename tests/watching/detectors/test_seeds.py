"""Noise that somebody else can draw again: seeds that somebody knows, draws that repeat, states that are put back."""

from __future__ import annotations

import os
from functools import partial

import pytest
import torch

import reticent as rt
from reticent import facts
from reticent.facts.steps import Generator
from reticent.watching.detectors.seeds import Seeds, guessable
from tests.watching.loops import BY_HAND, Loop, at, passes, prepared, watched
from tests.watching.programs import NOISE, private, shuffled, wide

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

LARGE = 2**60 + 2**31
REPEATED, SEED, DRAWS = {facts.REPEATED_NOISE}, {facts.PUBLIC_SEED}, {facts.PUBLIC_DRAWS}
UNSEEN = REPEATED | SEED | DRAWS
AS_DRAWN = {"noise_multiplier": NOISE, "sample_rate": 1.0 / 6.0}
WITHOUT_SAMPLING = {"noise_multiplier": NOISE, "sample_rate": 1.0}


secured = prepared(lambda made: rt.secure_noise(made[1]))


def of_generator(make=private, moves=0):
    """Noise of a generator of the program, whose seed nobody guesses."""

    def made():
        noise = seeded(LARGE + int.from_bytes(os.urandom(3), "big"))
        torch.rand(moves, generator=noise)
        return make(noise_generator=noise)

    return made


def seeded(seed):
    return torch.Generator().manual_seed(seed)


without_noise = prepared(lambda made: setattr(made[1], "noise_multiplier", 0.0), shuffled)
"""Its draws do not move the generator in each step."""


def keeps(toy):
    toy.state = torch.get_rng_state()


def puts_back(toy):
    torch.set_rng_state(toy.state)


def of_step(read):
    """After one step a state is read, and after the last but one it is put back."""

    def after(toy):
        torch.randn(2000)
        if toy.step + 1 == read:
            keeps(toy)
        if toy.step + 1 == 11:
            puts_back(toy)

    return after


def generator_again(toy, more):
    toy.optimizer.generator.set_state(toy.state)
    torch.rand(more, generator=toy.optimizer.generator)


def of_generator_kept(toy):
    toy.state, toy.clone = toy.optimizer.generator.get_state(), toy.optimizer.generator.clone_state()


def exchanges(other):
    return at(5, lambda toy: setattr(toy.optimizer, "generator", other(toy)))


def evaluates(toy):
    """Its coins come again, and no step used them."""
    with torch.random.fork_rng(), torch.no_grad():
        for features, _ in toy.loader:
            toy.model(features)


def before_noise(toy):
    """A state of a loop of one's own, kept before each step; before the fourth the second is put back."""
    toy.states = [*getattr(toy, "states", ()), torch.get_rng_state()]
    if toy.step == 3:
        torch.set_rng_state(toy.states[1])


TWICE = {"batches": passes(2), "draws": True}
LOOPS = {
    "a seed from the operating system": Loop(
        **TWICE, after=lambda toy: torch.seed(), ran=AS_DRAWN, notes={facts.SEEDED_ON_THE_WAY}
    ),
    "a small seed before each step": Loop(**TWICE, after=lambda toy: torch.manual_seed(0), errors=SEED | REPEATED),
    "a large seed before each step": Loop(**TWICE, after=lambda toy: torch.manual_seed(2**60 + 7), errors=REPEATED),
    "a state that is put back": Loop(**TWICE, enters=keeps, after=puts_back, errors=REPEATED),
    "a public seed without noise": Loop(
        made=without_noise,
        enters=lambda toy: torch.manual_seed(0),
        errors=SEED,
        notes={facts.NO_NOISE},
        never=REPEATED | {facts.NOT_FOLLOWED},
    ),
    "a state that is restored in a loop of one's own": BY_HAND.but(before=before_noise, errors=REPEATED),
    "a seed of a loop of one's own": BY_HAND.but(enters=lambda toy: torch.manual_seed(1), errors=SEED, may=REPEATED),
    "a clone of the generator": Loop(
        made=of_generator(wide),
        **TWICE,
        enters=of_generator_kept,
        after=exchanges(lambda toy: toy.clone),
        errors=REPEATED,
    ),
    "another generator": Loop(
        made=of_generator(wide), **TWICE, after=exchanges(lambda toy: seeded(LARGE + 2**32 + 41))
    ),
    "an evaluation inside fork_rng": Loop(after=evaluates, never=UNSEEN, ran=AS_DRAWN),
    "a state that draws the same batches": Loop(
        made=secured, **TWICE, enters=keeps, after=puts_back, notes=DRAWS, ran=WITHOUT_SAMPLING
    ),
    "a generator of the program": Loop(made=of_generator(), never=SEED, notes={facts.SEEDED_NOISE}, draws=True),
    "a new generator of the program": Loop(
        made=lambda: private(noise_generator=torch.Generator()), errors=SEED, may=REPEATED, draws=True
    ),
    "a seeded sampler": Loop(
        enters=lambda toy: setattr(toy.loader.batch_sampler, "generator", seeded(3)),
        draws=True,
        never=SEED,
        ran=WITHOUT_SAMPLING,
    ),
    "a secure source for the last steps": Loop(
        **TWICE,
        after=at(4, lambda toy: rt.secure_noise(toy.optimizer)),
        ledger={"environment.randomness": Generator.DEFAULT},
        notes={facts.INSECURE_GENERATOR},
    ),
    "secure mode without a generator": Loop(
        enters=lambda toy: (setattr(toy.optimizer, "secure_mode", True), torch.manual_seed(0)),
        errors=SEED,
        may=REPEATED,
        ledger={"environment.randomness": Generator.DEFAULT},
    ),
}
LOOPS |= {f"a state of step {read}": Loop(made=wide, **TWICE, after=of_step(read), errors=REPEATED) for read in (1, 9)}
LOOPS |= {
    f"a state of the generator and {more} numbers more": Loop(
        made=of_generator(wide, moves=300),
        **TWICE,
        enters=of_generator_kept,
        after=at(4, partial(generator_again, more=more)),
        errors=REPEATED,
    )
    for more in (0, 1, 7)
}


@pytest.mark.parametrize("name", LOOPS)
def test_seeds(name):
    LOOPS[name].check()


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, torch.Generator().initial_seed()])
def test_a_small_or_known_seed_before_the_watch(seed):
    made = private()
    torch.manual_seed(seed)
    seen = watched(*made)
    assert set(seen.ledger.faults) >= SEED | DRAWS
    assert rt.assess(seen)[0].measure(rt.advantage).value == 1.0


def test_batches_from_a_state_that_was_put_back_between_two_watches():
    """Noise is secure, and nobody saw the generator being set."""
    found = []
    for drawn in (0, 7):
        made = secured()
        torch.manual_seed(2**60 + 2**29 + 37)
        torch.rand(drawn)
        found.append(facts.PUBLIC_DRAWS in watched(*made).ledger.faults)
    assert found == [False, True]


def test_seeds_that_can_be_guessed():
    assert all(map(guessable, (0, 2**32 - 1, torch.Generator().initial_seed())))
    assert not any(map(guessable, (2**32 + 123_456, 2**53 + 2**31)))


def test_a_large_seed_that_is_set_while_it_is_watched_is_a_note_and_a_small_one_is_public():
    generator, found = seeded(2**60 + 2**20 + 11), []
    seeds = Seeds([generator], found.append)
    assert not seeds.public()
    assert not found
    generator.manual_seed(2**61 + 2**21 + 12)
    assert not seeds.public()
    assert found == [facts.SEEDED_ON_THE_WAY]
    assert not seeds.public()
    assert len(found) == 1  # once for each seed
    generator.manual_seed(2**61 + 2**22 + 13)
    seeds.go_on()
    assert not seeds.public()
    assert len(found) == 1
    generator.manual_seed(7)
    assert seeds.public()
    seeds.drawn()
    assert facts.PUBLIC_SEED in found


def noise_of(generator, use="noise"):
    """A function that says whether the noise that is about to be drawn came before."""
    found: list[object] = []
    seeds = Seeds([generator], found.append, use)

    def repeats(**how):
        found.clear()
        seeds.drawn(**how)
        seeds.settle()
        return facts.REPEATED_NOISE in found

    return repeats


def test_a_generator_that_goes_back_is_seen_within_a_block():
    """Found by the fuzzer: after another number of draws the state is a new one, and the noise is the old one."""
    generator = seeded(2**60 + 2**20 + 11)
    first = noise_of(generator)
    torch.randn(7, generator=generator)
    state = generator.get_state()
    for _ in range(5):
        assert not first()
        torch.randn(700, generator=generator)
    generator.set_state(state)
    torch.randn(3, generator=generator)
    assert noise_of(generator)()
    generator.manual_seed(2**61 + 2**21 + 12)
    assert not first()


def test_noise_that_somebody_else_draws_is_looked_at_again_afterwards():
    """An add_noise of the program may put a state back before it draws; one that drew nothing repeats nothing."""
    generator = seeded(2**56 + 31)
    state, repeats = generator.get_state(), noise_of(generator)
    assert not repeats()
    assert not repeats(after=True)
    torch.randn(5000, generator=generator)
    assert not repeats(after=True)
    torch.randn(5000, generator=generator)
    assert not repeats()
    generator.set_state(state)
    assert repeats(after=True)


def test_each_use_of_a_generator_is_remembered_by_itself():
    """Draws and noise may begin at one place: the sampler's numbers are not those of the noise."""
    generator = seeded(2**59 + 13)
    noise, draws = noise_of(generator), noise_of(generator, "draws")
    torch.rand(60, generator=generator)
    state = generator.get_state()
    for _ in range(3):
        torch.rand(60, generator=generator)
        assert not draws()
        assert not noise()
    generator.set_state(state)
    torch.rand(30, generator=generator)
    assert noise()
    assert draws()


def test_draws_are_public_where_a_step_uses_them():
    """A batch that no step uses was no release: whether it came before is asked when a step used it."""
    generator = seeded(2**56 + 2**20 + 37)
    seeds = Seeds([generator], list[object]().append, "draws")
    state = generator.get_state()
    first = seeds.coins()
    generator.set_state(state)
    again = seeds.coins()
    assert not seeds.shown(again)  # the first of the two was thrown away
    assert seeds.shown(first)
    assert not seeds.shown(again)  # it stays as it was answered
    generator.manual_seed(5)
    assert seeds.shown(seeds.coins())
