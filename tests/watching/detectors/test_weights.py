"""Which values of weights and buffers are compared, and when: windows on large ones, all of small ones."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from itertools import chain, islice, repeat

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import reticent as rt
from reticent import facts
from reticent.watching.detectors import weights
from reticent.watching.detectors.base import Loop as Watched
from reticent.watching.detectors.base import Said
from reticent.watching.detectors.weights import Weights
from tests.watching.loops import Loop, passes, update_stated
from tests.watching.programs import by_hand, network, private, reading, records

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

LEARNT, WRITTEN = {facts.BUFFERS_LEARNT}, {facts.WEIGHTS_CHANGED}


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


class Mean(nn.Module):
    """Learns what is written to its file and is no buffer."""

    def __init__(self, learns):
        super().__init__()
        self.mean, self.learns = torch.zeros(4), learns

    def forward(self, x):
        self.mean = self.mean + self.learns * x.detach().mean(0)
        return x

    def get_extra_state(self):
        return self.mean

    def set_extra_state(self, state):
        self.mean = state


class Scaled(nn.Linear):
    """Its extra state is no tensor."""

    scale = 1.0

    def get_extra_state(self):
        return {"scale": self.scale}


class Turned(nn.Module):
    """A linear layer whose weights do not lie in order, so that they are compared as those of a device are."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(4, 2)
        self.inside.weight = nn.Parameter(torch.randn(4, 2).t())

    def forward(self, x):
        return self.inside(x)


def behind(first):
    """A loop of one's own with a layer before the network."""
    return lambda: by_hand(nn.Sequential(first(), network()), reading(shuffle=False))


def spectral():
    """Spectral norms follow the weights alone."""
    model = network()
    nn.utils.parametrizations.spectral_norm(model[0])
    return by_hand(model)


def adds(toy):
    if toy.step == 2:
        toy.bare.inside.weight.data.add_(1.0)


def not_a_number():
    """It gets past clipping."""
    data = records()
    data.tensors[0][7] = torch.nan
    return private(reading(data), poisson_sampling=False)


def scaled():
    return private(model=nn.Sequential(Scaled(4, 2)), mode="functorch")


LOOPS = {
    "a buffer that learns": Loop(
        made=behind(RunningMean), update=update_stated, errors=LEARNT, may={facts.MIXES_RECORDS}
    ),
    "a buffer that counts": Loop(made=behind(lambda: RunningMean(learns=False)), update=update_stated),
    "a state that learns and is no buffer": Loop(made=behind(lambda: Mean(1)), update=update_stated, errors=LEARNT),
    "a state that is no tensor and changes": Loop(
        made=scaled, leaves=lambda toy: setattr(toy.bare[0], "scale", 2.0), errors=LEARNT
    ),
    "spectral norms": Loop(made=spectral, update=update_stated),
    "a write where numpy cannot look": Loop(
        made=lambda: private(model=Turned()), batches=passes(2), after=adds, errors=WRITTEN
    ),
    "a gradient that is no number": Loop(
        made=not_a_number, errors={facts.NOT_FINITE}, may={facts.UNKNOWN_NOISE, facts.UNKNOWN_CLIPPING}
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_weights(name):
    LOOPS[name].check()


def test_a_row_of_a_large_layer():
    model = nn.Linear(300, 400)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rt.watch(model, optimizer) as seen:
        for _ in range(2):
            model(torch.randn(4, 300)).sum().backward()
            optimizer.step()
            seen.step(noise_multiplier=1.0)
        model.weight.data[77] += 1.0
    assert facts.WEIGHTS_CHANGED in seen.ledger.faults


def test_a_comparison_waits_for_nothing():
    """Tensors of the device meta have no values: whatever would wait for one raises."""
    weights = Weights(network().to("meta"))
    for _ in range(6):
        weights.keep()
        assert not weights.others()
    with pytest.raises((RuntimeError, NotImplementedError)):
        weights.apart_written()


def test_windows_on_a_large_tensor_hit_each_row_and_move_on():
    layer = nn.Linear(300, 400)
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
    layer = nn.Linear(300, 400)
    watched = weights.Weights(layer)
    for column in (5, 6, 7):  # no two of them are looked at in one turn
        with torch.no_grad():
            layer.weight[5, column] += 1.0
        assert watched.written()
        watched.keep()


def test_another_object_on_the_same_memory_is_a_write():
    layer = nn.Linear(3, 2)
    watched = weights.Weights(layer)
    layer.weight = nn.Parameter(layer.weight.data)
    assert watched.written()


def test_buffers_are_compared_whole_and_counters_are_not():
    model = nn.BatchNorm1d(4)
    watched = weights.Buffers(Watched(model, None, None, Said(), ()))
    watched.enters(again=False)
    model.num_batches_tracked += 1
    assert not watched.learnt()
    model.running_mean[2] += 1e-3
    assert watched.learnt()


def test_a_write_before_a_tensor_moved_is_kept():
    layer = Turned()
    weights = Weights(layer)
    layer.inside.weight.data.add_(1.0)
    weights.others()
    layer.inside.weight.data = torch.randn(4, 2).t()
    weights.keep()
    assert weights.apart_written()


class Elsewhere(nn.Parameter):
    """Numpy is not asked for the values of one of another class."""


class Operations(TorchDispatchMode):
    """Counts what torch is asked for, and what of that waits for a device: a number, a comparison, a copy from it."""

    WAITS = ("_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "unique")

    def __init__(self) -> None:
        super().__init__()
        self.all = self.waits = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.all += 1
        self.waits += function.overloadpacket.__name__ in self.WAITS
        return function(*args, **(kwargs or {}))


class Reads(TorchFunctionMode):
    """Counts copies to the processor, which are nothing where all is there already."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.waits += function in (torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_a_usual_step_waits_for_nothing_and_asks_little_of_each_parameter(mode):
    """As on a device, numpy cannot look at the weights. Nobody looks closely at the last four steps, which count.

    Every second step is one with autocast.
    """

    def asked(layers, watch):
        model = nn.Sequential(*(one for _ in range(layers) for one in (nn.Linear(4, 4), nn.Tanh())), nn.Linear(4, 2))
        for layer in model:
            for name, p in list(layer.named_parameters()):
                setattr(layer, name, Elsewhere(p.detach()))
        made = private(model=model, mode=mode)
        operations, reads, last = Operations(), Reads(), 22 if watch else 6
        with rt.watch(*made[:3]) if watch else nullcontext():
            for number, (features, labels) in enumerate(islice(chain.from_iterable(repeat(made[2])), last)):
                with ExitStack() as counting:
                    for one in (operations, reads) if number >= last - 4 else ():
                        counting.enter_context(one)
                    made[1].zero_grad()
                    with torch.autocast("cpu", torch.bfloat16, enabled=number % 2 == 1):
                        loss = made[3](made[0](features), labels)
                    loss.backward()
                    made[1].step()
        return operations.all, operations.waits + reads.waits

    (few, few_wait), (many, many_wait) = ([asked(n, True)[at] - asked(n, False)[at] for at in (0, 1)] for n in (2, 8))
    assert few_wait == many_wait == 0
    assert many - few <= 6 * 2 + 4  # one look at other places in four steps
