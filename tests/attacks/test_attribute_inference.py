"""Attribute inference: what the model adds to a guess that needs none."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.attacks.attribute_inference import attack_attribute, guess_attribute
from reticent.data.dataset import binary_group, one_hot_group
from reticent.errors import ParameterError, UnsupportedError
from reticent.training import parse_config, train

rng = np.random.default_rng(0)
N = 3000
SECRET = rng.integers(0, 2, N).astype(np.float32)
HINT = np.where(rng.random(N) < 0.7, SECRET, 1 - SECRET).astype(np.float32)
OTHER = rng.standard_normal(N).astype(np.float32)
FEATURES = np.stack([HINT, SECRET, OTHER], axis=1)
GROUP = binary_group("secret", 1)
COIN = rng.integers(0, 2, N)


def halves(labels):
    return FEATURES[: N // 2], labels[: N // 2], FEATURES[N // 2 :], labels[N // 2 :]


def constant(features):
    return np.zeros((len(features), 2), dtype=np.float32)


def test_a_model_that_answers_nothing_adds_nothing():
    guesses = guess_attribute(constant, GROUP, *halves(COIN))
    assert guesses.success[0] == pytest.approx(0.7, abs=0.03)
    assert guesses.gain == pytest.approx(0.0, abs=0.01)
    assert guesses.p_value > 0.01


def test_a_model_that_knows_what_nobody_could_learn_is_caught():
    """Labels are coins, so no record of others tells anything; this model has memorised the attacked ones."""
    memory = {(h, o): (s, y) for (h, s, o), y in zip(FEATURES.tolist(), COIN.tolist(), strict=True)}

    def memorised(features):
        confident = np.zeros((len(features), 2), dtype=np.float32)
        for row, (h, s, o) in enumerate(features.tolist()):
            secret, label = memory[(h, o)]
            confident[row, label] = 8.0 if s == secret else -8.0
        return confident

    guesses = guess_attribute(memorised, GROUP, *halves(COIN))
    assert guesses.success[0] > 0.99
    assert guesses.success[1] == pytest.approx(0.7, abs=0.03)
    assert guesses.p_value < 1e-12


def test_what_the_label_gives_away_is_not_blamed_on_the_model():
    """The label is the secret: the guess without the model is right as well, and the gain is nothing."""
    labels = SECRET.astype(np.int64)

    def perfect(features):
        return 8.0 * np.stack([1 - features[:, 1], features[:, 1]], axis=1)

    guesses = guess_attribute(perfect, GROUP, *halves(labels))
    assert guesses.success == (pytest.approx(1.0, abs=0.01), pytest.approx(1.0, abs=0.01))
    assert guesses.gain == pytest.approx(0.0, abs=0.01)


def test_values_never_seen_are_possible_but_rare():
    group = one_hot_group("kind", 0, ["a", "b", "c"])
    features = np.eye(3, dtype=np.float32)[np.where(rng.random(200) < 0.5, 0, 1)]
    guesses = guess_attribute(lambda x: np.zeros((len(x), 2)), group, features, COIN[:200], features, COIN[:200])
    assert 0.3 < guesses.success[0] < 0.7


def test_refusals():
    with pytest.raises(UnsupportedError, match="test records"):
        guess_attribute(constant, GROUP, FEATURES[:5], COIN[:5], FEATURES[5:9], COIN[5:9])
    with pytest.raises(ParameterError, match="two values"):
        guess_attribute(constant, one_hot_group("kind", 0, ["a"]), *halves(COIN))


def test_a_run(tmp_path):
    """On real data; a small private model adds next to nothing on members and others alike."""
    document = {
        "data": {"name": "generated-baskets"},
        "model": {"kind": "logistic"},
        "noise_multiplier": 1.0,
        "batch_size": 64,
        "steps": 20,
        "learning_rate": 0.5,
    }
    run = train(parse_config(document), tmp_path / "run")
    attribute = run.dataset().groups[0].name
    result = attack_attribute(tmp_path / "run", attribute, records=100)
    for guesses in (result.members, result.others):
        assert guesses.attribute == attribute
        assert 0.0 <= guesses.success[1] <= 1.0
        assert abs(guesses.gain) < 0.2
    with pytest.raises(ParameterError, match="attribute"):
        attack_attribute(tmp_path / "run", "shoe size")
