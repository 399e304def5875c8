"""Noise of a secret key that nobody keeps, in the place of torch's."""

from __future__ import annotations

import math
import types

import pytest
import torch

import reticent as rt
from reticent import facts
from reticent.facts.steps import Generator
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.proofs import Status
from reticent.watching.secure_noise import normal
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


def test_it_is_normal_and_never_the_same():
    drawn = normal((200_001,), 3.0, torch.float64, torch.device("cpu"))
    assert float(drawn.mean()) == pytest.approx(0.0, abs=0.05)
    assert float(drawn.std()) == pytest.approx(3.0, rel=0.01, abs=0)
    assert float((drawn**4).mean()) == pytest.approx(3 * 81.0, rel=0.05, abs=0)
    assert float((drawn.abs() > 3.0).double().mean()) == pytest.approx(math.erfc(1 / math.sqrt(2)), rel=0.02, abs=0)
    halves = drawn[:65_536], drawn[65_536:131_072]  # the two numbers of each pair
    assert abs(float(torch.corrcoef(torch.stack(halves))[0, 1])) < 0.02
    assert not torch.equal(drawn, normal((200_001,), 3.0, torch.float64, torch.device("cpu")))


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
