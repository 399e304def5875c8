"""Configurations: one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from reticent.facts.steps import MOST_STEPS
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.training import load_config, parse_config, train
from tests.training.small import BASE, configured

CONFIGS = Path(__file__).parents[2] / "configs"
GOOD = BASE | {"data": {"name": "digits"}, "steps": 15}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda p: p.name)
def test_shipped_configurations_are_valid_and_fresh(path):
    assert load_config(path).randomness.value == "fresh"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochz": 3}, "c: unknown key 'epochz'"),
        ({"data": {"name": "nowhere"}}, "c: data.name: must be one of adult, .*, got 'nowhere'"),
        ({"data": {"name": "purchase-100", "path": "/dev/zero"}}, "data.path: must be left out: data are read under"),
        ({"data": {"name": "own", "train_size": 5}}, "another record would come in for one .* say train_fraction"),
        ({"data": {"name": "digits", "folder": "x"}}, "c: unknown key 'data.folder'"),
        ({"model": {"kind": "mlp", "widths": [4], "depth": 2}}, "c: unknown key 'model.mlp.depth'"),
        ({"model": {"kind": "forest"}}, "model.*'forest'"),
        ({"model": {"kind": "mlp", "widths": []}}, "model.mlp.widths"),
        ({"model": {"kind": "mlp", "widths": [-3]}}, r"model.mlp.widths.0: .*greater than or equal to 1, got -3"),
        ({"noise_multiplier": -1.0}, "noise_multiplier: .*greater than or equal to 0, got -1.0"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier: .*got nan"),
        ({"noise_multiplier": float("inf")}, "noise_multiplier"),
        ({"noise_multiplier": None}, "exactly one of noise_multiplier and target"),
        ({"target": {"advantage": 0.1}}, "exactly one of noise_multiplier and target"),
        ({"noise_multiplier": None, "target": {"advantage": 1.5}}, "target.advantage: .*less than 1, got 1.5"),
        ({"noise_multiplier": None, "target": {}}, "target: exactly one of advantage, "),
        ({"noise_multiplier": None, "target": {"advantage": 0.1, "mu": 1}}, "target: exactly one of"),
        ({"noise_multiplier": None, "target": {"epsilon": 1.0}}, "target: epsilon is stated with delta"),
        ({"noise_multiplier": None, "target": {"mu": 1.0, "delta": 0.1}}, "target: mu takes no other field"),
        ({"noise_multiplier": None, "target": {"risk": 1.0}}, "unknown key 'target.risk'"),
        ({"max_grad_norm": 0}, "max_grad_norm: .*greater than 0, got 0"),
        ({"batch_size": None, "sample_rate": 1.5}, "sample_rate: .*less than or equal to 1, got 1.5"),
        ({"sample_rate": 0.5}, "exactly one of sample_rate and batch_size"),
        ({"batch_size": None}, "exactly one of sample_rate and batch_size"),
        ({"epochs": 2}, "exactly one of epochs and steps"),
        ({"steps": 0}, "steps: .*greater than or equal to 1, got 0"),
        ({"steps": MOST_STEPS + 1}, "steps: .*less than or equal to 1000000"),
        ({"steps": 1.5}, "steps: .*got 1.5"),
        ({"sampler": "weighted"}, "sampler: must be one of poisson, .* cyclic, got 'weighted'"),
        ({"sampler": "shuffled", "batch_size": None, "sample_rate": 0.1}, "shuffled needs batch_size"),
        ({"sampler": {"name": "poisson", "draws_per_step": 2}}, "sampler: must be a sampler without settings of its"),
        ({"sampler": {"name": "shuffled", "uses_per_epoch": 2}}, "sampler: has no setting uses_per_epoch"),
        ({"sampler": {"name": "random-allocation", "uses_per_epoch": 0}}, "sampler: uses_per_epoch must be a"),
        ({"sampler": {"name": "block-allocation", "uses_per_epoch": 2}}, "sampler: must be one of poisson"),
        ({"sampler": {"uses_per_epoch": 2}}, "sampler: must be one of poisson"),
        ({"sampler": [1]}, "sampler: must be one of poisson"),
        ({"randomness": "secure"}, "randomness"),
        ({"device": "tpu"}, "device"),
        ({"optimiser": "adam", "momentum": 0.9}, "momentum is for optimiser sgd"),
        ({"seed": -1}, "seed"),
        ({"learning_rate": "fast"}, "learning_rate: .*got 'fast'"),
    ],
)
def test_bad_values_end_in_one_line(changes, message):
    document = {key: value for key, value in (GOOD | changes).items() if value is not None or key == "noise_multiplier"}
    with pytest.raises(ArtifactError, match=message) as caught:
        parse_config(document, "c")
    assert "\n" not in str(caught.value)


def test_missing_key_is_named():
    with pytest.raises(ArtifactError, match="c: learning_rate is missing"):
        parse_config({k: v for k, v in GOOD.items() if k != "learning_rate"}, "c")
    with pytest.raises(ArtifactError, match="must be a mapping"):
        parse_config([1], "c")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 10**6}, "batch_size must be at most the 1437 training records"),
        ({"data": {"name": "digits", "train_size": 10**6}}, "train_size must be at most 1437"),
        ({"model": {"kind": "convnet"}}, "hold no images"),
        ({"epochs": 1e300}, f"epochs must be so few that the run has at most {MOST_STEPS} steps"),
    ],
)
def test_what_only_the_data_can_tell(tmp_path, changes, message):
    with pytest.raises(ParameterError, match=message):
        train(configured(GOOD, **({"steps": None} if "epochs" in changes else {}), **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_every_setting_is_published_or_kept_by_decision() -> None:
    """A new setting stays out of public certificates until it has its place."""
    from reticent.records.publication import SETTINGS
    from reticent.training.config import TrainConfig

    assert set(TrainConfig.model_fields) - {"data", "seed", "sensitive"} == SETTINGS
