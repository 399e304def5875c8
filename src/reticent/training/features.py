"""Fixed feature extractors: functions of one record and of constants in this file, so no data shape them.

Each record is encoded on its own. Replacing one record changes one row, and a guarantee on the rows is a guarantee on
the records. What was used is written into the notes of the data set, and so into the ledger.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import avg_pool2d, pad

from reticent.data import Dataset
from reticent.kernel.errors import ParameterError
from reticent.training.config_data import FeaturesConfig, PatchesConfig, RandomFeaturesConfig, ScatteringConfig
from reticent.training.patches import Patches

_RECORDS = 20  # in one pass


def extracted(dataset: Dataset, config: FeaturesConfig | None) -> Dataset:
    """``dataset`` with the features of every record replaced by fixed functions of them; as it is for None.

    The content hash then covers the original records and what was computed, not the rounding of the computation.

    Raises:
        ParameterError: the extractor does not fit the records.
    """
    if config is None:
        return dataset
    note = feature_note(config)
    if note in dataset.notes:
        return dataset
    records = torch.tensor(dataset.features)
    compute = _extractor(config, dataset.feature_shape)
    rows = torch.cat([compute(part) for part in records.split(_RECORDS)])
    return _replaced(dataset, rows.numpy(), note)


def _replaced(dataset: Dataset, features: np.ndarray, note: str) -> Dataset:
    """``dataset`` with other features, which the note explains."""
    origin = hashlib.sha256(f"{dataset.content_hash} {note}".encode()).hexdigest()
    return replace(dataset, features=features, groups=(), notes=(*dataset.notes, note), origin=origin)


def _extractor(config: FeaturesConfig, shape: tuple[int, ...]) -> Callable[[torch.Tensor], torch.Tensor]:
    match config:
        case ScatteringConfig():
            return Scattering(config, shape)
        case PatchesConfig():
            return Patches(config, shape)
        case RandomFeaturesConfig():
            return _random(config, shape)


def normalised(dataset: Dataset, length: float | None) -> Dataset:
    """``dataset`` with the features of each record brought to one length; as it is for None.

    A record of zeros becomes the first unit vector times ``length``, so that every record has this length.
    """
    if length is None or length_note(length) in dataset.notes:
        return dataset
    note = length_note(length)
    parts = [_of_length(rows, length) for rows in np.array_split(dataset.features, -(-len(dataset.features) // 4096))]
    return _replaced(dataset, np.concatenate(parts), note)


def has_length(dataset: Dataset, length: float) -> bool:
    """Whether ``normalised`` made these records, and each of them has this length."""
    flat = dataset.features.reshape(len(dataset.features), -1)
    lengths = np.linalg.norm(flat, axis=1)
    within = length * (1.0 - 1e-6) <= lengths.min() and lengths.max() <= length * (1.0 + 1e-6)
    return length_note(length) in dataset.notes and bool(within)


def length_note(length: float) -> str:
    """One sentence that says how features were normalised."""
    return f"Features: each record was brought to length {length:g}, on its own."


def _of_length(rows: np.ndarray, length: float) -> np.ndarray:
    flat = rows.reshape(len(rows), -1).astype(np.float64)
    largest = np.abs(flat).max(axis=1, keepdims=True)
    flat[largest[:, 0] == 0.0, 0] = 1.0
    flat /= np.where(largest == 0.0, 1.0, largest)
    flat *= length / np.linalg.norm(flat, axis=1, keepdims=True)
    return flat.astype(np.float32).reshape(rows.shape)


def feature_note(config: FeaturesConfig) -> str:
    """One sentence that names the extractor and its settings."""
    settings = ", ".join(f"{k} {v}" for k, v in config.model_dump(mode="json").items() if k != "kind")
    return f"Features: {config.kind} ({settings}), a fixed function of each record; no data were used to make it."


class Scattering:
    """Scattering transform of orders 0 to 2 with Morlet wavelets, normalised record by record.

    Wavelets as in Bruna and Mallat (2013): ``angles`` directions at each of ``scales`` octaves, modulus, blur, one
    value for every 2^scales pixels; then means until ``cells`` by ``cells`` are left. Colours are turned into
    brightness, which gets orders 0 to 2, and two differences, which get orders 0 and 1. In each group of channels every
    record is moved to mean 0 and variance 1 (group normalisation); then it is scaled to length 1.

    Attributes:
        wavelets: their spectra, shape (scales, angles, side, side), where side is that of an image with its border.
        blur: its spectrum, shape (side, side).
    """

    def __init__(self, config: ScatteringConfig, shape: tuple[int, ...]) -> None:
        """Make the wavelets for images of one shape.

        Raises:
            ParameterError: the records are no square images, or of a size that cells do not fit.
        """
        self._config, scales, angles = config, config.scales, config.angles
        step = 2**scales * config.cells
        if len(shape) != 3 or shape[1] != shape[2] or shape[1] % step:
            raise ParameterError("data.features", "scattering", f"square images whose side {step} divides")
        side = shape[1] + 2 * 2**scales
        waves = [
            [_morlet(side, 0.8 * 2**j, 0.75 * math.pi / 2**j, math.pi * a / angles, 4 / angles) for a in range(angles)]
            for j in range(scales)
        ]
        self.wavelets, self.blur = (
            _spectrum(np.array(waves)),
            _spectrum(_gabor(side, 0.8 * 2 ** (scales - 1), 0.0, 0.0, 1.0)),
        )

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Features, shape (records, columns), of images of shape (records, channels, side, side)."""
        step, cells = 2**self._config.scales, self._config.cells
        channels = torch.cat([p for picture in _pictures(images) for p in self._orders(*picture)], dim=1)
        channels = avg_pool2d(channels[..., 1:-1, 1:-1], images.shape[2] // (step * cells))
        parts = [_normal(part.flatten(1)) for part in channels.chunk(self._config.groups, dim=1)]
        return torch.cat(parts, dim=1) / math.sqrt(channels[0].numel())

    def _orders(self, image: torch.Tensor, orders: int) -> list[torch.Tensor]:
        """Blurred moduli of an image of shape (records, side, side), each (records, channels, cells + 2, cells + 2)."""
        scales = self._config.scales
        padded = pad(image[:, None], (2**scales,) * 4, mode="reflect")
        spectrum = torch.fft.fft2(padded)
        found = [self._blurred(spectrum, 0)]
        for j in range(scales):
            moduli = torch.fft.fft2(_thinned(spectrum * self.wavelets[j], j).abs())
            found.append(self._blurred(moduli, j))
            for k in range(j + 1, scales if orders == 2 else 0):
                second = torch.cat([moduli * _periodised(w, j) for w in self.wavelets[k]], dim=1)
                found.append(self._blurred(torch.fft.fft2(_thinned(second, k - j).abs()), k))
        return found

    def _blurred(self, spectrum: torch.Tensor, thinned: int) -> torch.Tensor:
        return _thinned(spectrum * _periodised(self.blur, thinned), self._config.scales - thinned).real


def _pictures(images: torch.Tensor) -> list[tuple[torch.Tensor, int]]:
    """Images of one colour each, with the orders that they get."""
    if images.shape[1] != 3:
        return [(images[:, c], 2) for c in range(images.shape[1])]
    red, green, blue = images.unbind(dim=1)
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    return [(brightness, 2), (0.564 * (blue - brightness), 1), (0.713 * (red - brightness), 1)]


def _normal(rows: torch.Tensor) -> torch.Tensor:
    """Each row moved to mean 0 and variance 1."""
    centred = rows - rows.mean(dim=1, keepdim=True)
    return centred / (centred.square().mean(dim=1, keepdim=True) + 1e-8).sqrt()


def _thinned(spectrum: torch.Tensor, octaves: int) -> torch.Tensor:
    """Every 2^octaves-th pixel of the image with this spectrum."""
    for _ in range(octaves):
        spectrum = _halved(spectrum) / 4
    return torch.fft.ifft2(spectrum)


def _periodised(spectrum: torch.Tensor, octaves: int) -> torch.Tensor:
    """The spectrum of a filter on a grid that is coarser by ``octaves``."""
    for _ in range(octaves):
        spectrum = _halved(spectrum)
    return spectrum


def _halved(spectrum: torch.Tensor) -> torch.Tensor:
    """Sum over the four aliases."""
    half = spectrum.shape[-1] // 2
    rows = spectrum[..., :half, :] + spectrum[..., half:, :]
    return rows[..., :half] + rows[..., half:]


def _spectrum(filters: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.fft.fft2(filters).real, dtype=torch.float32)


def _gabor(side: int, sigma: float, frequency: float, angle: float, slant: float) -> np.ndarray:
    """A wave of ``frequency`` under a Gaussian, made periodic; the Gaussian has sum 1."""
    cos, sin = math.cos(angle), math.sin(angle)
    total = np.zeros((side, side), dtype=complex)
    for shift_y in range(-2, 3):
        for shift_x in range(-2, 3):
            y, x = np.mgrid[:side, :side].astype(float)
            y, x = y + shift_y * side, x + shift_x * side
            along, across = cos * x + sin * y, -sin * x + cos * y
            total += np.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2) + 1j * frequency * along)
    return total * slant / (2 * math.pi * sigma**2)


def _morlet(side: int, sigma: float, frequency: float, angle: float, slant: float) -> np.ndarray:
    """A Gabor wave less its mean, so that it does not see a constant."""
    wave, bell = (_gabor(side, sigma, f, angle, slant) for f in (frequency, 0.0))
    return wave - wave.sum() / bell.sum() * bell


def _random(config: RandomFeaturesConfig, shape: tuple[int, ...]) -> Callable[[torch.Tensor], torch.Tensor]:
    """relu(W x + b) with W, b drawn once from a seed, scaled so that rows have length about 1."""
    rng, inputs = np.random.default_rng(config.seed), math.prod(shape)
    matrix = torch.from_numpy((rng.normal(size=(inputs, config.width)) / math.sqrt(inputs)).astype("float32"))
    shift = torch.from_numpy(rng.normal(size=config.width).astype("float32"))
    return lambda records: torch.relu(records.flatten(1) @ matrix + shift) / math.sqrt(config.width)
