"""Several views of each image: their mean gradient is clipped as one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from reticent.attacks.shadow import ShadowPlan, shadow_tasks
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.training import Settings, train
from reticent.training.augmentation import Augmentation
from reticent.training.config_models import ConvNetConfig, LogisticConfig
from reticent.training.models import build_model
from reticent.training.randomness import SeededSource, Stream, SystemSource
from reticent.training.sensitive import AttributeHook
from tests.sensitivity.cases import gradients_of
from tests.training.small import BASE, configured, flat, records, stepped

SHAPE = (2, 8, 8)
CONVNET = ConvNetConfig(kind="convnet", channels=(3, 4))


@pytest.fixture
def images() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return 3 * torch.randn((20, *SHAPE), generator=generator), torch.randint(3, (20,), generator=generator)


def one_run(images, augmentation, *hooks, config=CONVNET, physical=1024, clip=1.0, noise=0.0):
    model = build_model(config, SHAPE, 3, seed=4)
    settings = Settings(noise, clip, 0.5, 10.0, 3, physical_batch_size=physical, augmentation=augmentation)
    record = stepped(model, settings, *images, *hooks, rate=0.3)
    return flat(model.parameters()), record


@pytest.mark.parametrize("config", [CONVNET, LogisticConfig(kind="logistic")])
def test_equal_views_train_as_one(images, config):
    alone, _ = one_run(images, None, config=config, noise=1.0)
    five, record = one_run(images, Augmentation(times=5), config=config, noise=1.0)
    assert five == pytest.approx(alone, rel=0, abs=2e-6)
    assert max(record.clipped) <= max(record.batch_sizes) <= 20


def views_one_by_one(augmentation, images, draws):
    """Views by numpy, written from the description: mirror, reflect the border, cut out."""
    crop, found = augmentation.crop, []
    for image, mine in zip(images.numpy(), draws.numpy(), strict=True):
        for mirror, down, right in mine:
            view = image[..., ::-1] if augmentation.flips and mirror < 0.5 else image
            view = np.pad(view, ((0, 0), (crop, crop), (crop, crop)), mode="reflect")
            y, x = int(down * (2 * crop + 1)), int(right * (2 * crop + 1))
            found.append(view[:, y : y + image.shape[1], x : x + image.shape[2]])
    return np.array(found)


def test_views_are_mirrored_and_moved(images):
    for augmentation in (
        Augmentation(times=3, flips=True),
        Augmentation(times=4, crop=2),
        Augmentation(times=2, flips=True, crop=7),
    ):
        draws = augmentation.draw(SystemSource(), 20)
        seen = augmentation.views(images[0], draws).numpy()
        assert np.array_equal(seen, views_one_by_one(augmentation, images[0], draws))
        assert len(np.unique(seen.reshape(len(seen), -1), axis=0)) > 20


@pytest.mark.parametrize("physical", [1024, 8])
def test_the_mean_gradient_of_a_record_is_clipped_as_one(recorder, images, physical):
    """Brute force: every view by itself, mean per record, then clip, then sum; views drawn again from the same seed."""
    augmentation = Augmentation(times=4, flips=True, crop=2)
    model = build_model(CONVNET, SHAPE, 3, seed=4).double()
    clip = 0.5
    one_run(images, augmentation, recorder, physical=physical, clip=clip)
    source, step, update = SeededSource(1, Stream.SAMPLING), recorder.steps[0], recorder.updates[0]
    source.uniform(20)  # the first batch
    draws = augmentation.draw(source, len(step.indices))
    views = torch.from_numpy(views_one_by_one(augmentation, step.features, draws)).unflatten(0, (-1, 4))
    each = zip(views.double(), step.labels, strict=True)
    means = torch.stack([gradients_of(model, mine, label.expand(4)).mean(dim=0) for mine, label in each])
    norms = means.norm(dim=1)
    assert int((norms > clip).sum()) > 0
    expected = ((clip / norms).clamp(max=1.0) @ means) / 10.0
    assert update.gradient.numpy() == pytest.approx(expected.numpy(), rel=2e-4, abs=1e-6)
    assert update.norms.numpy() == pytest.approx(norms.numpy(), rel=1e-4, abs=0)


VIEWS = {"data": {"name": "own"}, "model": {"kind": "convnet"}, "augmentation": {"times": 3, "flips": True}}
config_of = partial(configured, BASE | VIEWS | {"batch_size": 5})


def test_the_ledger_says_so_and_the_mechanism_is_the_same(tmp_path, images):
    views = train(config_of(), tmp_path / "a", dataset=records(images[0].numpy(), 3)).ledger
    plain = train(config_of(augmentation=None), tmp_path / "b", dataset=records(images[0].numpy(), 3)).ledger
    assert any("3 views of each record (mirrored)" in note for note in views.data.notes)
    assert not any("Augmentation" in note for note in plain.data.notes)
    assert views.mechanism() == plain.mechanism()


def test_what_does_not_know_views_refuses_them(training, images, tmp_path):
    augmentation = Augmentation(times=2, flips=True)
    with pytest.raises(UnsupportedError, match="augmentation"):
        one_run(images, augmentation, AttributeHook(None))
    with pytest.raises(ArtifactError, match="augmentation: sensitive is recorded without it"):
        config_of(sensitive={"group": "x"})
    with pytest.raises(UnsupportedError, match="augmentation"):
        shadow_tasks(ShadowPlan(config_of(), 16, 10, 0), "0" * 64, 3, SHAPE)
    with pytest.raises(ParameterError, match="images"):
        Augmentation(times=2).check(torch.zeros(3, 5))
    with pytest.raises(ParameterError, match="augmentation"):
        stepped(torch.nn.Linear(5, 2), Settings(1.0, 1.0, 0.5, 1.0, 1, augmentation=augmentation), *training)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"times": 0}, "times must be greater than or equal to 1, got 0"),
        ({"times": 2, "crop": 99}, "crop must be less than or equal to 64, got 99"),
        ({}, "times must be given"),
        ({"times": 2, "flip": True}, "flip must be left out: there is no such setting"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_our_words(settings, words):
    with pytest.raises(ParameterError, match=f"^{words}$"):
        Augmentation(**settings)
