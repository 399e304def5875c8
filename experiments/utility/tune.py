"""Choose learning rate and clip norm on the public records: ``python -m experiments.utility.tune adult``.

The noise on the *mean* gradient and the number of steps are those of a private run at advantage 0.25 in the worst
case, so what is best on the fewer public records carries over to the private ones. The test set is not looked at.
"""

import sys
import tempfile
from pathlib import Path

from experiments.utility.settings import RESULTS, STUDIES, public_part, whole
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel.mechanisms import DPSGD
from reticent.tasks import write_json
from reticent.training import train

GRID = {
    "cifar-10": [(rate / clip, clip) for rate, clip in ((48, 0.1), (48, 0.2), (48, 0.4), (24, 0.2), (96, 0.2))],
    "adult": [(rate / clip, clip) for clip in (0.3, 1.0, 3.0) for rate in (0.45, 1.35, 4.0)],
    "adult-random": [(rate / clip, clip) for clip in (0.3, 1.0) for rate in (4.0, 12.0, 36.0, 108.0)],
}


def main(name: str) -> None:
    """Validation accuracy over the grid, two seeds each."""
    study, records = STUDIES[name], public_part(whole(name), STUDIES[name])
    run = DPSGD(1.0, study.sample_rate, study.steps)
    noise = calibrate(run, NoiseMultiplier(), Advantage(0.25)).value
    share = len(records.train) / study.private  # at the same rate the batch shrinks, and the noise on its sum with it
    rows = []
    for rate, clip in GRID[name]:
        found = []
        for seed in range(2):
            batch = share * study.sample_rate * study.private
            config = study.config(noise * share, seed, learning_rate=rate, max_grad_norm=clip, divisor=batch)
            with tempfile.TemporaryDirectory() as folder:
                found.append(train(config, Path(folder) / "run", dataset=records).ledger.utility.test_accuracy)
        rows.append({"learning_rate": rate, "max_grad_norm": clip, "accuracy": found})
        print(rows[-1], flush=True)
        write_json(RESULTS / f"tuning-{name}.json", {"noise": noise * share, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1])
