"""GLiR on models and on recorded runs: gradients, sketches, power where it must be, no power where it must not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks import glir_statistics as statistics
from reticent.attacks.base import AttackSettings, find_attack
from reticent.attacks.glir import Records, ReleasedStep, glir_attack, glir_audit
from reticent.attacks.gradients import GradientMap, Sketch
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.samplers import Shuffled
from reticent.training import parse_config, train
from tests.sensitivity.cases import gradients_of

torch.set_num_threads(1)


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters() if p.requires_grad])


def naive_gradients(model, x, y, clip):
    g = gradients_of(model, x, y).numpy()
    return g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True) / clip, 1.0)


def networks():
    torch.manual_seed(0)
    conv = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3))
    frozen = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
    frozen[0].requires_grad_(False)
    return [
        (nn.Linear(5, 4), (5,), 4),
        (nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 2)), (5,), 2),
        (conv, (1, 4, 4), 3),
        (frozen, (5,), 2),
    ]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("clip", [1e6, 0.5])
def test_gradients_of_any_module(which, clip):
    """LEEMANN2023:G14: clipping multiplies by min(1, C/|g|), not by the maximum."""
    model, shape, classes = networks()[which]
    x, y = torch.randn(7, *shape), torch.randint(0, classes, (7,))
    found = GradientMap(model, clip, chunk=3)(flat(model), x, y)
    assert np.allclose(found, naive_gradients(model, x, y, clip), rtol=1e-4, atol=1e-6)
    assert np.linalg.norm(found, axis=1).max() <= clip * (1 + 1e-5)


def test_gradients_are_those_at_the_given_weights():
    model, other = nn.Linear(5, 3), nn.Linear(5, 3)
    x, y = torch.randn(4, 5), torch.randint(0, 3, (4,))
    found = GradientMap(model, 1.0)(flat(other), x, y)
    assert np.allclose(found, naive_gradients(other, x, y, 1.0), rtol=1e-4, atol=1e-6)
    with pytest.raises(ParameterError, match="weights"):
        GradientMap(model, 1.0)(torch.zeros(3), x, y)


def test_sketch_keeps_white_noise_white():
    sketch = Sketch.draw(37, 10, np.random.default_rng(0))
    matrix = sketch.apply(np.eye(37)).T
    assert np.allclose(matrix @ matrix.T, np.eye(10), atol=1e-12)
    rows = np.random.default_rng(1).normal(size=(3, 37))
    assert np.allclose(sketch.apply(rows), rows @ matrix.T)
    with pytest.raises(ParameterError, match="size"):
        Sketch.draw(5, 6, np.random.default_rng(0))


def world(batch: int, noise: float, steps: int, seed: int, d: int = 6):
    """A logistic model whose batch of ``batch`` members is summed over ``steps`` steps; and others."""
    torch.manual_seed(seed)
    model = nn.Linear(d, 3)
    x, y = torch.randn(batch + 3300, d), torch.randint(0, 3, (batch + 3300,))
    gradients = GradientMap(model, 1.0)
    weights, released = flat(model), []
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        total = gradients(weights, x[:batch], y[:batch]).sum(0)
        total = total + noise * rng.normal(size=len(total))
        released.append(ReleasedStep(weights, total))
        weights = weights - 0.5 * torch.from_numpy(total / batch).float()
    return gradients, released, x, y


def split(x, y, *bounds):
    return [Records(x[a:b], y[a:b]) for a, b in pairwise(bounds)]


def test_members_score_higher_and_calibration_holds():
    gradients, steps, x, y = world(20, 0.0, 2, 1)
    queries, held, background = split(x, y, 0, 620, 1120, 3320)
    result = glir_attack(steps, gradients, queries, background, statistics.BatchDesign(20.0), held)
    member, outsider = result.log_ratio[:20], result.log_ratio[20:]
    assert np.mean(member[:, None] > outsider) > 0.68
    p = result.p_values()
    assert p[20:].mean() == pytest.approx(0.5, abs=0.06)
    assert np.mean(p[20:] <= 0.1) == pytest.approx(0.1, abs=0.05)
    assert any("G1" in w for w in result.warnings)
    # Redundant softmax coordinates were left out, so that the covariance could be inverted.
    assert not any("shrunk" in w for w in result.warnings)


def test_much_noise_leaves_no_power():
    gradients, steps, x, y = world(20, 1e4, 1, 2)
    queries, background = split(x, y, 0, 1020, 3320)
    result = glir_attack(steps, gradients, queries, background, statistics.BatchDesign(20.0, 1.0, 1e4))
    assert np.max(np.abs(result.log_ratio)) < 1e-2
    with pytest.raises(UnsupportedError, match="held-out"):
        result.p_values()
    with pytest.raises(ParameterError, match="steps"):
        glir_attack([], gradients, queries, background, statistics.BatchDesign(20.0))


def test_few_background_records_shrink_and_warn():
    gradients, steps, x, y = world(20, 0.0, 1, 3)
    queries, background = split(x, y, 0, 40, 52)
    result = glir_attack(steps, gradients, queries, background, statistics.BatchDesign(20.0))
    assert np.all(np.isfinite(result.log_ratio))
    assert any("shrunk" in w for w in result.warnings)


def test_an_epoch_of_shuffled_batches_is_put_together():
    """A record is in one batch of each two; of steps that say nothing it says nothing."""
    gradients, steps, x, y = world(20, 0.0, 4, 4)
    queries, background = split(x, y, 0, 40, 3320)
    design = statistics.BatchDesign(20.0, 0.5, sampler=Shuffled())
    inside = np.array([
        glir_attack([step], gradients, queries, background, statistics.BatchDesign(20.0)).log_ratio for step in steps
    ])  # fmt: skip
    expected = np.logaddexp(inside[0], inside[1]) + np.logaddexp(inside[2], inside[3]) + 2 * np.log(0.5)
    found = glir_attack(steps, gradients, queries, background, design).log_ratio
    assert np.allclose(found, expected, rtol=1e-9)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    document = {
        "data": {"name": "breast-cancer"},
        "model": {"kind": "logistic"},
        "noise_multiplier": 0.0,
        "batch_size": 200,
        "max_grad_norm": 1.0,
        "steps": 6,
        "learning_rate": 0.5,
        "seed": 5,
        "randomness": "reproducible",
        "trace": {},
    }
    return train(parse_config(document), tmp_path_factory.mktemp("glir") / "run")


def test_audit_of_a_recorded_run(run, monkeypatch):
    monkeypatch.setattr("reticent.attacks.glir.MOST_STEPS", 4)
    seen, said = [], []
    found = glir_audit(run, progress=lambda *steps: seen.append(steps), announce=said.append)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (found.meta["steps"], found.meta["recorded_steps"]) == (4, 6)
    assert found.meta["smallest_p_value"] == 1 / (1 + found.meta["held_out"])
    assert any("G1" in line for line in said)
    with pytest.raises(ParameterError, match="records must be at least 10"):
        glir_audit(run, records=9)
    assert np.array_equal(glir_audit(run).member, found.member)


def test_the_attack_has_a_name(run):
    seen = []
    settings = AttackSettings(records=30, progress=seen.append)
    scores = find_attack("glir").scores(run.path, settings)
    assert (len(scores.member), len(scores.non_member)) == (30, 28)
    assert scores.meta["attack"] == "glir"
    assert [(p.done, p.total) for p in seen] == [(n, 6) for n in range(1, 7)]


def test_audit_without_trace_is_refused(run, monkeypatch):
    monkeypatch.setattr(type(run), "trace", lambda self: None)
    with pytest.raises(ArtifactError, match="trace"):
        glir_audit(run)
