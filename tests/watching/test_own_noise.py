"""Optimizers of Opacus of which code of the program decides the noise: what nobody saw drawn is no noise of a proof."""

from __future__ import annotations

import types

import opacus.optimizers.optimizer as inside
import pytest
import torch
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed

import reticent as rt
from reticent import facts
from reticent.errors import UnsupportedError
from reticent.facts.steps import Generator
from tests.watching.loops import BATCH, NOISE, private, run, void, watched

OWN = {name: vars(DPOptimizer)[name] for name in ("add_noise", "scale_grad", "pre_step", "step")}


def coins(self):
    """Plus and minus one: as long as Gaussian noise, and no hiding place."""
    for p in self.params:
        noise = torch.randint(0, 2, p.summed_grad.shape) * 2.0 - 1.0
        p.grad = (p.summed_grad + self.noise_multiplier * self.max_grad_norm * noise).view_as(p)
        _mark_as_processed(p.summed_grad)


def released(self):
    for p in self.params:
        p.grad = p.summed_grad.view_as(p) / self.expected_batch_size


def and_less(self):
    OWN["add_noise"](self)
    for p in self.params:
        p.grad = 0.5 * (p.grad + p.summed_grad.view_as(p))


def sum_before_noise(self):
    for p in self.params:
        p.summed_grad.mul_(3.0)
    OWN["add_noise"](self)


def own_order(self, closure=None):
    self.clip_and_accumulate()
    self.add_noise()
    for p in self.params:
        p.grad = p.summed_grad.view_as(p).clone()
    self.scale_grad()
    return True


def without(self, closure=None):
    self.clip_and_accumulate()
    coins(self)
    self.scale_grad()
    return self.original_optimizer.step()


WRONG = {
    "add_noise": [coins, and_less, sum_before_noise],
    "scale_grad": [released],
    "pre_step": [own_order],
    "step": [without],
}
CASES = [("class", name, method) for name, methods in WRONG.items() for method in methods]
CASES += [
    (place, name, method)
    for place in ("object", "opacus", "in the block")
    for name, method in (("add_noise", coins), ("scale_grad", released))
]


def as_class(optimizer, **methods):
    optimizer.__class__ = type("Mine", (type(optimizer),), methods)


@pytest.mark.parametrize(("place", "name", "method"), CASES)
def test_noise_that_nobody_saw_drawn(place, name, method, monkeypatch):
    """The declared clipping says nothing about it."""
    made = private()
    optimizer = made[1]
    if place == "class":
        as_class(optimizer, **{name: method})
    elif place == "opacus":
        monkeypatch.setattr(DPOptimizer, name, method)
    elif place == "object":
        setattr(optimizer, name, types.MethodType(method, optimizer))
    with rt.watch(*made[:3], clipping="flat") as seen:
        if place == "in the block":
            setattr(optimizer, name, types.MethodType(method, optimizer))
        run(*made, epochs=1)
    assert void(seen)
    assert facts.UNKNOWN_CLIPPING not in seen.ledger.faults
    if name in ("add_noise", "scale_grad") and place != "in the block":
        assert facts.UNKNOWN_NOISE in seen.ledger.faults
        assert seen.ledger.environment.randomness is Generator.NOT_SEEN
    assert not list(seen.ledger.contradictions())


@pytest.mark.parametrize("place", ["object", "opacus"])
def test_clipping_replaced_in_place(place, monkeypatch):
    """A method that was put into Opacus's class passed for Opacus's own."""
    made, own = private(), DPOptimizer.clip_and_accumulate

    def tenfold(self):
        own(self)
        for p in self.params:
            p.summed_grad = 10.0 * p.summed_grad

    if place == "opacus":
        monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", tenfold)
    else:
        made[1].clip_and_accumulate = types.MethodType(tenfold, made[1])
    seen = watched(*made)
    assert facts.UNKNOWN_CLIPPING in seen.ledger.faults
    assert void(seen)


PARTS = {
    "params": property(lambda self: [p for g in self.param_groups for p in g["params"]][:2]),
    "accumulated_iterations": property(lambda self: max(1, len(self.grad_samples[0])) / self.expected_batch_size),
    "_get_flat_grad_sample": lambda self, p: p.grad_sample - p.grad_sample.mean(0, keepdim=True),
}
"""Noise for some parameters only; a divisor that is the number of records that were drawn; records that are mixed."""


@pytest.mark.parametrize(
    ("name", "said", "wanted"),
    [
        ("params", "flat", facts.UNKNOWN_NOISE),
        ("accumulated_iterations", None, facts.PRIVATE_DIVISOR),
        ("_get_flat_grad_sample", None, facts.UNKNOWN_CLIPPING),
    ],
)
def test_what_opacus_s_methods_ask_for(name, said, wanted):
    made = private()

    def zero_grad(self, set_to_none=False):
        for p in (p for group in self.param_groups for p in group["params"]):
            p.grad = p.grad_sample = p.summed_grad = None

    as_class(made[1], **{name: PARTS[name], "zero_grad": zero_grad})
    seen = watched(*made, clipping=said, how={"epochs": 4})
    assert wanted in seen.ledger.faults
    assert void(seen)


def half(self):
    noise, self.noise_multiplier = self.noise_multiplier, 0.5 * self.noise_multiplier
    OWN["add_noise"](self)
    self.noise_multiplier = noise


def test_half_of_the_noise_in_few_numbers():
    """Its length alone would tell it in many steps only."""
    made = private(model=torch.nn.Linear(4, 2, bias=False))
    as_class(made[1], add_noise=half)
    seen = watched(*made, how={"epochs": 1})
    assert facts.TOO_LITTLE_NOISE in seen.ledger.faults


def of_torch(self, generator=None, once=False):
    """Noise of torch for each gradient, or one noise for all of them."""
    std, first = self.noise_multiplier * self.max_grad_norm, None
    for p in self.params:
        if first is None or not once:
            first = torch.normal(mean=0, std=std, size=p.summed_grad.shape, device=p.device, generator=generator)
        p.grad = (p.summed_grad + first).view_as(p)
        _mark_as_processed(p.summed_grad)


@pytest.mark.parametrize(("once", "other"), [(False, False), (True, False), (False, True)])
def test_each_gradient_has_a_draw_of_its_own_from_the_generator_that_is_followed(once, other):
    """One noise for two gradients: their difference has none. Nobody knows the seed of another generator."""
    layers = [torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)]
    made = private(model=torch.nn.Sequential(*layers))
    generator = torch.Generator() if other else None
    as_class(made[1], add_noise=lambda self: of_torch(self, generator, once))
    seen = watched(*made, how={"epochs": 1})
    assert (facts.UNKNOWN_NOISE in seen.ledger.faults) == (once or other)


def test_less_noise_that_a_class_adds_in_later_steps():
    """After the steps in which noise is measured of every optimizer."""
    steps = []

    def late(self):
        steps.append(1)
        half(self) if len(steps) == 11 else OWN["add_noise"](self)

    made = private()
    as_class(made[1], add_noise=late)
    seen = watched(*made)
    assert len(steps) == 12
    assert facts.TOO_LITTLE_NOISE in seen.ledger.faults


def laplace(std, reference, *args, **kwargs):
    return torch.distributions.Laplace(0.0, 0.75 * std).sample(reference.shape)


@pytest.mark.parametrize("where", ["opacus", "torch"])
def test_a_law_that_was_exchanged_below(where, monkeypatch):
    """As long as what is stated, or longer: no measurement of lengths sees it."""
    made = private()
    if where == "opacus":
        monkeypatch.setattr(inside, "_generate_noise", laplace)
    else:
        signs = lambda mean, std, size, **_: torch.full(size, 1.2 * std)  # noqa: E731
        monkeypatch.setattr(torch, "normal", signs)
    seen = watched(*made)
    assert facts.UNKNOWN_NOISE in seen.ledger.faults
    assert facts.TOO_LITTLE_NOISE not in seen.ledger.faults


class Same(DPOptimizer):
    def add_noise(self):
        super().add_noise()

    def scale_grad(self):
        super().scale_grad()

    def step(self, closure=None):
        return super().step(closure)


class Copied(DPOptimizer):
    def add_noise(self):
        for p in self.params:
            drawn = _generate_noise(self.noise_multiplier * self.max_grad_norm, p.summed_grad, self.generator)
            p.grad = (p.summed_grad + drawn).view_as(p)
            _mark_as_processed(p.summed_grad)


class Tenfold(DPOptimizer):
    def scale_grad(self):
        for p in self.params:
            p.grad = p.grad / (10.0 * BATCH)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("kind", [Same, Copied, Tenfold])
def test_noise_of_opacus_stays_what_it_is(kind, secure):
    made = private()
    made[1].__class__ = kind
    if secure:
        rt.secure_noise(made[1])
        torch.manual_seed(0)
    seen = watched(*made)
    assert not [fault for fault in seen.ledger.faults if fault.voids]
    assert seen.mechanism().noise_multiplier == NOISE
    assert (seen.ledger.environment.randomness is Generator.SECURE) == secure
    assert seen.ledger.divisor == (None if kind is Tenfold else BATCH)


def test_a_divisor_of_the_programs_own_is_looked_at():
    """The number of records that were drawn is private."""
    made, sizes = private(), []

    def clip_and_accumulate(self):
        sizes.append(len(self.grad_samples[0]))
        OWN_CLIP(self)

    def scale_grad(self):
        for p in self.params:
            p.grad = p.grad / max(1, sizes[-1])

    as_class(made[1], clip_and_accumulate=clip_and_accumulate, scale_grad=scale_grad)
    seen = watched(*made, clipping="flat", how={"epochs": 4})
    assert facts.PRIVATE_DIVISOR in seen.ledger.faults


OWN_CLIP = DPOptimizer.clip_and_accumulate


@pytest.mark.parametrize("kind", [{}, {"mode": "ghost"}, {"clipping": "per_layer"}, {"clipping": "adaptive"}])
def test_classes_of_opacus_are_known(kind):
    seen = watched(*private(**kind))
    assert not {facts.UNKNOWN_NOISE, facts.UNKNOWN_CLIPPING} & set(seen.ledger.faults)
    assert not void(seen)


def test_secure_noise_refuses_another_method_of_the_object():
    optimizer = private()[1]
    optimizer.add_noise = types.MethodType(coins, optimizer)
    with pytest.raises(UnsupportedError, match="has an add_noise of its own"):
        rt.secure_noise(optimizer)


@pytest.mark.parametrize("base", [False, True])
def test_a_step_whose_noise_is_not_torch_s_fails_with_secure_noise(base):
    made = private()
    as_class(made[1], add_noise=coins)
    if base:
        as_class(made[1], add_noise=lambda self: super(type(self), self).add_noise())
    rt.secure_noise(made[1])
    with pytest.raises(UnsupportedError, match="add_noise of Mine uses neither Opacus's nor"):
        run(*made, epochs=1)


def test_secure_noise_that_is_put_on_inside_the_block_is_what_is_used():
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


def test_the_page_of_what_nobody_saw_is_no_report_of_a_leak(tmp_path, quick_documents):
    """The headline said that the release "hides next to nothing", where nobody merely saw enough."""
    made = private()
    as_class(made[1], add_noise=coins)
    certified = rt.certify(watched(*made))
    assert certified.title().startswith("Nothing is proven that keeps an attacker from")
    files = certified.save(tmp_path / "out", languages=("de", "fr"))
    for page in (files.page, *(files.page.with_suffix(f".{code}.html") for code in ("de", "fr"))):
        for word in ("next to nothing", "verbirgt fast nichts", "cache presque rien"):
            assert word not in page.read_text()


def test_who_declared_nothing_is_not_said_to_have():
    for what in (rt.dpsgd(noise_multiplier=1.0, sample_rate=0.1, steps=10), watched(*private(mode="ew"))):
        assert "program declared" not in repr(rt.lint(what))
    assert str(facts.DECLARED.text).startswith("Noise, clipping or sampling are taken as they were stated or set")
