"""Right or refused: sixty module types and patterns against brute force, and what the comparison must see."""

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
from tests.sensitivity.cases import CASES, Case, distances, head, mlp, whole
from tests.watching.programs import Net

AGE = SensitiveAttribute((2,), np.array([[-1.0], [0.3], [2.0]]))
X, Y = torch.randn(9, 6, generator=torch.Generator().manual_seed(5)), torch.arange(9) % 3
ANSWERED = [name for name, case in CASES.items() if isinstance(case.expected, Route)]


def measured(model: nn.Module, case: Case, clip: float):
    meter = GradientSensitivity(model, case.attribute, max_grad_norm=clip, loss=case.loss)
    squared, norms = whole(meter, *case.batch())
    return squared.double().sqrt(), norms.double(), meter


def state_of(model: nn.Module) -> tuple:
    """Numbers and notes of a model, and where three generators are."""
    notes = {(name, key) for name, m in model.named_modules() for key in m.__dict__}
    numbers = {k: str(v.tolist()) for k, v in model.state_dict().items() if not nn.parameter.is_lazy(v)}
    return notes, numbers, torch.get_rng_state().tolist(), np.random.get_state()[2], random.getstate()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ANSWERED)
def test_equal_to_brute_force(name):
    """With all gradients clipped or with none, in turn."""
    case, clip = CASES[name], 1e3 if ANSWERED.index(name) % 2 else 0.7
    model = case.fresh()
    before, g = state_of(model), case.truth(clip)
    found, norms, meter = measured(model, case, clip)
    near = (1e-6 if case.dtype is torch.float64 else 2e-6) / max(1.0, clip)
    torch.testing.assert_close(found, distances(g), rtol=1e-6, atol=near)
    torch.testing.assert_close(norms, g.norm(dim=2), rtol=1e-6, atol=near)
    assert meter.route is case.expected
    assert state_of(model) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(CASES.keys() - set(ANSWERED)))
def test_refused_by_name(name):
    model = CASES[name].fresh()
    before = state_of(model)
    weights = [(p.data_ptr(), p.dtype) for p in model.parameters() if not nn.parameter.is_lazy(p)]
    with pytest.raises(ReticentError, match=CASES[name].expected) as caught:
        measured(model, CASES[name], 1.0)
    assert "\n" not in str(caught.value)
    assert state_of(model)[2:] == before[2:]
    assert [(p.data_ptr(), p.dtype) for p in model.parameters() if not nn.parameter.is_lazy(p)] == weights


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
    found, _, meter = measured(CASES[name].fresh(), CASES[name], 0.7)
    assert meter.route is Route.SINGLE
    torch.testing.assert_close(found, distances(CASES[name].truth(0.7)), rtol=1e-6, atol=1e-6)


def scheduled() -> Net:
    model = Net(lambda m, x: m.out(torch.tanh(m.first(x)) * m.gain * m.hidden[0]), first=nn.Linear(6, 5), out=head())
    model.gain, model.hidden = 1.0, [1.0]
    return model


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
    model = scheduled()
    meter = GradientSensitivity(model, AGE, max_grad_norm=0.5)
    first = meter.diameters(X, Y).clone()
    change(model)
    now = meter.diameters(X, Y)
    assert not torch.allclose(first, now)
    torch.testing.assert_close(now, GradientSensitivity(model, AGE, max_grad_norm=0.5).diameters(X, Y))


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        (mlp(nn.BatchNorm1d(5)).eval(), lambda m: m.train(), "mixes the records"),
        (mlp(), lambda m: m[0].register_forward_hook(lambda m, i, o: 2.0 * o), "has a hook"),
    ],
    ids=["batch norm", "hook"],
)
def test_a_change_that_cannot_be_measured_is_refused_later(model, change, words):
    meter = GradientSensitivity(model, AGE)
    meter.diameters(X, Y)
    change(model)
    with pytest.raises(UnsupportedError, match=words):
        meter.diameters(X, Y)


def test_a_later_step_that_disagrees_spoils_the_record(monkeypatch):
    """What changes out of sight is found by the comparison at random later steps, and nothing is given out."""
    model = scheduled()
    recorder = AttributeRecorder(model, AGE, noise_multiplier=1.0)
    assert recorder.observe(X, Y)
    recorder.record()
    model.hidden[0] = 2.0
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    with pytest.raises(UnsupportedError, match="no longer agree"):
        recorder.observe(X, Y)
    with pytest.raises(UnsupportedError, match=r"the record is not complete: .*no longer agree"):
        recorder.record()


def test_later_steps_are_compared_at_random(monkeypatch):
    meter, seen = GradientSensitivity(mlp(), AGE), []
    meter.diameters(X, Y)
    monkeypatch.setattr(meter._examiner, "agrees", lambda *a: seen.append(len(seen)) or True)
    for _ in range(200):
        meter.diameters(X[:1], Y[:1])
    assert 1 <= len(seen) <= 15


def cancelling(size: float) -> nn.Module:
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


def off_by(meter: GradientSensitivity, model: nn.Module, labels: torch.Tensor) -> tuple[float, torch.dtype]:
    """How far squares lie from those in double precision, in slacks; and in which precision they were measured."""
    found, _ = whole(meter, X, labels)
    exact, _ = whole(GradientSensitivity(model, AGE), X.double(), labels)
    return float((found.double() - exact).abs().max()) / meter.slack, found.dtype


@pytest.mark.parametrize("size", [1.0, 2e4])
def test_single_precision_is_left_where_it_loses_more_than_the_slack(size):
    model = cancelling(size)
    apart, kept = off_by(GradientSensitivity(model, AGE, precision=Precision.SINGLE), model, Y)
    assert apart < 1.0
    assert kept is (torch.float32 if size == 1.0 else torch.float64)


def test_single_precision_is_looked_at_again(monkeypatch):
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    model = cancelling(1.0)
    meter = GradientSensitivity(model, AGE, precision=Precision.SINGLE)
    meter.diameters(X, Y)
    model.load_state_dict(cancelling(2e4).state_dict())
    with pytest.raises(UnsupportedError, match="no longer agree"):
        meter.diameters(X, Y)


@pytest.mark.parametrize("wrapped", [False, True])
def test_answers_that_are_nearly_certain_are_measured_in_single_precision(monkeypatch, wrapped):
    """A trained network leaves gradients of 1e-6: rounding has eaten their digits, and no clip norm notices."""
    monkeypatch.setattr("reticent.sensitivity.meter.EXAMINED", 1.0)
    model = mlp()
    meter = GradientSensitivity(nn.Sequential(model) if wrapped else model, AGE, precision=Precision.SINGLE)
    meter.diameters(X, model(X).argmax(1))
    with torch.no_grad():
        model[-1].weight.zero_()
        model[-1].weight[0] += 1e-3
        model[-1].bias[0] = 14.0
    assert off_by(meter, model, torch.zeros_like(Y))[0] < 1.0
    _, norms = whole(GradientSensitivity(model, AGE), X.double(), torch.zeros_like(Y))
    assert 0.0 < float(norms.max()) < 1e-4


def test_randomness_that_starts_later_is_refused_and_put_back():
    model = scheduled()
    model.hidden[0] = 0.0
    model.how = lambda m, x: m.out(m.first(x) if not m.hidden[0] else nn.functional.dropout(m.first(x), 0.5))
    meter = GradientSensitivity(model, AGE)
    meter.diameters(X, Y)
    # The copy that measures holds a list of its own, so its randomness starts when it does.
    meter._engine._copy.hidden[0] = 1.0
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedError, match="draws random numbers in forward"):
        meter.diameters(X, Y)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_loss_that_reads_the_weights_is_measured():
    """A penalty on the weights belongs to every record's loss; only brute force sees it."""
    model = mlp()

    def penalised(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(out, target, reduction="none") * (1.0 + model[0].weight.square().sum())

    meter, plain = (GradientSensitivity(model, AGE, max_grad_norm=1e3, loss=loss) for loss in (penalised, None))
    assert float(meter.diameters(X, Y).max()) > 1.1 * float(plain.diameters(X, Y).max())
    assert meter.route is Route.SINGLE


def test_no_module_is_one_line():
    with pytest.raises(ReticentError, match=r"model must be a torch\.nn\.Module"):
        GradientSensitivity(lambda x: x, AGE)
