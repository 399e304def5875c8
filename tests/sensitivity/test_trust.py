"""Right or refused: eighty module types and patterns against brute force, and what the comparison must see."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
import torch
from torch import nn

from reticent.kernel.errors import ReticentError, UnsupportedError
from reticent.sensitivity import GradientSensitivity, Precision, Route, SensitiveAttribute
from reticent.sensitivity.recorder import AttributeRecorder
from tests.sensitivity.hard_modules import Net, head, mlp
from tests.sensitivity.module_cases import CASES, fresh, state_of, truth

AGE = SensitiveAttribute((2,), np.array([[-1.0], [0.3], [2.0]]))


def _batch(records: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(records, 6, generator=torch.Generator().manual_seed(5)), torch.arange(records) % 3


def _measured(model: nn.Module, case, clip: float):
    meter = GradientSensitivity(model, case.attribute(), max_grad_norm=clip, loss=case.loss)
    blocks = [(b.squared.clone(), b.norms.clone()) for b in meter.blocks(*case.batch())]
    return torch.cat([b[0] for b in blocks]).double().sqrt(), torch.cat([b[1] for b in blocks]).double(), meter


_ANSWERED = [name for name, case in CASES.items() if isinstance(case.expected, Route)]
_REFUSED = [name for name, case in CASES.items() if not isinstance(case.expected, Route)]


def _each_at_one_clip_norm() -> list:
    """Every case where all gradients are clipped or where none is, in turn; the other half is slow."""
    both = [(name, clip, first) for k, name in enumerate(_ANSWERED) for clip, first in ((0.7, k % 2), (1e3, 1 - k % 2))]
    return [pytest.param(name, clip, marks=() if first else pytest.mark.slow) for name, clip, first in both]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "clip"), _each_at_one_clip_norm())
def test_equal_to_brute_force(name, clip):
    case = CASES[name]
    model = fresh(case)
    before, drawn = state_of(model), torch.get_rng_state()
    expected, norms = truth(case, clip)
    distances, found, meter = _measured(model, case, clip)
    near = 1e-6 if case.dtype is torch.float64 else 2e-6
    torch.testing.assert_close(distances, expected, rtol=1e-6, atol=near / max(1.0, clip))
    torch.testing.assert_close(found, norms, rtol=1e-6, atol=near / max(1.0, clip))
    assert meter.route is case.expected
    after = state_of(model)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert before["notes"] == after["notes"]
    assert all(torch.equal(value, after["numbers"][key]) for key, value in before["numbers"].items())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _REFUSED)
def test_refused_by_name(name):
    case = CASES[name]
    model = fresh(case)
    drawn, legacy, plain = torch.get_rng_state(), np.random.get_state()[2], random.getstate()
    with pytest.raises(ReticentError, match=case.expected) as caught:
        _measured(model, case, 1.0)
    assert "\n" not in str(caught.value)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert np.random.get_state()[2] == legacy
    assert random.getstate() == plain


def test_the_table_is_large_enough():
    assert len(_ANSWERED) >= 40
    assert len(_REFUSED) >= 20


@pytest.mark.parametrize(
    ("name", "blinded", "blind"),
    [
        ("layer called and used through F.linear", "layered._uses", lambda total: defaultdict(int)),
        ("forward set on the model", "dense.any", lambda found: False),
    ],
)
def test_brute_force_finds_what_the_fast_ways_overlook(name, blinded, blind, monkeypatch):
    """With the structural checks taken out, the comparison alone sends these models to the slow way."""
    monkeypatch.setattr(f"reticent.sensitivity.{blinded}", blind, raising=False)
    case = CASES[name]
    distances, _, meter = _measured(fresh(case), case, 0.7)
    assert meter.route is Route.SINGLE
    torch.testing.assert_close(distances, truth(case, 0.7)[0], rtol=1e-6, atol=1e-6)


def _scheduled() -> Net:
    model = Net(lambda m, x: m.out(torch.tanh(m.first(x)) * m.gain * m.hidden[0]), first=nn.Linear(6, 5), out=head())
    model.gain, model.hidden = 1.0, [1.0]
    return model


def _truth_now(model: Net, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return GradientSensitivity(model, AGE, max_grad_norm=0.5).diameters(x, y)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "gain", 3.0),
        lambda m: m.first.requires_grad_(False),
        lambda m: setattr(m, "how", lambda n, x: n.out(n.first(x))) or m.eval(),
    ],
    ids=["a number on the module", "a layer is frozen", "evaluation mode"],
)
def test_a_change_of_the_model_is_seen_at_once(change):
    model, (x, y) = _scheduled(), _batch()
    meter = GradientSensitivity(model, AGE, max_grad_norm=0.5)
    first = meter.diameters(x, y).clone()
    change(model)
    now = meter.diameters(x, y)
    assert not torch.allclose(first, now)
    torch.testing.assert_close(now, _truth_now(model, x, y))


def test_a_layer_that_starts_to_train_its_batch_norm_is_refused():
    model, (x, y) = mlp(nn.BatchNorm1d(5)).eval(), _batch()
    meter = GradientSensitivity(model, AGE)
    meter.diameters(x, y)
    model.train()
    with pytest.raises(UnsupportedError, match="mixes the records"):
        meter.diameters(x, y)


def test_a_hook_added_later_is_refused():
    model, (x, y) = mlp(), _batch()
    meter = GradientSensitivity(model, AGE)
    meter.diameters(x, y)
    model[0].register_forward_hook(lambda m, i, o: 2.0 * o)
    with pytest.raises(UnsupportedError, match="has a hook"):
        meter.diameters(x, y)


def test_a_later_step_that_disagrees_spoils_the_record(monkeypatch):
    """What changes out of sight is found by the comparison at random later steps, and nothing is given out."""
    model, (x, y) = _scheduled(), _batch()
    recorder = AttributeRecorder(model, AGE, noise_multiplier=1.0)
    assert recorder.observe(x, y)
    recorder.record()
    model.hidden[0] = 2.0
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    with pytest.raises(UnsupportedError, match="no longer agree"):
        recorder.observe(x, y)
    with pytest.raises(UnsupportedError, match=r"the record is not complete: .*no longer agree"):
        recorder.record()


def test_later_steps_are_compared_at_random(monkeypatch):
    model, (x, y) = mlp(), _batch()
    meter = GradientSensitivity(model, AGE)
    seen = []
    meter.diameters(x, y)
    monkeypatch.setattr(meter._examiner, "agrees", lambda *a: seen.append(len(seen)) or True)
    for _ in range(400):
        meter.diameters(x[:1], y[:1])
    assert 1 <= len(seen) <= 20


def _cancelling(size: float) -> nn.Module:
    """Each unit of ``size`` has a twin of opposite sign, a little apart: logits lose the digits that both share."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        with torch.no_grad():
            for of_half in (model[0].weight.mul_(size), model[0].bias.mul_(size)):
                of_half[8:] = of_half[:8]
            model[0].weight[8:] += 0.3 * torch.randn(8, 6)
            model[2].weight[:, 8:] = -model[2].weight[:, :8]
    return model


@pytest.mark.parametrize("size", [1.0, 2e4])
def test_single_precision_is_left_where_it_loses_more_than_the_slack(size):
    model, (x, y) = _cancelling(size), _batch()
    single = GradientSensitivity(model, AGE, precision=Precision.SINGLE)
    (block,) = single.blocks(x, y)
    found, kept = block.squared.double().clone(), block.squared.dtype
    (exact,) = GradientSensitivity(model, AGE).blocks(x.double(), y)
    assert float((found - exact.squared).abs().max()) < single.slack
    assert kept is (torch.float32 if size == 1.0 else torch.float64)


def test_single_precision_is_looked_at_again(monkeypatch):
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    model = _cancelling(1.0)
    meter = GradientSensitivity(model, AGE, precision=Precision.SINGLE)
    meter.diameters(*_batch())
    model.load_state_dict(_cancelling(2e4).state_dict())
    with pytest.raises(UnsupportedError, match="no longer agree"):
        meter.diameters(*_batch())


@pytest.mark.parametrize("wrapped", [False, True])
def test_answers_that_are_nearly_certain_are_measured_in_single_precision(monkeypatch, wrapped):
    """A trained network leaves gradients of 1e-6: rounding has eaten their digits, and no clip norm notices."""
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    model, (x, _) = mlp(), _batch()
    meter = GradientSensitivity(nn.Sequential(model) if wrapped else model, AGE, precision=Precision.SINGLE)
    meter.diameters(x, model(x).argmax(1))
    with torch.no_grad():
        last = model[-1]
        last.weight.zero_()
        last.weight[0] += 1e-3
        last.bias[0] = 14.0
    sure = torch.zeros(len(x), dtype=torch.int64)
    (block,) = meter.blocks(x, sure)
    found = block.squared.double().clone()
    (exact,) = GradientSensitivity(model, AGE).blocks(x.double(), sure)
    assert 0.0 < float(exact.norms.max()) < 1e-4
    assert float((found - exact.squared).abs().max()) < block.slack


def test_randomness_that_starts_later_is_refused_and_put_back():
    model, (x, y) = _scheduled(), _batch()
    model.hidden[0] = 0.0
    model.how = lambda m, x: m.out(m.first(x) if not m.hidden[0] else nn.functional.dropout(m.first(x), 0.5))
    meter = GradientSensitivity(model, AGE)
    meter.diameters(x, y)
    # The copy that measures holds a list of its own, so its randomness starts when it does.
    meter._engine._copy.hidden[0] = 1.0
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedError, match="draws random numbers in forward"):
        meter.diameters(x, y)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_loss_that_reads_the_weights_is_measured():
    """A penalty on the weights belongs to every record's loss; only brute force sees it."""
    model, (x, y) = mlp(), _batch()

    def penalised(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(out, target, reduction="none") * (1.0 + model[0].weight.square().sum())

    meter = GradientSensitivity(model, AGE, max_grad_norm=1e3, loss=penalised)
    plain = GradientSensitivity(model, AGE, max_grad_norm=1e3)
    assert float(meter.diameters(x, y).max()) > 1.1 * float(plain.diameters(x, y).max())
    assert meter.route is Route.SINGLE


def test_a_model_is_given_back_when_it_fails():
    model, (x, y) = CASES["fails in forward"].build(), _batch()
    weights = [p.data_ptr() for p in model.parameters()]
    with pytest.raises(UnsupportedError, match="does not run on one record"):
        GradientSensitivity(model, AGE).diameters(x, y)
    assert [p.data_ptr() for p in model.parameters()] == weights
    assert all(p.dtype is torch.float32 for p in model.parameters())


def test_no_module_is_one_line():
    with pytest.raises(ReticentError, match=r"model must be a torch\.nn\.Module"):
        GradientSensitivity(lambda x: x, AGE)
