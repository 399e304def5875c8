"""Noise for one field beside noise for the whole record, at equal advantage: ``-m experiments.utility.attributes``.

How far a field moves a clipped gradient is measured on public records, at the first and the last weights of a public
run; the largest change found is taken as the bound on every step. That it holds for private records is the condition
under which the attribute's noise is enough.
"""

import tempfile
from itertools import combinations
from pathlib import Path

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from experiments.utility.settings import DELTA, RESULTS, STUDIES, public_part, whole
from reticent.adversaries import Attribute
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.kernel.adversaries import WorstCase, assess
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.tasks import write_json
from reticent.training import train

FIELDS, RECORDS, TARGETS = ("sex", "age"), 256, (0.1, 0.25)


def largest_change(field: str) -> float:
    """Of a clipped gradient over the values of ``field``, in clip norms, over 256 public records and two moments."""
    study, records = STUDIES["adult"], public_part(whole("adult"), STUDIES["adult"])
    group, clip, largest = records.group(field), study.recipe["max_grad_norm"], 0.0
    rows, labels = (torch.tensor(array[records.test][:RECORDS]) for array in (records.features, records.labels))
    values = torch.tensor(group.encoded[:: max(1, len(group.encoded) // 8)])
    for steps in (1, study.steps):
        with tempfile.TemporaryDirectory() as folder:
            run = train(study.config(1.0, 0, steps=steps), Path(folder) / "run", dataset=records)
            model, weights = run.model(), run.weights()

        def loss(w, x, y, model=model):
            return cross_entropy(functional_call(model, w, (x[None],)), y[None])

        clipped = []
        for value in values:
            completed = rows.clone()
            completed[:, list(group.columns)] = value
            gradients = vmap(grad(loss), (None, 0, 0))(weights, completed, labels)
            flat = torch.cat([g.flatten(1) for g in gradients.values()], dim=1) / clip
            clipped.append(flat / flat.norm(dim=1, keepdim=True).clamp(min=1.0))
        largest = max([largest, *(float((a - b).norm(dim=1).max()) for a, b in combinations(clipped, 2))])
    return largest


def main() -> None:
    """One row for each field and target, the whole record first."""
    study, rows = STUDIES["adult"], []
    run = DPSGD(1.0, study.sample_rate, study.steps)
    changes = {"the whole record": 2.0} | {field: largest_change(field) for field in FIELDS}
    for target in TARGETS:
        for field, change in changes.items():
            who = WorstCase() if field == "the whole record" else Attribute(change)
            noise = calibrate(run, NoiseMultiplier(), Advantage(target), who, Neighbouring.REPLACE).value
            used = DPSGD(noise, study.sample_rate, study.steps)
            (worst,) = assess(used, (WorstCase(),), Neighbouring.REPLACE)
            row = {"rule": field, "change": change, "target": target, "noise": noise}
            row["worst_advantage"] = worst.measure(advantage).value
            row["worst_epsilon"] = worst.measure(lambda curve: epsilon_at_delta(curve, DELTA)).value
            rows.append(row)
            print(row, flush=True)
            write_json(RESULTS / "attributes-adult.json", {"rows": rows})


if __name__ == "__main__":
    main()
