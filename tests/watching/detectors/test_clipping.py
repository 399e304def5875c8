"""How records are clipped: the norms, the pieces of a step, and clipping that the program puts in Opacus's place."""

from __future__ import annotations

import math

import pytest
import torch
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import TensorDataset

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ParameterError
from tests.watching.loops import Loop, in_parts, passes, void, watched
from tests.watching.programs import BATCH, NOISE, RECORDS, Net, private, reading

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")

UNCLEAR = {facts.UNKNOWN_CLIPPING}


class Automatic(DPOptimizer):
    def clip_and_accumulate(self):
        super().clip_and_accumulate()


def pointwise():
    return Net(lambda net, x: net.head(torch.tanh(net.body(x))).sum(1), body=nn.Linear(4, 4), head=nn.Linear(4, 4))


def automatic():
    model, optimizer, loader, criterion = private()
    stated = {"noise_multiplier": NOISE, "max_grad_norm": 1.0, "expected_batch_size": BATCH}
    return model, Automatic(optimizer.original_optimizer, **stated), loader, criterion


def sequences(**options):
    """``batch_first=False`` where records come first: what is clipped is a moment of all records."""
    data = TensorDataset(torch.randn(60, 3, 4), torch.randint(0, 4, (60,)))
    return private(reading(data), model=pointwise(), poisson_sampling=False, **options)


def first_piece_to_two(toy):
    """The first piece is clipped to 2, the second to 1, and the noise is scaled to 1: half of the multiplier."""
    toy.optimizer.max_grad_norm = 2.0 if toy.step == 0 else 1.0


LOOPS = {
    "pieces of a step with two norms": Loop(
        made=lambda: private(reading(size=RECORDS), poisson_sampling=False),
        batches=in_parts(RECORDS // 2),
        before=first_piece_to_two,
        segments={"noise_multiplier": [NOISE / 2.0]},
        ledger={"clipping.largest": 2.0},
        notes={facts.CLIP_AND_NOISE_DIFFER},
        beside=True,
    ),
    "layers": Loop(
        made=lambda: private(clipping="per_layer", norm=0.5),
        ledger={"clipping.kind": "per-layer", "clipping.smallest": 1.0, "clipping.largest": 1.0},  # 4 tensors of 0.5
    ),
    "adaptive": Loop(
        made=lambda: private(clipping="adaptive"),
        batches=passes(2),
        ledger={"clipping.kind": "adaptive"},
        notes={facts.ADAPTIVE_COUNT, facts.CHANGED_CLIP_NORM},
        segments={"noise_multiplier": [NOISE]},
    ),
    "flat": Loop(made=lambda: private(norm=5.0), ledger={"clipping.kind": "flat"}, ran={"max_grad_norm": 5.0}),
    "of the program": Loop(made=automatic, errors=UNCLEAR),
    "of the program, declared": Loop(
        made=automatic, options={"clipping": "automatic"}, notes={facts.DECLARED}, ran={"noise_multiplier": NOISE}
    ),
    "records that come first": Loop(made=sequences),
    "records that are taken for steps of a sequence": Loop(
        made=lambda: sequences(batch_first=False), errors={facts.MIXES_RECORDS}, may=UNCLEAR
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_clipping(name):
    LOOPS[name].check()


def test_what_is_declared_must_not_contradict_what_is_seen():
    model, optimizer, loader, _ = private()
    with pytest.raises(ParameterError, match="what the optimizer does, flat"):
        rt.watch(model, optimizer, loader, clipping="automatic")


def test_batch_sizes_and_clipped_records_are_the_real_ones():
    model, optimizer, loader, criterion = private(norm=1e-6)
    sizes = []
    hooked = model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    small = watched(model, optimizer, loader, criterion)
    hooked.remove()
    assert small.ledger.diagnostics.batch_sizes == tuple(sizes)
    in_ghost_mode = watched(*private(norm=1e-6, mode="ghost"))
    for found, share in ((small, 1), (watched(*private(norm=1e6)), 0), (in_ghost_mode, 1)):
        seen = found.ledger.diagnostics
        measured = [(c, share * b) for c, b in zip(seen.clipped, seen.batch_sizes, strict=True) if c is not None]
        assert measured
        assert all(clipped == expected for clipped, expected in measured)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("norm", [math.inf, -1.0, 0.0, 1e-300, 1e300])
def test_a_clip_norm_that_is_none(norm, mode):
    """A norm that bounds nothing was an error of pydantic's at the end of the training."""
    made = private(mode=mode)
    made[0].max_grad_norm = made[1].max_grad_norm = norm
    made[1].noise_multiplier = 0.0 if norm < 0.0 else 1.1  # torch draws nothing else
    seen = watched(*made, how={"epochs": 1})
    assert void(seen) or norm in (1e-300, 1e300)
    assert not list(seen.ledger.contradictions())
    assert rt.certify(seen).verify().accepted
