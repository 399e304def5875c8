"""Gaussian MIP, Figure 3: noise of every rule over mu; the accuracies need training."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from reticent.papers import Entry, Published

SETTINGS = {
    "CIFAR-10": (48000, 650, 400, 10, 500.0),
    "Purchase": (54855, 2580, 795, 3, 2000.0),
    "Adult": (43000, 1026, 1000, 20, 800.0),
}
LEVELS = np.geomspace(0.4, 50, 20)


def composed(mu_step, size, batch, epochs):
    """Equation (10): Corollary 4 of Dong et al. for uniform batches."""
    steps = epochs * size // batch
    inside = np.exp(mu_step**2) * ndtr(1.5 * mu_step) + 3 * ndtr(-mu_step / 2) - 2
    return batch / size * np.sqrt(2 * steps * max(inside, 0.0))


def noises(mu, size, d, batch, epochs, clip):
    """Noise on the mean gradient: (DP, MIP by the published minimum rule, MIP by the harmonic rule for one step)."""
    mu_step = brentq(lambda m: composed(m, size, batch, epochs) - mu, 1e-3, 12)
    dp = 2 * clip / (batch * mu_step)
    raw = clip / batch * np.sqrt(max(0.0, d / mu_step**2 - 0.5 - batch))
    return dp, min(dp, raw), 2 * clip / batch * np.sqrt(max(0.0, 1 / mu_step**2 - batch / d))


def run(figure):
    """Noise over mu, instead of accuracy over mu."""
    ours = {}
    for axes, (name, (size, d, batch, epochs, clip)) in zip(figure.subplots(1, 3), SETTINGS.items(), strict=True):
        table = np.array([noises(mu, size, d, batch, epochs, clip) for mu in LEVELS])
        for column, label, style in zip(
            table.T, ("GDP", "GMIP, published rule", "GMIP, harmonic rule"), ("-", "--", ":"), strict=True
        ):
            axes.semilogx(LEVELS, column, style, label=label)
        axes.set(title=name, xlabel="mu", ylabel="noise on the mean gradient")
        free = composed(np.sqrt(2 * d / (2 * batch + 1)), size, batch, epochs)
        ours[f"{name}: no noise from mu on"] = free
        ours[f"{name}: first of the 20 levels without noise"] = LEVELS[free < LEVELS][0]
    axes.legend()
    return ours


ENTRY = Entry(
    id="gaussian-mip/figure-3",
    title="Utility under GDP and under GMIP",
    run=run,
    published=(Published("CIFAR-10: first of the 20 levels without noise", 0.86, "section 6.2", 0.005),),
    reason="The noise levels are reproduced (Table 5); the published gain is that from a threshold on no noise is "
    "added at all, which rests on a composition that is no bound when data are used again.",
    needs="120 trainings (three data sets, two notions, 20 levels of mu), a pretrained ResNet56 and the Purchase data",
    settings={"levels of mu": "20 from 0.4 to 50", "sizes": "Table 4"},
    inches=(9.0, 3.0),
)
