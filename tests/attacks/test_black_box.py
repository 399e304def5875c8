"""Attacks by name on real runs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from reticent.attacks.base import ATTACKS, AttackSettings, find_attack
from reticent.auditing import Design
from reticent.cli import main
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.training import parse_config, train

BLACK_BOX = ("loss", "confidence", "lira", "lira-offline", "rmia", "rmia-offline")


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory):
    """Digits learned by heart, without clipping or noise, from few records."""
    document = {
        "data": {"name": "digits", "train_fraction": 0.2},
        "model": {"kind": "mlp", "widths": [32]},
        "noise_multiplier": 0.0,
        "max_grad_norm": 1e6,
        "batch_size": 32,
        "epochs": 30,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "randomness": "reproducible",
    }
    path = tmp_path_factory.mktemp("overfitted") / "run"
    train(parse_config(document), path)
    return path


def area(scores) -> float:
    more = scores.member[:, None] > scores.non_member
    return float(np.mean(more + 0.5 * (scores.member[:, None] == scores.non_member)))


def test_every_attack_beats_guessing_on_a_model_that_has_learned_by_heart(overfitted):
    areas, told = {}, []
    for name in BLACK_BOX:
        settings = AttackSettings(records=300, models=16, resume=True, announce=told.append)
        scores = find_attack(name).scores(overfitted, settings)
        assert scores.design is Design.POPULATION
        assert scores.meta["attack"] == name
        assert (len(scores.member), len(scores.non_member)) == (300, 300)
        areas[name] = area(scores)
    assert len(told) == 1, "shadow models were trained once and used by four attacks"
    assert min(areas.values()) > 0.53, areas
    assert areas["lira"] > areas["loss"] + 0.03, areas


def test_an_earlier_attack_is_not_touched_without_resume_and_damage_is_one_clear_error(overfitted, tmp_path, capsys):
    lira = partial(AttackSettings, records=20, models=16, work=tmp_path)
    first = find_attack("lira").scores(overfitted, lira())
    again = find_attack("lira").scores(overfitted, lira(resume=True))
    assert np.array_equal(first.member, again.member)
    with pytest.raises(ArtifactError, match="--resume"):
        find_attack("lira-offline").scores(overfitted, lira(models=2))
    (result,) = (tmp_path / "tasks").glob("*/result.safetensors")
    result.write_bytes(result.read_bytes()[:-3])
    with pytest.raises(ArtifactError, match="SHA-256"):
        find_attack("lira").scores(overfitted, lira(resume=True))
    (tmp_path / "manifest.json").write_text('{"schema": "reticent.run-manifest/1", "plan": {"x": NaN}}')
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(overfitted), "--attack", "lira", "--work", str(tmp_path), "--resume"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("reticent: ")
    assert "manifest.json" in line


@pytest.mark.parametrize("name", ["lira", "rmia"])
def test_too_few_shadow_models_are_refused_before_any_is_trained(overfitted, tmp_path, monkeypatch, name):
    for trains in ("shadow.expected_cost", "shadow.train_block", "shadow_training.ShadowBlock.train_stacked"):
        monkeypatch.setattr(f"reticent.attacks.{trains}", lambda *_: pytest.fail("a model was trained"))
    settings = AttackSettings(records=20, models=4, work=tmp_path / "new", announce=lambda _: None)
    with pytest.raises(ParameterError, match=r"models must be more: .* lacks models on one side of a record, got 4"):
        find_attack(name).scores(overfitted, settings)
    assert not (tmp_path / "new").exists()


def test_the_canary_attack_takes_the_settings_of_the_run(tmp_path):
    document = {
        "data": {"name": "breast-cancer"},
        "model": {"kind": "logistic"},
        "noise_multiplier": 0.5,
        "batch_size": 64,
        "steps": 40,
        "learning_rate": 0.1,
    }
    train(parse_config(document), tmp_path / "run")
    scores = find_attack("canary").scores(tmp_path / "run", AttackSettings(canaries=400))
    assert len(scores) == 400
    assert scores.meta["steps"] == 40
    assert area(scores) > 0.7


def test_every_name_leads_to_an_attack_and_no_other_does():
    for name in ATTACKS:
        found = find_attack(name)
        assert found.name == name
        assert found.summary
    with pytest.raises(ParameterError, match="one of loss, confidence"):
        find_attack("os.system")
    with pytest.raises(ParameterError, match="models"):
        AttackSettings(models=0)
