"""``rt.watch`` around real loops of Opacus: what it sees, and that the loop does not notice."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, WeightedRandomSampler

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError
from reticent.facts.steps import Drawn, Source
from reticent.mechanisms import DPSGD
from reticent.records.ledger import RunLedger
from reticent.samplers import Shuffled
from tests.watching.loops import BATCH, NOISE, RATE, RECORDS, network, private, records, run

POISSON = DPSGD(NOISE, RATE, 12, num_parameters=44, dataset_size=RECORDS)


def watched(*made, **how):
    with rt.watch(made[0], made[1], made[2]) as ledger:
        run(*made, **how)
    return ledger


def shuffled(**options):
    return private(DataLoader(records(), batch_size=BATCH, shuffle=True, **options), poisson_sampling=False)


KINDS = {
    "hooks": {},
    "functorch": {"mode": "functorch"},
    "ghost": {"mode": "ghost"},
    "per-layer": {"clipping": "per_layer"},
    "adaptive": {"clipping": "adaptive"},
    "shuffled": {"poisson_sampling": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_bit_identical_with_and_without(kind):
    weights = []
    for look in (True, False):
        made = private(**KINDS[kind])
        torch.manual_seed(7)
        if look:
            watched(*made)
        else:
            run(*made)
        weights.append([p.detach().clone() for p in made[0].parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("kind", ["hooks", "functorch", "ghost"])
def test_poisson_batches_are_recognised_and_amplify(kind):
    ledger = watched(*private(**KINDS[kind]))
    assert ledger.mechanism() == POISSON
    found = ledger.ledger
    assert found.sampler.source is found.clipping.source is Source.SEEN
    assert (found.clipping.kind, found.divisor, found.environment.device) == ("flat", BATCH, "cpu")
    assert len(set(found.diagnostics.batch_sizes)) > 1
    assert facts.SIZE_PUBLIC in found.faults
    assert not any(fault.voids for fault in found.faults)


def test_batch_sizes_and_clipped_records_are_the_real_ones():
    model, optimizer, loader, criterion = private(norm=1e-6)
    sizes = []
    hooked = model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    ledger = watched(model, optimizer, loader, criterion)
    hooked.remove()
    assert ledger.ledger.diagnostics.batch_sizes == tuple(sizes)
    for found, share in (
        (ledger, 1),
        (watched(*private(norm=1e6)), 0),
        (watched(*private(norm=1e-6, mode="ghost")), 1),
    ):
        seen = found.ledger.diagnostics
        measured = [(c, share * b) for c, b in zip(seen.clipped, seen.batch_sizes, strict=True) if c is not None]
        assert measured
        assert all(clipped == expected for clipped, expected in measured)


def test_clip_norms_of_layers_and_adaptive_ones_are_read_off_the_optimizer():
    layers = watched(*private(clipping="per_layer", norm=0.5)).ledger.clipping
    assert (layers.kind, layers.smallest, layers.largest) == ("per-layer", 1.0, 1.0)  # 4 tensors of 0.5
    adaptive = watched(*private(clipping="adaptive")).ledger
    assert adaptive.clipping.kind == "adaptive"
    assert adaptive.clipping.smallest < adaptive.clipping.largest
    assert {facts.ADAPTIVE_COUNT, facts.CHANGED_CLIP_NORM} <= set(adaptive.faults)
    assert [s.noise_multiplier for s in adaptive.segments] == [NOISE]


def test_a_shuffled_loader_counts_passes_and_its_clip_norm_is_read():
    made = private(norm=5.0, poisson_sampling=False)
    ledger = watched(*made)
    run_ = ledger.mechanism()
    assert (run_.sampler, run_.max_grad_norm) == (Shuffled(6), 5.0)
    exact = rt.assess(rt.Gaussian(NOISE, 2))[0].curve
    assert rt.epsilon_at_delta(rt.assess(ledger)[0].curve, 1e-5) == pytest.approx(
        rt.epsilon_at_delta(exact, 1e-5), rel=1e-6, abs=0
    )
    assert facts.SHUFFLED in ledger.ledger.faults


def test_passes_that_are_broken_off_count_whole():
    """Each pass shuffles anew, so a record may be in the first two batches of every one of four passes."""
    ledger = watched(*shuffled(), epochs=4, most=2)
    assert ledger.ledger.segments[0].passes == 4
    assert ledger.mechanism() == DPSGD(NOISE, 1.0, 4, num_parameters=44, dataset_size=RECORDS)


def test_passes_that_are_broken_off_count_whole_when_workers_draw_ahead():
    assert watched(*shuffled(num_workers=1), epochs=3, most=2).ledger.segments[0].passes == 3


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_gradients_carried_into_the_next_pass_may_hold_a_record_twice():
    model, optimizer, loader, criterion = shuffled()
    count = 0
    with rt.watch(model, optimizer, loader) as ledger:
        for _ in range(2):
            for features, labels in loader:
                criterion(model(features), labels).backward()
                count += 1
                if count % 4 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    first, second, *_ = ledger.ledger.segments
    assert (first.mixed_passes, second.mixed_passes) == (1, 2)
    # one release from the first segment, and min(2 passes * 2, 1 step * 2 ** 2) from the second
    assert ledger.mechanism().steps >= 1 + 4


def test_accumulated_batches_of_one_pass_hold_a_record_once():
    ledger = watched(*shuffled(), every=3)
    assert ledger.ledger.segments[0].batches == 3
    assert facts.ACCUMULATION in ledger.ledger.faults
    assert ledger.mechanism() == DPSGD(NOISE, 1.0, 2, num_parameters=44, dataset_size=RECORDS)


def test_virtual_steps_of_opacus_are_no_accumulation():
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    model, optimizer, loader, criterion = private()
    with (
        rt.watch(model, optimizer, loader) as ledger,
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small,
    ):
        run(model, optimizer, small, criterion)
    assert ledger.mechanism() == POISSON
    assert facts.ACCUMULATION not in ledger.ledger.faults
    assert max(ledger.ledger.diagnostics.batch_sizes) > 8


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_poisson_batches_that_are_added_up_lose_the_amplification():
    model, optimizer, loader, criterion = private()

    def every_second():
        for index, (features, labels) in enumerate(loader):
            if len(labels) == 0:
                continue
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.signal_skip_step(do_skip=index % 2 == 0)
            optimizer.step()

    with rt.watch(model, optimizer, loader) as ledger:
        every_second()
    found = ledger.mechanism()
    assert found.sample_rate == 1.0
    assert found.noise_multiplier <= NOISE / 2
    assert facts.ACCUMULATION in ledger.ledger.faults


def test_a_weighted_sampler_may_fill_a_batch_with_one_record():
    sampler = WeightedRandomSampler([1.0] * RECORDS, RECORDS)
    ledger = watched(*private(DataLoader(records(), batch_size=BATCH, sampler=sampler), poisson_sampling=False))
    assert ledger.ledger.sampler.drawn is Drawn.WEIGHTED
    assert ledger.mechanism().noise_multiplier == NOISE / BATCH
    assert facts.WEIGHTED in ledger.ledger.faults


@pytest.mark.parametrize(
    ("sampler", "drawn"),
    [
        (lambda: RandomSampler(records(), replacement=True), Drawn.WITH_REPLACEMENT),
        (lambda: SequentialSampler(records()), Drawn.IN_ORDER),
        (lambda: torch.utils.data.SubsetRandomSampler(range(30)), Drawn.SHUFFLED),
        (lambda: torch.utils.data.SubsetRandomSampler([0, 0, 1] * 20), Drawn.WITH_REPLACEMENT),
    ],
)
def test_samplers_of_torch_are_known_by_name(sampler, drawn):
    loader = DataLoader(records(), batch_size=BATCH, sampler=sampler())
    ledger = watched(*private(loader, poisson_sampling=False), epochs=1)
    assert ledger.ledger.sampler.drawn is drawn


def test_a_samplers_subclass_that_draws_in_its_own_way_is_unknown():
    class Mine(RandomSampler):
        def __iter__(self):
            return iter(range(RECORDS))

    loader = DataLoader(records(), batch_size=BATCH, sampler=Mine(records()))
    ledger = watched(*private(loader, poisson_sampling=False))
    assert ledger.ledger.sampler.drawn is Drawn.UNKNOWN
    assert facts.UNKNOWN_SAMPLER in ledger.ledger.faults
    assert ledger.mechanism() == DPSGD(NOISE, 1.0, 12, num_parameters=44, dataset_size=RECORDS)


def test_an_unknown_sampler_that_repeats_a_record_counts_as_such():
    class Mine(BatchSampler):
        def __iter__(self):
            yield from ([1] * BATCH for _ in range(6))

    loader = DataLoader(records(), batch_sampler=Mine(SequentialSampler(records()), BATCH, False))
    ledger = watched(*private(loader, poisson_sampling=False))
    assert ledger.ledger.sampler.drawn is Drawn.WITH_REPLACEMENT
    assert ledger.mechanism().noise_multiplier == NOISE / BATCH


def test_the_loader_that_is_watched_must_be_the_one_that_is_read():
    model, optimizer, loader, criterion = private()
    other = DataLoader(records(), batch_size=BATCH)
    with rt.watch(model, optimizer, loader) as ledger:
        run(model, optimizer, other, criterion)
    assert facts.OTHER_BATCHES in ledger.ledger.faults
    assert ledger.mechanism().sample_rate == 1.0


def test_workers_that_draw_ahead_are_followed():
    loader = DataLoader(records(), batch_size=BATCH, shuffle=True, num_workers=1)
    assert watched(*private(loader)).mechanism() == POISSON


def test_noise_and_rate_that_change_are_seen():
    made = private()

    def change(step):
        if step == 6:
            made[1].noise_multiplier = 2.0
            made[2].batch_sampler.sample_rate = 0.25

    ledger = watched(*made, after=change)
    parts = {(p.noise_multiplier, p.sample_rate): p.steps for p in ledger.mechanism().parts}
    assert sum(parts.values()) == len(ledger.ledger.diagnostics.batch_sizes)
    assert (NOISE, RATE) in parts
    assert (2.0, 0.25) in parts
    assert facts.CHANGED_NOISE in ledger.ledger.faults


def test_ghost_clipping_to_another_norm_than_the_noise_is_seen():
    """The model clips to 4, the noise is scaled to 1: a quarter of the noise multiplier."""
    model, optimizer, loader, criterion = private(mode="ghost")
    model.max_grad_norm = 4.0
    ledger = watched(model, optimizer, loader, criterion)
    assert ledger.ledger.segments[0].noise_multiplier == NOISE / 4.0
    assert facts.CLIP_AND_NOISE_DIFFER in ledger.ledger.faults


def test_another_optimizer_voids_the_guarantee():
    made = private()
    other = torch.optim.SGD(list(made[0].parameters())[:1], lr=0.01)
    ledger = watched(*made, after=lambda _: other.step())
    assert facts.OTHER_OPTIMISER in ledger.ledger.faults
    assert rt.assess(ledger)[0].measure(rt.advantage).value == 1.0


def test_an_optimizer_of_another_model_is_none_of_our_business():
    made, apart = private(), network()
    other = torch.optim.SGD(apart.parameters(), lr=0.01)
    assert facts.OTHER_OPTIMISER not in watched(*made, after=lambda _: other.step()).ledger.faults


def test_stepping_the_optimizer_inside_is_seen():
    made = private()
    ledger = watched(*made, after=lambda _: made[1].original_optimizer.step())
    assert facts.UNRECORDED_STEPS in ledger.ledger.faults
    assert ledger.mechanism().noise_multiplier == 0.0


def test_weights_that_somebody_writes_are_seen():
    made = private()

    def write(_):
        with torch.no_grad():
            next(made[0].parameters()).add_(1.0)

    assert facts.WEIGHTS_CHANGED in watched(*made, after=write).ledger.faults
    assert facts.WEIGHTS_CHANGED not in watched(*private()).ledger.faults


def test_clipping_that_was_overridden_is_unknown_unless_declared():
    from opacus.optimizers import DPOptimizer

    class Automatic(DPOptimizer):
        def clip_and_accumulate(self):
            super().clip_and_accumulate()

    model, optimizer, loader, criterion = private()
    mine = Automatic(optimizer.original_optimizer, noise_multiplier=NOISE, max_grad_norm=1.0, expected_batch_size=BATCH)
    ledger = watched(model, mine, loader, criterion)
    assert facts.UNKNOWN_CLIPPING in ledger.ledger.faults
    assert ledger.mechanism().noise_multiplier == 0.0
    with rt.watch(model, mine, loader, clipping="automatic", start="declared") as declared:
        run(model, mine, loader, criterion)
    assert declared.mechanism() == POISSON
    assert facts.DECLARED in declared.ledger.faults
    with pytest.raises(ParameterError, match="what the optimizer does, flat"):
        rt.watch(model, optimizer, loader, clipping="automatic")


def test_a_generator_of_the_program_is_named():
    made = private(noise_generator=torch.Generator().manual_seed(3))
    assert facts.SEEDED_NOISE in watched(*made).ledger.faults


def test_the_fingerprint_is_that_of_the_file_of_weights(tmp_path):
    from safetensors.torch import save_file

    made = private()
    ledger = watched(*made)
    save_file(made[0]._module.state_dict(), tmp_path / "weights.safetensors")
    saved = hashlib.sha256((tmp_path / "weights.safetensors").read_bytes()).hexdigest()
    assert ledger.ledger.weights_sha256 == saved


def test_after_the_block_nothing_is_left_behind():
    made = private()
    before = type(made[2].batch_sampler), set(vars(made[1]))
    watched(*made)
    assert (type(made[2].batch_sampler), set(vars(made[1]))) == before
    with rt.watch(*made[:3]) as seen:
        pass
    with pytest.raises(ParameterError, match="at least one"):
        rt.certify(seen)
    with pytest.raises(ParameterError, match="Opacus's optimizer is watched"), rt.watch(*made[:3]) as ledger:
        ledger.step(noise_multiplier=1.0)


def test_a_loop_that_fails_leaves_a_ledger_without_weights():
    made = private()

    def fail(step):
        if step == 3:
            raise KeyboardInterrupt

    watch = rt.watch(*made[:3])
    with pytest.raises(KeyboardInterrupt), watch:
        run(*made, after=fail)
    assert watch.ledger.steps == 3
    assert watch.ledger.weights_sha256 is None
    assert facts.ENDED_EARLY in watch.ledger.faults


@pytest.mark.parametrize("when", ["not", "before the error", "after the block"])
def test_a_watch_that_is_entered_again_after_an_error_goes_on(when):
    """As in a notebook: the weights are those of the last step, unless somebody wrote them."""
    made = private()

    def write():
        with torch.no_grad():
            next(iter(made[0].parameters())).add_(0.1)

    def fail(step):
        if step == 3:
            if when == "before the error":
                write()
            raise KeyboardInterrupt

    watch = rt.watch(*made[:3])
    with pytest.raises(KeyboardInterrupt), watch:
        run(*made, after=fail)
    if when == "after the block":
        write()
    with watch:
        run(*made, epochs=1)
    if when == "not":
        assert watch.mechanism() == DPSGD(NOISE, RATE, 9, num_parameters=44, dataset_size=RECORDS)
    else:
        assert facts.WEIGHTS_CHANGED in watch.ledger.faults


def test_a_ledger_survives_its_file(tmp_path):
    ledger = watched(*private())
    ledger.save(tmp_path / "ledger.json")
    again = RunLedger.from_json((tmp_path / "ledger.json").read_bytes())
    assert again == ledger.ledger
    assert math.isclose(again.diagnostics.seconds, ledger.ledger.diagnostics.seconds)
    assert "diagnostics" not in again.public()
