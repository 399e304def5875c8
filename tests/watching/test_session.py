"""``rt.watch`` around real loops: what it sees of all kinds of them, and that the loop does not notice."""

from __future__ import annotations

import hashlib
import io
import warnings

import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.optimizers import optimizer as opacus_optimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from safetensors.torch import save_file
from torch import nn

import reticent as rt
from reticent import facts
from reticent.facts.steps import Drawn, Source
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.samplers import Shuffled
from reticent.watching.models import fingerprint
from tests.watching.loops import Loop, parts, passes, update_by_hand, void, watched
from tests.watching.programs import BATCH, NOISE, RATE, RECORDS, by_hand, network, private, reading, run

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook", "ignore:Secure RNG turned off")

POISSON = DPSGD(NOISE, RATE, 12, num_parameters=44, dataset_size=RECORDS)
KINDS = {
    "hooks": {},
    "functorch": {"mode": "functorch"},
    "ghost": {"mode": "ghost"},
    "per layer": {"clipping": "per_layer"},
    "adaptive": {"clipping": "adaptive"},
    "shuffled": {"poisson_sampling": False},
}
SEEN = {"sampler.source": Source.SEEN, "clipping.source": Source.SEEN, "environment.device": "cpu", "divisor": BATCH}
LOOPS = {
    f"a loop of Opacus, {kind}": Loop(
        made=lambda kind=kind: private(**KINDS[kind]),
        batches=passes(2),
        ledger=SEEN,
        notes={facts.SHUFFLED} if kind == "shuffled" else {facts.SIZE_PUBLIC},
        ran={"sampler": Shuffled(6)} if kind == "shuffled" else {"sample_rate": RATE, "steps": 12},
    )
    for kind in KINDS
}
LOOPS |= {
    f"one layer, {mode}, {'wrapped' if wrap else 'bare'}": Loop(
        made=lambda mode=mode, wrap=wrap: one_layer(mode, wrap), batches=passes(2)
    )
    for mode in ("hooks", "functorch", "ghost")
    for wrap in (True, False)
}


def one_layer(mode, wrap):
    model = nn.Linear(4, 2)
    wrapped, *others = private(reading(), model=model, mode=mode, wrap_model=wrap)
    return wrapped if wrap else model, *others


@pytest.mark.parametrize("name", LOOPS)
def test_session(name):
    LOOPS[name].check()


def test_noise_and_rate_that_change_are_seen():
    def change(toy):
        if toy.step == 5:
            toy.optimizer.noise_multiplier = 2.0
            toy.loader.batch_sampler.sample_rate = 0.25

    seen, _ = Loop(batches=passes(2), after=change, notes={facts.CHANGED_NOISE}).check()
    found = {(p.noise_multiplier, p.sample_rate): p.steps for p in parts(seen)}
    assert sum(found.values()) == len(seen.ledger.diagnostics.batch_sizes)
    assert {(NOISE, RATE), (2.0, 0.25)} <= found.keys()


def test_steps_are_written_down_before_anybody_asks():
    """Steps that are alike wait for each other; whoever looks sees them all, each with its own numbers."""
    made = private()
    noises, asked = [NOISE, NOISE, 1.5, NOISE, NOISE, NOISE, 2.0, 2.0, NOISE, NOISE, NOISE, NOISE], []
    with rt.watch(*made[:3]) as seen:
        made[1].noise_multiplier = noises[0]

        def after(step):
            if step in (2, 5):
                asked.append((seen.risk().steps, len(seen)))
            made[1].noise_multiplier = noises[min(step, 11)]

        run(*made, after=after)
    assert asked == [(2, 2), (5, 5)]
    assert [s.noise_multiplier for s in seen.ledger.segments for _ in range(s.steps)] == noises
    assert len(seen.ledger.diagnostics.batch_sizes) == 12
    assert seen.ledger.sampler.sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert list(seen.ledger.contradictions()) == []
    assert sum(size or 0 for size in seen.ledger.diagnostics.batch_sizes) <= 2 * 2 * RECORDS


def test_the_fingerprint_is_that_of_the_file_of_weights(tmp_path):
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


def test_the_loader_of_a_memory_manager_is_looked_through():
    made = private(reading(size=RECORDS // 2))
    small = BatchMemoryManager(data_loader=made[2], max_physical_batch_size=8, optimizer=made[1]).__enter__()
    seen = watched(*made[:2], small, made[3], how={"epochs": 1})
    assert seen.ledger.sampler.drawn is Drawn.POISSON
    assert (seen.mechanism().noise_multiplier, seen.mechanism().sample_rate) == (NOISE, 0.5)


def test_the_watch_warns_of_nothing():
    made = private()
    with warnings.catch_warnings(record=True) as found, rt.watch(*made[:3]) as seen:
        warnings.simplefilter("always")
        Loop().run(made, seen)
    assert not [str(one) for one in found if "reticent" in one.filename]


def test_hooks_of_the_program_see_their_own_passes_only():
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


def test_a_wrong_optimizer_is_refused_at_the_door():
    made = private()
    with pytest.raises(ParameterError, match="private one"):
        rt.watch(made[0], made[1].original_optimizer, made[2])
    with pytest.raises(ParameterError, match="private one"):
        rt.watch(made[0], None, made[2])
    with pytest.raises(ParameterError, match="parameters of this model"):
        rt.watch(network(), torch.optim.SGD(network().parameters(), lr=0.1))
    with pytest.raises(ParameterError, match="optimizer of torch"):
        rt.watch(network(), "adam")


@pytest.mark.parametrize("model", [network(), nn.Linear(4, 2, bias=False)], ids=["network", "linear"])
def test_a_model_that_is_saved_as_a_whole_holds_nothing_of_the_watch(model):
    """What a linear layer was compared with are numbers of all records: a checkpoint with them tells who is in."""
    made, files = private(model=model), [io.BytesIO() for _ in range(9)]
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1, after=lambda step: torch.save(made[0]._module, files[step]))
    assert b"_Rows" not in files[1].getvalue()
    assert b"DPOptimizer" not in files[1].getvalue()
    files[len(seen)].seek(0)
    again = torch.load(files[len(seen)], weights_only=False)
    assert torch.equal(again(torch.ones(1, 4)), made[0](torch.ones(1, 4)))
    assert not void(seen)
    run(*private(), epochs=1)  # a private optimizer that is read from a file breaks Opacus


def test_a_model_that_is_compiled():
    made = by_hand()
    compiled = torch.compile(made[0], backend="eager"), *made[1:]
    seen, _ = Loop(made=lambda: compiled, update=update_by_hand).watched()
    assert seen.ledger.weights_sha256 == fingerprint(made[0])
    assert not void(seen)
