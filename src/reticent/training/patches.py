"""Features of images by random patches, whitened by what is known of natural images, so that no data shape them.

As Coates and Ng (2011), *The importance of encoding versus training with sparse coding and vector quantization*: small
filters slide over an image whose contrast is normalised patch by patch; a soft threshold on both signs; means over a
coarse grid. There filters and whitening come from the data. Here filters are random, and the covariance that whitens is
that of a plain model of natural images: brightness varies more than colour, and neighbours are alike. Each feature is
then brought to the mean and the deviation that it has on artificial images of the same model, and the features of a
record to mean 0 and length 1.
"""

from __future__ import annotations

import torch
from torch.nn.functional import adaptive_avg_pool2d, conv2d

from reticent.kernel.errors import ParameterError
from reticent.training.config_data import PatchesConfig

_LIKE_NEIGHBOURS = 0.95
"""Correlation of neighbouring pixels."""
_COLOURS = ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))
_VARIANCES = (1.0, 0.08, 0.03)
"""Axes of colour, brightness first, and the variance along each (Ruderman, Cronin and Chiao, 1998, rounded)."""
_RIDGE = 1.0
"""Added to each variance before whitening, in units of the mean variance: fine patterns are mostly noise."""
_CONTRAST = 0.01
"""Added to the variance of a patch before its contrast is normalised."""
_ARTIFICIAL = 600


class Patches:
    """The extractor, for images of one shape."""

    def __init__(self, config: PatchesConfig, shape: tuple[int, ...]) -> None:
        """Draw the filters and look at artificial images.

        Raises:
            ParameterError: the records are no square colour images, or smaller than a patch.
        """
        if len(shape) != 3 or shape[0] != 3 or shape[1] != shape[2] or shape[1] < config.size:
            raise ParameterError("data.features", "patches", f"square colour images of {config.size} pixels or more")
        self._config = config
        draw = torch.Generator().manual_seed(config.seed)
        self._filters = _filters(config, draw)
        seen = torch.cat([self._encoded(part) for part in _artificial(shape[1], draw).split(100)])
        self._centre = seen.mean(dim=(0, 2), keepdim=True)
        self._width = seen.mean(dim=2, keepdim=True).std(dim=0, keepdim=True) + 1e-3

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Features, shape (records, 2 * width * cells^2), of images of shape (records, 3, side, side)."""
        rows = ((self._encoded(images) - self._centre) / self._width).flatten(1)
        rows = rows - rows.mean(dim=1, keepdim=True)
        return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-12)

    def _encoded(self, images: torch.Tensor) -> torch.Tensor:
        """Means of thresholded responses, shape (records, 2 * width, cells^2)."""
        size, step = self._config.size, self._config.stride
        box = torch.full((1, 3, size, size), 1.0 / (3 * size**2))
        mean = conv2d(images, box, stride=step)
        variance = (conv2d(images.square(), box, stride=step) - mean.square()).clamp(min=0.0)
        found = conv2d(images, self._filters, stride=step) / (variance + _CONTRAST).sqrt()
        both = torch.cat([torch.relu(sign * found - self._config.threshold) for sign in (1.0, -1.0)], dim=1)
        return adaptive_avg_pool2d(both, self._config.cells).flatten(2)


def _filters(config: PatchesConfig, draw: torch.Generator) -> torch.Tensor:
    """Random directions in the space of whitened patches, each less its mean: (width, 3, size, size)."""
    size, double = config.size, torch.float64
    places = torch.cartesian_prod(*[torch.arange(size, dtype=double)] * 2)
    axes = _axes()
    colour = axes.T @ torch.diag(torch.tensor(_VARIANCES, dtype=double)) @ axes
    count = 3 * size**2
    centred = torch.eye(count, dtype=double) - 1.0 / count
    covariance = centred @ torch.kron(colour, _LIKE_NEIGHBOURS ** torch.cdist(places, places)) @ centred
    variances, directions = torch.linalg.eigh(covariance * count / covariance.trace())
    whitening = directions @ torch.diag((variances.clamp(min=0.0) + _RIDGE).rsqrt()) @ directions.T
    random = torch.randn(config.width, count, generator=draw, dtype=double)
    random /= torch.linalg.vector_norm(random, dim=1, keepdim=True)
    return (random @ whitening @ centred).float().view(config.width, 3, size, size)


def _artificial(side: int, draw: torch.Generator) -> torch.Tensor:
    """Images of noise whose amplitude falls as one over the frequency, of random contrast and brightness."""
    steps = torch.fft.fftfreq(side)
    frequency = torch.hypot(steps[:, None], steps[None, :])
    frequency[0, 0] = 1.0 / side
    noise = torch.randn(_ARTIFICIAL, 3, side, side, generator=draw)
    pink = torch.fft.ifft2(torch.fft.fft2(noise) / frequency).real
    pink = pink / pink.std(dim=(2, 3), keepdim=True) * torch.tensor(_VARIANCES).sqrt()[:, None, None]
    coloured = torch.einsum("nkhw,kc->nchw", pink, _axes().float())
    contrast = 0.24 + 0.72 * torch.rand(_ARTIFICIAL, 1, 1, 1, generator=draw)
    brightness = 0.3 * torch.randn(_ARTIFICIAL, 1, 1, 1, generator=draw)
    return (contrast * coloured + brightness).clamp(-1.0, 1.0)


def _axes() -> torch.Tensor:
    axes = torch.tensor(_COLOURS, dtype=torch.float64)
    return axes / torch.linalg.vector_norm(axes, dim=1, keepdim=True)
