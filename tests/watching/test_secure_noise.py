"""Noise of a secret key that nobody keeps, in the place of torch's."""

from __future__ import annotations

import types

import pytest
import torch
from opacus.optimizers import DPOptimizer

import reticent as rt
from reticent import facts
from reticent.facts.steps import Generator
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.proofs import Status
from tests.watching.loops import Loop, passes
from tests.watching.programs import NOISE, as_class, coins, private, run

KINDS = {"flat": {}, "ghost": {"mode": "ghost"}, "per layer": {"clipping": "per_layer"}}


def twice(toy):
    assert rt.secure_noise(toy.optimizer) is toy.optimizer
    rt.secure_noise(toy.optimizer)
    torch.manual_seed(0)


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("kind", KINDS)
def test_it_needs_no_seed(kind):
    seen, _ = Loop(
        made=lambda: private(**KINDS[kind]),
        enters=twice,
        batches=passes(2),
        never={facts.PUBLIC_SEED, facts.INSECURE_GENERATOR},
        ledger={"environment.randomness": Generator.SECURE},
        ran={"noise_multiplier": NOISE},
        draws=True,
    ).check()
    assert seen.ledger.vouches()["unpredictable-noise"] is Status.CHECKED


def test_no_number_is_used_twice():
    """Small tensors share a draw, large ones have their own; each has its law, in each step."""
    sizes, seen = [3, 40_000, 1, 70_000, 40_000, 7], []
    ps = [torch.nn.Parameter(torch.zeros(size, dtype=torch.float64)) for size in sizes]
    settings = {"noise_multiplier": 2.0, "max_grad_norm": 1.5, "expected_batch_size": 1}
    optimizer = rt.secure_noise(DPOptimizer(torch.optim.SGD(ps, lr=1.0), **settings))
    for _ in range(2):
        for p in ps:
            p.summed_grad = torch.zeros_like(p)
        optimizer.add_noise()
        seen += [p.grad for p in ps]
    together = torch.cat(seen)
    assert len(together.unique()) == 2 * sum(sizes)
    assert all(float(grad.std()) == pytest.approx(3.0, rel=0.03, abs=0) for grad in seen if len(grad) > 10)
    assert float(together.mean()) == pytest.approx(0.0, abs=0.04)


def test_another_method_of_the_object_is_refused():
    optimizer = private()[1]
    optimizer.add_noise = types.MethodType(coins, optimizer)
    with pytest.raises(UnsupportedError, match="has an add_noise of its own"):
        rt.secure_noise(optimizer)


@pytest.mark.parametrize("base", [False, True])
def test_a_step_whose_noise_is_not_torch_s_fails(base):
    made = private()
    as_class(made[1], add_noise=coins)
    if base:
        as_class(made[1], add_noise=lambda self: super(type(self), self).add_noise())
    rt.secure_noise(made[1])
    with pytest.raises(UnsupportedError, match="add_noise of Mine uses neither Opacus's nor"):
        run(*made, epochs=1)


def test_what_is_put_on_inside_the_block_is_what_is_used():
    """The watch went on calling the method of the class before, and its ledger said that a key was used."""
    steps = []
    for _ in range(2):
        made = private()
        with rt.watch(*made[:3]) as seen:
            rt.secure_noise(made[1])
            torch.manual_seed(2**60 + 2**28 + 41)
            run(*made, epochs=1)
        assert seen.ledger.environment.randomness is Generator.SECURE
        steps.append(torch.cat([p.detach().flatten() for p in made[0].parameters()]))
    assert not torch.equal(*steps)
