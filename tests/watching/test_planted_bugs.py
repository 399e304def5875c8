"""Small facts that a loop's ledger stands on, each of which a planted bug once survived."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.optimizers import optimizer as opacus_optimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import ConcatDataset, DataLoader, Subset

import reticent as rt
from reticent import facts
from reticent.certificates.language import language_of
from reticent.certificates.page import render_html
from reticent.certificates.words import people
from reticent.facts.steps import Drawn, SamplerRecord, Segment, Source
from reticent.records.ledger import RunLedger
from reticent.watching.detectors import weights
from reticent.watching.detectors.base import Loop, Said
from reticent.watching.detectors.samplers import copies
from reticent.watching.detectors.seeds import Seeds, guessable
from reticent.watching.steps import SeenStep, Steps
from tests.watching.loops import BATCH, NOISE, RECORDS, adaptive_noise, network, private, records, run, watched


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_pieces_of_a_step_count_with_the_largest_clip_norm():
    """The first piece is clipped to 2, the second to 1, and the noise is scaled to 1: half of the multiplier."""
    model, optimizer, loader, criterion = private(DataLoader(records(), batch_size=RECORDS), poisson_sampling=False)
    own = optimizer.clip_and_accumulate
    pieces = []

    with (
        rt.watch(model, optimizer, loader) as seen,
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=RECORDS // 2, optimizer=optimizer) as small,
    ):
        for index, (features, labels) in enumerate(small):
            optimizer.max_grad_norm = 2.0 if index == 0 else 1.0
            pieces.append(len(labels))
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
    assert pieces == [RECORDS // 2] * 2
    assert own is not None
    assert [s.noise_multiplier for s in seen.ledger.segments] == [NOISE / 2.0]
    assert facts.CLIP_AND_NOISE_DIFFER in seen.ledger.faults
    assert seen.ledger.clipping.largest == 2.0


def step(noise, rate=None, norm=1.0):
    return SeenStep(noise, norm, None, rate, None, None, 1, None)


@pytest.mark.parametrize("count", [1025, 1500, 5000])
def test_very_many_levels_of_noise_are_rounded_down(count):
    steps, levels = Steps(), [1.0 + index / count for index in range(count)]
    for noise in np.random.default_rng(0).permutation(levels):
        steps.add(step(float(noise)))
    found = steps.segments(None)
    assert len(found) <= 1024
    assert sum(s.steps for s in found) == count
    stated = sorted(s.noise_multiplier for s in found for _ in range(s.steps))
    assert all(low <= real for low, real in zip(stated, levels, strict=True))
    assert sum(s**-2 for s in stated) <= 1.02 * sum(s**-2 for s in levels)


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


def test_weights_overwritten_after_the_last_step():
    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made)
        with torch.no_grad():
            next(made[0].parameters()).add_(1.0)
    assert facts.WEIGHTS_CHANGED in seen.ledger.faults


def test_a_stated_rate_counts_only_with_poisson():
    with rt.watch(network()) as seen:
        for _ in range(3):
            seen.step(noise_multiplier=2.0, sample_rate=0.1)
    assert [s.sample_rate for s in seen.ledger.segments] == [None]
    model = network()
    loader = DataLoader(records(), batch_size=BATCH, shuffle=True)
    with rt.watch(model, None, loader) as shuffled:
        for _ in loader:
            shuffled.step(noise_multiplier=2.0, sample_rate=0.1)
    assert [s.sample_rate for s in shuffled.ledger.segments] == [None]
    assert RunLedger.from_json(shuffled.to_json()) == shuffled.ledger


def test_rates_below_that_of_the_record_are_kept_for_each_segment():
    steps = Steps()
    steps.add(step(1.0, 0.1))
    steps.add(step(1.0, 0.2))
    assert [s.sample_rate for s in steps.segments(0.2)] == [0.1, None]
    assert steps.rates == {0.1, 0.2}


def test_clip_norms_are_remembered_from_the_least_to_the_largest():
    steps = Steps()
    for norm in (2.0, 0.5, 1.0):
        steps.add(step(1.0, norm=norm))
    assert steps.clip_norms == (0.5, 2.0)


def test_seeds_that_can_be_guessed():
    known = (0, 2**32 - 1, 2**32, 2**53, 2**60, torch.Generator().initial_seed())
    assert all(map(guessable, known))  # the lower 32 bits of 2^60 are 0
    assert not any(map(guessable, (2**32 + 123_456, 2**53 + 2**31)))


def generator_of(seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def test_a_large_seed_that_is_set_while_it_is_watched_is_a_note_and_a_small_one_is_public():
    generator, found = generator_of(2**60 + 2**20 + 11), []
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


def test_a_large_seed_after_a_small_one_is_no_second_one():
    """A program that seeds with 0 and then asks the operating system is better off than before."""
    generator, found = generator_of(0), []
    seeds = Seeds([generator], found.append)
    assert seeds.public()
    generator.manual_seed(2**61 + 2**21 + 12)
    assert not seeds.public()
    assert found == []


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
    generator = generator_of(2**60 + 2**20 + 11)
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


@pytest.mark.parametrize(("more", "seen"), [(0, True), (300, True), (1300, False)])
def test_a_generator_that_went_back_before_the_next_watch_began(more, seen):
    """Noise of 5,000 numbers: what begins within it after more than a block of 624 others is not seen."""
    generator = generator_of(2**58 + 17 + more)
    torch.rand(1, generator=generator)  # a seed alone is no place in a block
    first, state = noise_of(generator), generator.get_state()
    for _ in range(3):
        assert not first()
        torch.randn(5000, generator=generator)
    generator.set_state(state)
    second = noise_of(generator)
    torch.rand(more, generator=generator)
    assert second() == seen
    generator.manual_seed(2**57 + 23 + more)
    assert not second()


def test_a_clone_of_a_generator_goes_back_too():
    generator = generator_of(2**56 + 29)
    other = generator.clone_state()
    torch.rand(5, generator=generator)
    assert not noise_of(generator)()
    torch.rand(5, generator=other)
    assert noise_of(other)()


def test_noise_that_somebody_else_draws_is_looked_at_again_afterwards():
    """An add_noise of the program may put a state back before it draws; one that drew nothing repeats nothing."""
    generator = generator_of(2**56 + 31)
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
    generator = generator_of(2**59 + 13)
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
    generator = generator_of(2**56 + 2**20 + 37)
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


def touched():
    """What a watch must leave alone, as it is now."""
    kinds = (torch.Generator, torch.Tensor, torch.nn.Module, torch.optim.lr_scheduler.ReduceLROnPlateau)
    kinds += (torch.utils.data.DataLoader, DPOptimizer, GradSampleModule, opacus_optimizer, torch, torch.random)
    return {(kind, name): id(value) for kind in kinds for name, value in dict(vars(kind)).items()}


def test_types_and_modules_of_others_stay_as_they_are():
    made = private()
    kinds = [type(made[1]), type(made[2])]
    run(*made, epochs=1)  # torch imports some of its modules late
    before = touched()
    during = []
    with rt.watch(*made[:3]):
        run(*made, epochs=1, after=lambda _: during.append(touched() == before))
    assert during
    assert all(during)
    assert touched() == before
    assert [type(made[1]), type(made[2])] == kinds
    assert not made[1].original_optimizer._optimizer_step_pre_hooks
    assert not made[1].original_optimizer._optimizer_step_post_hooks
    assert not vars(made[1]).keys() & {"add_noise", "pre_step", "clip_and_accumulate", "step"}


def test_windows_on_a_large_tensor_hit_each_row_and_move_on():
    layer = torch.nn.Linear(300, 400)
    watched = weights.Weights(layer)
    for row in (0, 7, 399):
        layer.weight.data[row] += 1.0
        assert watched.written()
        watched.keep()
        assert not watched.written()
    missed = 0
    for _ in range(4 * 300):  # each fourth step others of the 300 columns are looked at
        layer.weight.data[5, 5] += 1.0
        missed += not watched.written()
        watched.keep()
    assert missed < 4 * 300  # in one turn or another every value is looked at


def test_a_write_that_torch_counts_is_seen_at_any_place():
    layer = torch.nn.Linear(300, 400)
    watched = weights.Weights(layer)
    for column in (5, 6, 7):  # no two of them are looked at in one turn
        with torch.no_grad():
            layer.weight[5, column] += 1.0
        assert watched.written()
        watched.keep()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_weights_of_any_type_are_compared(dtype):
    layer = torch.nn.Linear(3, 2).to(dtype)
    watched = weights.Weights(layer)
    assert not watched.written()
    layer.bias.data[1] += 1.0
    assert watched.written()


def test_a_parameter_that_is_not_contiguous_is_compared():
    layer = torch.nn.Linear(3, 2)
    layer.weight = torch.nn.Parameter(torch.randn(3, 2).t())
    watched = weights.Weights(layer)
    layer.weight.data[0, 2] += 1.0
    assert not watched.written()  # that is asked in the end: it may have to wait for a device
    assert watched.apart_written()


def test_another_object_on_the_same_memory_is_a_write():
    layer = torch.nn.Linear(3, 2)
    watched = weights.Weights(layer)
    layer.weight = torch.nn.Parameter(layer.weight.data)
    assert watched.written()


def test_buffers_are_compared_whole_and_counters_are_not():
    model = torch.nn.BatchNorm1d(4)
    watched = weights.Buffers(Loop(model, None, None, Said(), ()))
    watched.enters(again=False)
    model.num_batches_tracked += 1
    assert not watched.learnt()
    model.running_mean[2] += 1e-3
    assert watched.learnt()


def test_copies_of_a_record_are_counted_through_layers():
    data, other = records(), records(1)
    assert copies(data) == 1
    assert copies(Subset(data, [3, 3, 3, 1])) == 3
    assert copies(ConcatDataset([data, other])) == 1
    assert copies(ConcatDataset([data, other, data])) == 2
    assert copies(Subset(ConcatDataset([data, data]), [0, RECORDS, RECORDS])) == 3
    assert copies(ConcatDataset([Subset(data, [0, 1]), Subset(data, [1, 2])])) == 2
    assert copies(None) == 1


def ledger(segment, **sampler):
    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1)
    record = SamplerRecord(source=Source.SEEN, name="x", **sampler)
    return seen.ledger.model_copy(update={"segments": (segment,), "sampler": record})


def test_copies_multiply_what_is_protected_together_and_state_nothing_of_persons():
    segment = Segment(noise_multiplier=2.0, steps=5)
    run_ = ledger(segment, drawn="poisson", sample_rate=0.1, copies=3)
    assert (run_.mechanism().records, run_.mechanism().records_per_user) == (3, None)
    of_four = run_.model_copy(update={"records_per_user": 4}).mechanism()
    assert (of_four.records, of_four.records_per_user) == (12, 4)
    assert run_.mechanism().sample_rate == 0.1


def test_a_page_about_copies_does_not_say_that_somebody_declared_them(quick_documents):
    data = Subset(records(), [*range(RECORDS), 3, 3])
    seen = watched(*private(DataLoader(data, batch_size=BATCH, shuffle=True)))
    assert seen.mechanism().records == 3
    certificate = rt.certify(seen).certificate
    assert str(people(certificate)).startswith(
        "Nothing is stated about how many records a person contributed. The data list"
    )
    stated = rt.certify(watched(*private(), records_per_user=3)).certificate
    assert str(people(stated)) == "The issuer declares: each person contributed at most 3 records."
    assert str(people(certificate)) in render_html(certificate)
    assert "führen einen Datensatz bis zu 3-mal auf" in render_html(certificate, language_of("de"))


def test_draws_that_are_public_amplify_nothing():
    segment = Segment(noise_multiplier=2.0, steps=5)
    run_ = ledger(segment, drawn="poisson", sample_rate=0.1)
    public = run_.model_copy(update={"facts": {facts.PUBLIC_DRAWS.key: "found"}})
    assert (run_.mechanism().sample_rate, public.mechanism().sample_rate) == (0.1, 1.0)


def in_small_batches(made, loader=None, stop=None):
    model, optimizer, own, criterion = made
    with BatchMemoryManager(data_loader=loader or own, max_physical_batch_size=16, optimizer=optimizer) as small:
        for index, (features, labels) in enumerate(small):
            if index == stop:
                raise KeyboardInterrupt
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_small_batches_that_were_broken_off_count_in_the_next_watch():
    made = private(DataLoader(records(), batch_size=RECORDS // 2), poisson_sampling=False)
    with pytest.raises(KeyboardInterrupt), rt.watch(*made[:3]):
        in_small_batches(made, stop=3)
    with rt.watch(*made[:3]) as second:
        in_small_batches(made)
    assert facts.STEPS_BEFORE not in second.ledger.faults
    assert all(
        segment.batches > 1 for segment in second.ledger.segments
    )  # each holds parts of two, a whole batch or not
    assert not any(fault.voids for fault in second.ledger.faults)


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_the_loader_of_a_memory_manager_is_looked_through():
    made = private(DataLoader(records(), batch_size=RECORDS // 2))
    small = BatchMemoryManager(data_loader=made[2], max_physical_batch_size=8, optimizer=made[1]).__enter__()
    with rt.watch(made[0], made[1], small) as seen:
        for features, labels in small:
            made[1].zero_grad()
            made[3](made[0](features), labels).backward()
            made[1].step()
    assert seen.ledger.sampler.drawn is Drawn.POISSON
    assert (seen.mechanism().noise_multiplier, seen.mechanism().sample_rate) == (NOISE, 0.5)


def test_the_watch_warns_of_nothing():
    made = private()
    with warnings.catch_warnings(record=True) as found, rt.watch(*made[:3]):
        warnings.simplefilter("always")
        for features, labels in made[2]:
            made[1].zero_grad()
            made[3](made[0](features), labels).backward()
            made[1].step()
    assert not [str(one) for one in found if "reticent" in one.filename]


@pytest.mark.parametrize("wrote", [False, True])
def test_a_loop_that_ended_with_an_error_is_continued_where_its_last_step_left_it(wrote):
    made = private()
    watch = rt.watch(*made[:3])

    def stop(count):
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watch:
        run(*made, after=stop)
    if wrote:
        next(made[0].parameters()).data.add_(1.0)
    with rt.watch(*made[:3]) as second:
        run(*made, epochs=1)
    assert (facts.STEPS_BEFORE in second.ledger.faults) == wrote
    if not wrote:
        assert sum(one.steps for one in (*second.ledger.earlier, second.ledger)) == 8
        assert second.mechanism().noise_multiplier == NOISE
        assert list(second.ledger.contradictions()) == []
    assert facts.ENDED_EARLY in watch.ledger.faults


def test_more_than_one_kind_of_loop_in_a_chain_is_merged_with_care():
    """32 parts and more are rounded down; parts about other numbers of parameters stay apart."""
    made = private()
    with rt.watch(*made[:3]) as first:
        run(*made, epochs=1)
    for p in list(made[0].parameters())[:2]:
        p.requires_grad_(False)
    with rt.watch(*made[:3]) as second:
        second._loop.steps.add(SeenStep(NOISE, 1.0, None, 1 / 6, None, None, 1, None))
    assert [part.num_parameters for part in second.mechanism().parts] == [44, 14]
    assert first.ledger.steps == 6
