"""Several uses in an epoch: the bound lies above exact likelihood ratios, and not far above."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reticent as rt

pytestmark = pytest.mark.usefixtures("coarse")


def exact(noise: float, steps: int, uses: int, samples: int) -> tuple[float, float]:
    """Advantage of an attacker on a record in ``uses`` of ``steps`` steps, and its standard error.

    The likelihood ratio is the mean over all choices of steps, an elementary symmetric polynomial of the steps' ratios.
    """
    ratios = np.exp(np.random.default_rng(7).standard_normal((samples, steps)) / noise - 0.5 / noise**2)
    sums = np.zeros((samples, uses + 1))
    sums[:, 0] = 1.0
    for step in range(steps):
        sums[:, 1:] += ratios[:, step : step + 1] * sums[:, :-1]
    lost = np.maximum(1.0 - sums[:, uses] / math.comb(steps, uses), 0.0)
    return float(lost.mean()), float(lost.std() / math.sqrt(samples))


@pytest.mark.parametrize(
    ("noise", "steps", "uses"), [(2.0, 64, 8), (1.0, 20, 3), (1.5, 100, 4), (3.0, 200, 16)], ids=str
)
def test_several_uses_of_a_record_in_an_epoch(noise: float, steps: int, uses: int) -> None:
    run = rt.dpsgd(
        noise_multiplier=noise,
        sample_rate=1.0 / steps,
        steps=steps,
        sampler="random-allocation",
        uses_per_epoch=uses,
    )
    stated, (found, error) = rt.advantage(rt.assess(run)), exact(noise, steps, uses, 10_000)
    assert found - 4.0 * error < stated < 1.08 * found + 4.0 * error
    once = rt.advantage(rt.assess(rt.dpsgd(noise_multiplier=noise, sample_rate=1.0 / steps, steps=steps)))
    assert found - 4.0 * error > 1.3 * once, "a bound for one use would be seen"
