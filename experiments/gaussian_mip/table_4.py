"""Gaussian MIP, Table 4: parameters of the utility experiment."""

import numpy as np
from scipy.special import ndtr

from experiments.gallery import Entry, Published

SETTINGS = {
    "CIFAR-10": (48000, 650, 400, 10, 64, 10),
    "Purchase": (54855, 2580, 795, 3, None, None),
    "Adult": (43000, 1026, 1000, 20, 512, 2),
}


def run(figure):
    """What follows from the printed sizes: steps, remainders, parameters; and mu without noise over the epochs."""
    axes, ours = figure.subplots(), {}
    for name, (size, d, batch, epochs, inputs, classes) in SETTINGS.items():
        ours[f"{name}: records left over by the batches"] = float(size % batch)
        ours[f"{name}: steps"] = float(epochs * size // batch)
        if inputs:
            ours[f"{name}: parameters of a layer {inputs} to {classes}"] = float((inputs + 1) * classes)
        m = np.sqrt(2 * d / (2 * batch + 1))
        step = batch / size * np.sqrt(2 * (np.exp(m * m) * ndtr(1.5 * m) + 3 * ndtr(-m / 2) - 2))
        over = np.arange(1, 31)
        axes.plot(over, step * np.sqrt(over * size / batch), label=f"{name}")
        axes.plot(epochs, step * np.sqrt(epochs * size / batch), "o", color=axes.lines[-1].get_color())
    axes.set(xlabel="epochs (dot: the table's)", ylabel="mu without noise, Eq. (10)")
    axes.legend()
    return ours


ENTRY = Entry(
    id="gaussian-mip/table-4",
    title="Parameters of the utility experiment",
    run=run,
    published=(
        *(Published(f"{n}: records left over by the batches", 0.0, "caption: divisible") for n in SETTINGS),
        Published("CIFAR-10: parameters of a layer 64 to 10", 650.0, "Table 4"),
        Published("Adult: parameters of a layer 512 to 2", 1026.0, "Table 4"),
    ),
    reason="The sizes are divisible as stated, the parameter counts are those of the last layers, and with these "
    "sizes Table 5 comes out.",
    settings={"sizes": "as printed"},
    inches=(4.6, 3.4),
)
