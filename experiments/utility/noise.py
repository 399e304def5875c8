"""Noise that each attacker allows at each target, and what the worst case can do there; no training on private records.

``python -m experiments.utility.noise adult`` writes ``results/noise-adult.json``.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import brentq
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from experiments.utility.settings import DELTA, RESULTS, STUDIES, public_part, whole
from reticent.adversaries import NormOnly, Relaxed
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.tasks import write_json
from reticent.training import train


def measured_law(name: str) -> DirectionLaw:
    """Directions of 256 public gradients, after the first or the last step of a public run: whichever share more."""
    study, records = STUDIES[name], public_part(whole(name), STUDIES[name])
    rows, labels = (torch.tensor(array[records.test][:256]) for array in (records.features, records.labels))
    laws = []
    for steps in (1, study.steps):
        with tempfile.TemporaryDirectory() as folder:
            run = train(study.config(1.0, 0, steps=steps), Path(folder) / "run", dataset=records)
            model, weights = run.model(), run.weights()

        def loss(w, x, y, model=model):
            return cross_entropy(functional_call(model, w, (x[None],)), y[None])

        gradients = vmap(grad(loss), (None, 0, 0))(weights, rows, labels)
        flat = torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
        laws.append(DirectionLaw.from_gradients(flat.numpy(), study.recipe["max_grad_norm"], public=True))
    return min(laws, key=lambda law: law.effective_dimension()[0])


def as_published(run: DPSGD, target: float) -> float:
    """Noise at which the releases' own curves for one unknown sign, composed one by one, reach the target."""

    def excess(log_noise: float) -> float:
        at = DPSGD(float(np.exp(log_noise)), run.sample_rate, run.steps)
        return float(advantage(NormOnly().assess(at).curve)) - target

    return float(np.exp(brentq(excess, np.log(0.15), np.log(10.0), xtol=1e-4)))


def main(name: str) -> None:
    """One row for each rule and target, kept as soon as it is known; what is kept is not computed again."""
    study, law = STUDIES[name], measured_law(name)
    run, around = DPSGD(1.0, study.sample_rate, study.steps), law.effective_dimension()
    rules = {
        "worst case": WorstCase(),
        "one unknown sign": Relaxed(),
        "d measured": Relaxed(dimension=max(1, int(around[0]))),
        "d claimed: every parameter": Relaxed(dimension=study.parameters),
        "as published, step by step": None,
    }
    file = RESULTS / f"noise-{name}.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    for target in study.targets:
        for rule, who in rules.items():
            if any((row["target"], row["rule"]) == (target, rule) for row in rows):
                continue
            sought = Advantage(target)
            noise = calibrate(run, NoiseMultiplier(), sought, who).value if who else as_published(run, target)
            used = DPSGD(noise, study.sample_rate, study.steps)
            worst, sign = assess(used, (WorstCase(), Relaxed()))
            row = {"rule": rule, "target": target, "noise": noise, "worst_advantage": worst.measure(advantage).value}
            row["worst_epsilon"] = worst.measure(lambda curve: epsilon_at_delta(curve, DELTA)).value
            rows.append(row | {"sign_advantage": sign.measure(advantage).value})
            print(rows[-1], flush=True)
            write_json(file, {"effective_dimension": list(around), "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1])
