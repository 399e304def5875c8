"""Shadow models: the same models as one at a time, extended without retraining, the same bits everywhere."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.base import AttackSettings
from reticent.attacks.shadow import (
    ShadowPlan,
    shadow_tasks,
    train_shadow_models,
)
from reticent.attacks.shadow_training import BLOCK, ShadowBlock, block_size, members_of, model_seed
from reticent.attacks.signals import scaled_confidence
from reticent.attacks.stacked import StackedMLP, is_mlp
from reticent.facts.steps import Randomness
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.tasks import Store
from reticent.training import RunContext, fit, parse_config
from reticent.training.models import build_model
from reticent.training.randomness import SeededSource, Stream, torch_seed
from reticent.training.setup import make_settings, optimiser_of
from reticent.training.smoothing import WeightAverage
from tests.sensitivity.cases import gradients_of

RECORDS, FEATURES, CLASSES = 120, 7, 3
rng = np.random.default_rng(0)
X = rng.standard_normal((RECORDS, FEATURES)).astype(np.float32)
Y = rng.integers(0, CLASSES, RECORDS)


def config(**changes):
    base = {
        "data": {"name": "digits"},
        "model": {"kind": "mlp", "widths": [5, 4], "activation": "relu"},
        "noise_multiplier": 0.7,
        "max_grad_norm": 0.4,
        "batch_size": 10,
        "steps": 25,
        "learning_rate": 0.3,
        "momentum": 0.5,
    }
    return parse_config({**base, **changes})


def one_at_a_time(settings_of, seed: int, initial: int, chosen: np.ndarray) -> nn.Module:
    """``reticent.training.fit`` itself on the chosen records."""
    model = build_model(settings_of.model, (FEATURES,), CLASSES, initial)
    settings = make_settings(settings_of, len(chosen))
    context = RunContext(settings, model, torch.from_numpy(X[chosen]), torch.from_numpy(Y[chosen]))
    sources = [SeededSource(seed, stream) for stream in (Stream.SAMPLING, Stream.NOISE)]
    averages = [] if settings_of.average_last is None else [WeightAverage(settings_of.average_last)]
    fit(context, partial(optimiser_of, settings_of, settings.steps), *sources, hooks=averages)
    for mean in averages:
        mean.install()
    return model


SETTINGS = {
    "poisson": {},
    "fixed-size adam": {"sampler": "fixed-size", "optimiser": "adam", "momentum": 0.0, "learning_rate": 0.01},
    "empty batches": {"model": {"kind": "logistic"}, "batch_size": None, "sample_rate": 0.01},
    "schedule, average and decay": {
        "learning_rate_schedule": {"decay": "cosine", "warmup": 0.2},
        "average_last": 0.4,
        "weight_decay": 0.05,
        "model": {"kind": "mlp", "widths": [6], "activation": "tanh"},
    },
    "shuffled": {"sampler": "shuffled", "noise_multiplier": 0.0, "max_grad_norm": 1e6, "divisor": 9.0},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_stacked_training_is_the_training_of_each_model_alone(name):
    settings_of = config(**SETTINGS[name])
    chosen = [np.sort(rng.permutation(RECORDS)[:90]) for _ in range(2)]
    models = StackedMLP([build_model(settings_of.model, (FEATURES,), CLASSES, seed) for seed in range(2)])
    block = ShadowBlock(settings_of, torch.from_numpy(X), torch.from_numpy(Y), CLASSES, [5, 6], chosen)
    block.train_stacked(models, make_settings(settings_of, 90).steps)
    for k in range(2):
        alone = one_at_a_time(settings_of, 5 + k, k, chosen[k])
        for ours, theirs in zip(models.parameters, alone.parameters(), strict=True):
            torch.testing.assert_close(ours[k], theirs.detach(), rtol=2e-4, atol=2e-5)
        answers = alone(torch.from_numpy(X)).detach()
        torch.testing.assert_close(models.logits(torch.from_numpy(X))[k], answers, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("clip", [0.5, None])
def test_stacked_gradients_are_those_of_each_record(clip):
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.ReLU(), nn.Linear(3, 2)) for _ in range(2)]
    models = StackedMLP(modules)
    x, y, weights = torch.randn(2, 6, 1, 4, 4), torch.randint(0, 2, (2, 6)), torch.ones(2, 6)
    weights[1, 0] = 0.0  # left out
    models.add_gradients(x, y, weights, clip)
    for k, module in enumerate(modules):
        g = gradients_of(module, x[k], y[k])
        if clip is not None:
            g /= (g.norm(dim=1, keepdim=True) / clip).clamp(min=1.0)
        found = torch.cat([p.grad[k].flatten() for p in models.parameters])
        torch.testing.assert_close(found.double(), weights[k].double() @ g, rtol=1e-4, atol=1e-5)


def test_mlps_are_stacked_and_others_are_not():
    assert is_mlp(nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    for other in (
        nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)),
    ):
        assert not is_mlp(other)
        with pytest.raises(UnsupportedError, match="StackedMLP takes"):
            StackedMLP([other, other])


def test_sixteen_models_extend_to_forty_without_retraining(tmp_path):
    store, reports = Store(tmp_path), []
    first = train_shadow_models(ShadowPlan(config(), 16, 90), X, Y, store)
    more = train_shadow_models(ShadowPlan(config(), 40, 90), X, Y, store, AttackSettings(progress=reports.append))
    assert reports[0].done == 1
    assert reports[-1].done == reports[-1].total == 3
    assert np.array_equal(first.confidence, more.confidence[:16])
    assert np.array_equal(first.included, more.included[:16])
    assert len({row.tobytes() for row in more.confidence}) == 40
    other = train_shadow_models(ShadowPlan(config(), 40, 90), X, Y, Store(tmp_path / "other"))
    assert np.array_equal(other.confidence, more.confidence)


def test_what_the_result_depends_on_is_in_the_key_and_nothing_else(tmp_path):
    store = Store(tmp_path)
    digest = store.put({"features": X, "labels": Y})

    def key(plan, pool=digest):
        return shadow_tasks(plan, pool, CLASSES, (FEATURES,))[0].key

    base = key(ShadowPlan(config(), 16, 90))
    same = config(seed=5, randomness=Randomness.REPRODUCIBLE.value, physical_batch_size=7, trace={"every": 2})
    assert key(ShadowPlan(same, 64, 90)) == base
    for plan in (
        ShadowPlan(config(), 16, 91),
        ShadowPlan(config(), 16, 90, seed=1),
        ShadowPlan(config(noise_multiplier=0.8), 16, 90),
        ShadowPlan(config(sampler="shuffled"), 16, 90),
    ):
        assert key(plan) != base
    assert key(ShadowPlan(config(), 16, 90), store.put({"features": X + 1, "labels": Y})) != base


@pytest.mark.parametrize(
    ("free", "models", "size"),
    [(140e9, 4000, 2048), (140e9, 100, 128), (140e9, 16, 16), (9e9, 4000, 512), (2e9, 4000, 128), (1e6, 4000, 16)],
)
def test_blocks_fill_a_quarter_of_a_device(monkeypatch, free, models, size):
    model = build_model(config(model={"kind": "mlp", "widths": [128]}).model, (108,), 2, 0)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (int(free), int(140e9)))
    assert block_size(model, torch.device("cuda"), models) == size
    assert block_size(model, torch.device("cpu"), models) == BLOCK


@pytest.mark.parametrize("size", [75, 90, 108])
def test_every_record_is_in_and_out_of_equally_many_models(size):
    included = np.zeros((BLOCK, RECORDS), dtype=int)
    for number in range(BLOCK):
        included[number, members_of(3, number, RECORDS, size)] = 1
    assert np.all(included.sum(axis=1) == size)
    assert np.ptp(included.sum(axis=0)) <= 1
    assert included.sum(axis=0).min() >= 1
    assert included.sum(axis=0).max() < BLOCK
    assert not np.array_equal(members_of(3, 0, RECORDS, size), members_of(3, BLOCK, RECORDS, size))
    assert len({model_seed(3, n) for n in range(200)}) == 200


def test_a_model_that_is_large_or_no_mlp_is_one_task_and_trained_by_fit(tmp_path, monkeypatch):
    store, plan = Store(tmp_path), ShadowPlan(config(steps=6), 3, 90, seed=2)
    stacked = train_shadow_models(plan, X, Y, store)
    digest = store.put({"features": X, "labels": Y})
    convolutions = ShadowPlan(config(model={"kind": "convnet", "channels": [2]}), 3, 90)
    assert len(shadow_tasks(convolutions, digest, CLASSES, (1, 6, 6))) == 3
    monkeypatch.setattr("reticent.attacks.shadow.LARGE", 1)
    assert len(shadow_tasks(plan, digest, CLASSES, (FEATURES,))) == 3
    alone = train_shadow_models(plan, X, Y, store)
    assert np.array_equal(alone.included, stacked.included)
    assert alone.confidence == pytest.approx(stacked.confidence, rel=1e-3, abs=1e-3)
    start = torch_seed(model_seed(2, 1), Stream.INITIALISATION)
    model = one_at_a_time(plan.config, model_seed(2, 1), start, members_of(2, 1, RECORDS, 90))
    logits = model(torch.from_numpy(X)).detach().numpy()
    assert alone.confidence[1] == pytest.approx(scaled_confidence(logits, Y), rel=1e-4, abs=1e-5)


def test_the_cost_is_said_before_the_work(tmp_path):
    told, store, plan = [], Store(tmp_path), ShadowPlan(config(), 32, 90)
    for _ in range(2):
        train_shadow_models(plan, X, Y, store, AttackSettings(announce=told.append))
    assert [line.partition(":")[0] for line in told] == ["32 shadow models to train in 2 tasks, 1 at a time"]
    assert 0.0 <= float(told[0].partition("about ")[2].removesuffix(" s")) < 60.0


@pytest.mark.parametrize(
    ("changes", "models", "size", "words"),
    [
        ({}, 1, 90, "models"),
        ({}, 2, RECORDS, "train_size"),
        ({"clipping": "normalise", "model": {"kind": "logistic"}}, 2, 90, "normalise"),
        ({"augmentation": {"times": 2}}, 2, 90, "augmentation"),
    ],
)
def test_refusals(changes, models, size, words, tmp_path):
    with pytest.raises((ParameterError, UnsupportedError), match=words):
        train_shadow_models(ShadowPlan(config(**changes), models, size), X, Y, Store(tmp_path))
