"""Is a finer grid of scattering features worth its memory? ``python -m experiments.utility.recipe``; two minutes.

Public records of CIFAR-10 alone, four fifths to train and one fifth to validate, with no noise and with the noise on the
mean of a private run at advantage 0.25, as in ``tune``: the study's 4 x 4 cells beside 8 x 8.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from experiments.utility.settings import RESULTS, SCATTERING, STUDIES, public_part
from reticent import data
from reticent.tasks import write_json
from reticent.train import train
from reticent.train.features import extracted

NOISE = 0.19287310249075373
"""Of ``tuning-cifar-10.json``."""
CELLS, RATES = (4, 8), (60.0, 120.0, 240.0)


def main() -> None:
    """Validation accuracy of each grid, learning rate and noise; one seed."""
    base, rows = STUDIES["cifar-10"], []
    public = public_part(data.load("cifar-10"), base)
    for cells in CELLS:
        study = replace(base, data={"name": "cifar-10", "features": SCATTERING | {"cells": cells}})
        used = replace(
            public,
            features=public.features[40_000:50_000],
            labels=public.labels[40_000:50_000],
            train=public.train - 40_000,
            test=public.test - 40_000,
        )
        records = extracted(used, study.config(1.0, 0).data.features)
        batch = study.sample_rate * study.private * len(records.train) / study.private
        for noise in (0.0, NOISE):
            for rate in RATES:
                config = study.config(noise, 0, learning_rate=rate, divisor=batch)
                with tempfile.TemporaryDirectory() as folder:
                    found = train(config, Path(folder) / "run", dataset=records).ledger.utility.test_accuracy
                rows.append({"cells": cells, "noise": noise, "learning_rate": rate, "accuracy": found})
                print(rows[-1], flush=True)
                write_json(RESULTS / "recipe-cifar-10.json", {"rows": rows})


if __name__ == "__main__":
    main()
