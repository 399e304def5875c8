"""Fixed features: functions of one record; and what is done to noisy steps afterwards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from reticent.kernel.errors import ParameterError
from reticent.training import train
from reticent.training.config import LearningRateConfig
from reticent.training.config_data import PatchesConfig, RandomFeaturesConfig, ScatteringConfig
from reticent.training.features import Scattering, extracted, normalised
from reticent.training.models import build_model
from reticent.training.patches import Patches
from reticent.training.randomness import Stream, torch_seed
from reticent.training.smoothing import rate_factor
from tests.training.small import flat, records

PATCHES = PatchesConfig(kind="patches", width=7, size=4, stride=3, cells=2, threshold=0.1)
SMALL = ScatteringConfig(kind="scattering", scales=2, angles=4, cells=2, groups=5)


def images(count: int = 6, side: int = 16) -> torch.Tensor:
    return torch.rand((count, 3, side, side), generator=torch.Generator().manual_seed(0)) * 2 - 1


def of_length(rows):
    return torch.tensor(normalised(records(rows.numpy()), 1.0).features).flatten(1)


@pytest.mark.parametrize(
    "make", [lambda: Scattering(SMALL, (3, 16, 16)), lambda: Patches(PATCHES, (3, 16, 16)), lambda: of_length]
)
def test_one_image_changes_its_own_row_only(make):
    transform, given = make(), images()
    changed = given.clone()
    changed[2] = -changed[2].flip(-1)
    before, after = transform(given), transform(changed)
    rows = (before - after).abs().amax(dim=1) > 1e-4
    assert rows.tolist() == [False, False, True, False, False, False]
    assert before.norm(dim=1).numpy() == pytest.approx(np.ones(6), rel=1e-3, abs=0)


def test_wavelets_see_waves_of_their_direction_and_no_constant():
    transform = Scattering(SMALL, (3, 16, 16))
    bank, blur = transform.wavelets, transform.blur
    assert float(blur[0, 0]) == pytest.approx(1.0, rel=1e-6, abs=0)
    assert float(bank[..., 0, 0].abs().max()) < 1e-6
    x = np.arange(24)
    for angle, wave in ((0, np.cos(2 * np.pi * x * 9 / 24)[None, :]), (2, np.cos(2 * np.pi * x * 9 / 24)[:, None])):
        spectrum = torch.fft.fft2(torch.tensor(np.broadcast_to(wave, (24, 24)).copy(), dtype=torch.float32))
        loudness = torch.fft.ifft2(spectrum * bank[0]).abs().mean(dim=(-2, -1))
        assert int(loudness.argmax()) == angle, loudness


def test_first_order_is_the_blurred_modulus_of_a_convolution():
    """Against sums over pixels, without Fourier transforms, thinning or folding of spectra."""
    transform = Scattering(SMALL, (3, 16, 16))
    image = images(1)[0, 0]
    padded = torch.nn.functional.pad(image[None, None], (4,) * 4, mode="reflect")[0, 0].numpy().astype(float)
    side = len(padded)
    bank, blur = transform.wavelets, transform.blur
    kernel, bell = np.fft.ifft2(bank[0, 1].numpy()), np.fft.ifft2(blur.numpy()).real
    where = np.arange(side)
    shift = (where[:, None] - where[None, :]) % side

    def convolved(values, filt):
        return np.array([[np.sum(values * filt[np.ix_(shift[u], shift[v])]) for v in range(side)] for u in range(side)])

    expected = convolved(np.abs(convolved(padded, kernel)), bell)[::4, ::4]
    found = transform._orders(image[None], 2)[1][0, 1].numpy()
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_content_hash_covers_records_and_extractor(dataset):
    config = RandomFeaturesConfig(kind="random", width=7)
    first = extracted(dataset, config)
    assert first.features.shape == (80, 7)
    assert first.content_hash == extracted(dataset, config).content_hash
    assert extracted(first, config) is first
    others = [
        dataset,
        extracted(dataset, RandomFeaturesConfig(kind="random", width=7, seed=1)),
        extracted(replace(dataset, labels=1 - dataset.labels), config),
        extracted(replace(dataset, features=dataset.features + np.float32(1e-3)), config),
        first.subset(59),
    ]
    assert len({first.content_hash, *(o.content_hash for o in others)}) == 6
    assert "no data were used" in first.notes[-1]


def test_features_of_the_wrong_shape_or_raw_records_are_refused(dataset, make_config, tmp_path):
    with pytest.raises(ParameterError, match="square images"):
        extracted(dataset, SMALL)
    config = make_config(data={"name": "breast-cancer", "features": {"kind": "random", "width": 9}})
    with pytest.raises(ParameterError, match=r"computed as data\.features says"):
        train(config, tmp_path / "raw", dataset=dataset)
    run = train(config, tmp_path / "run", dataset=extracted(dataset, config.data.features))
    assert run.ledger.data.feature_shape == (9,)
    assert run.ledger.data.notes[-1].startswith("Features: random (width 9, seed 0)")


def test_a_run_with_features_finds_its_data_again(make_config, tmp_path):
    config = make_config(data={"name": "digits", "features": {"kind": "random", "width": 6}, "train_size": 100})
    run = train(config, tmp_path / "run")
    assert run.dataset().features.shape[1] == 6


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"decay": "constant"}, [1, 1, 1, 1, 1]),
        ({"decay": "linear"}, [1, 0.75, 0.5, 0.25, 0]),
        ({"decay": "linear", "final": 0.2}, [1, 0.8, 0.6, 0.4, 0.2]),
        ({"decay": "cosine"}, [1, 0.853553, 0.5, 0.146447, 0]),
        ({"decay": "constant", "warmup": 0.4}, [1 / 3, 2 / 3, 1, 1, 1]),
    ],
)
def test_learning_rates(schedule, expected):
    factors = [rate_factor(LearningRateConfig(**schedule), k, 5) for k in range(5)]
    assert factors == pytest.approx(expected, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("physical", [1024, 5])
@pytest.mark.parametrize("model", [{"kind": "logistic"}, {"kind": "convnet", "channels": [2]}])
def test_weights_follow_the_schedule_and_the_average(make_config, tmp_path, recorder, model, physical):
    """Weights recomputed from the released gradients; a batch that passes in pieces is one step of the schedule."""
    shape = (5,) if model["kind"] == "logistic" else (1, 8, 8)
    data = records(np.random.default_rng(0).normal(size=(40, *shape)))
    schedule = {"decay": "linear", "final": 0.1}
    config = make_config(
        model=model, steps=8, learning_rate_schedule=schedule, average_last=0.5, physical_batch_size=physical
    )
    run = train(config, tmp_path / "run", hooks=[recorder], dataset=data)
    fresh = build_model(config.model, shape, 2, torch_seed(config.seed, Stream.INITIALISATION))
    rates = [0.1 * rate_factor(LearningRateConfig(**schedule), k, 8) for k in range(8)]
    start, path = flat(fresh.parameters()), []
    for rate, update in zip(rates, recorder.updates, strict=True):
        start = start - rate * update.gradient.numpy()
        path.append(start)
    assert flat(run.weights().values()) == pytest.approx(np.mean(path[4:], axis=0), rel=1e-4, abs=1e-6)
    assert run.ledger.steps == 8


def test_patches_are_thresholded_responses_to_patches_of_one_contrast():
    """Against one patch at a time."""
    compute = Patches(PATCHES, (3, 16, 16))
    image = images(1)[0]
    found = compute._encoded(image[None])[0].view(14, 4)
    cells = np.zeros((14, 2, 2))
    starts = range(0, 13, 3)  # five by five patches; cells share the middle one, as adaptive means do
    for y in starts:
        for x in starts:
            patch = image[:, y : y + 4, x : x + 4].numpy().astype(float)
            spread = np.sqrt(patch.var() + 0.01)
            response = np.array([(f * patch).sum() / spread for f in compute._filters.numpy().astype(float)])
            both = np.maximum(np.concatenate([response, -response]) - 0.1, 0.0)
            for row in {0} if y < 6 else {0, 1} if y == 6 else {1}:
                for column in {0} if x < 6 else {0, 1} if x == 6 else {1}:
                    cells[:, row, column] += both / 9
    assert found.numpy() == pytest.approx(cells.reshape(14, 4), rel=1e-3, abs=1e-4)


def test_patches_do_not_see_brightness_and_need_square_colour_images():
    compute = Patches(PATCHES, (3, 16, 16))
    given = images() * 0.5
    assert compute(given + 0.2).numpy() == pytest.approx(compute(given).numpy(), abs=1e-4)
    for shape in ((1, 16, 16), (3, 16, 12), (3, 3, 3), (5,)):
        with pytest.raises(ParameterError, match="square colour images"):
            Patches(PATCHES, shape)
