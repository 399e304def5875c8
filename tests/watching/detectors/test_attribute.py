"""The sensitivity recorder attached by ``rt.watch``: equal to brute force on real loops of Opacus, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.mechanisms.mask_terms import mask_term
from reticent.sensitivity import SensitiveAttribute
from reticent.watching.sensitive import Sensitive
from tests.watching.loops import Loop, at, every, passes
from tests.watching.programs import NOISE, network, private, reading, records, run, shuffled

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook", "ignore:Secure RNG", "ignore:Optimal order"),
    pytest.mark.usefixtures("quick_documents"),
]

ATTRIBUTE = SensitiveAttribute((1,), np.array([[-1.0], [0.0], [2.0]]))
NORM = 0.3


def brute(weights: list[list[torch.Tensor]], batches: list[torch.Tensor], data: TensorDataset):
    """Per record, the largest sum over its steps of squared distances and of mask terms, by one backward pass each."""
    features, labels = data.tensors
    squares, masks = np.zeros(len(features)), np.zeros(len(features))
    model = network()
    params = list(model.parameters())
    for those, drawn in zip(weights, batches, strict=True):
        for p, value in zip(params, those, strict=True):
            p.data = value.clone()
        for k in drawn.tolist():
            rows = []
            for value in ATTRIBUTE.values[:, 0]:
                x = features[k].clone()
                x[1] = value
                loss = nn.functional.cross_entropy(model(x[None]), labels[k : k + 1])
                g = torch.cat([g.flatten() for g in torch.autograd.grad(loss, params)]).double().numpy()
                rows.append(g / max(np.linalg.norm(g), NORM))
            pairs = [(a, b) for a in rows for b in rows]
            squares[k] += max(float(np.sum((a - b) ** 2)) for a, b in pairs)
            masks[k] += max(
                float(mask_term(np.linalg.norm(a), np.linalg.norm(b), np.linalg.norm(a - b), NOISE)) for a, b in pairs
            )
    return squares.max(), masks.max()


def followed(made, wanted=ATTRIBUTE, **how):
    """Run the loop under watch; weights and drawn positions of each step are kept for brute force."""
    model, optimizer, loader, _ = made
    weights, batches = [], []
    with rt.watch(model, optimizer, loader, sensitive=wanted) as ledger:
        watching = type(loader.batch_sampler)

        def keeping(self):
            for batch in watching.__iter__(self):
                batches.append(torch.tensor(list(batch), dtype=torch.long))
                weights.append([p.detach().clone() for p in model._module.parameters()])
                yield batch

        loader.batch_sampler.__class__ = type(watching.__name__, (watching,), {"__iter__": keeping})
        run(*made, **how)
    return ledger, weights, batches


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_the_record_is_that_of_brute_force(mode):
    data = records()
    made = private(mode=mode, norm=NORM)
    ledger, weights, batches = followed(made, epochs=1)
    squared, mask = brute(weights, batches, data)
    found = ledger.sensitivity
    assert found.steps == ledger.ledger.steps == len(batches)
    assert found.squared_change == pytest.approx(squared, rel=1e-5, abs=0)
    assert found.mask_term == pytest.approx(mask, rel=1e-5, abs=0)
    assert found.noise_multiplier == NOISE
    assert facts.WEIGHTS_CHANGED not in ledger.ledger.faults


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
def test_weights_are_bit_identical_with_and_without(mode):
    weights = []
    for wanted in (None, ATTRIBUTE):
        made = private(mode=mode)
        torch.manual_seed(7)
        with rt.watch(*made[:3], sensitive=wanted):
            run(*made, epochs=1)
        weights.append([p.detach().clone() for p in made[0].parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_the_certificate_has_the_attribute_and_its_public_part_has_not(tmp_path):
    made = private()
    with rt.watch(*made[:3], sensitive=ATTRIBUTE) as ledger:
        run(*made, epochs=1)
    certificate = rt.certify(ledger)
    names = [record.adversary for record in certificate.certificate.assessments]
    assert "attribute" in names
    assert certificate.verify().accepted
    files = certificate.save(tmp_path / "out")
    shown = files.public.read_text()
    assert "squared_change" not in shown
    assert rt.verify(files.public).accepted
    ledger.save(tmp_path / "ledger.json")
    again = rt.certify(tmp_path / "ledger.json")
    assert "attribute" in [record.adversary for record in again.certificate.assessments]


def smooth(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, label_smoothing=0.3)


def flipped(outputs, targets):
    return nn.functional.cross_entropy(outputs, 1 - targets)


def with_loss(loss):
    return Loop(made=lambda: (*private()[:3], loss))


REFUSED = {
    "other features": Loop(forward=lambda toy, rows: toy.model(rows + 0.01)),
    "not that of the stated loss": with_loss(smooth),
    "not that of the stated loss.": with_loss(flipped),
    "added up": Loop(made=shuffled, **every(2)),
    "noise or clip norm changed": Loop(
        batches=passes(2), after=at(5, lambda toy: setattr(toy.optimizer, "noise_multiplier", 2.0))
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_measured_is_refused(why):
    """Features, labels or losses that the loop changes, batches that are added up, noise that changes."""
    seen, _ = REFUSED[why].but(options={"sensitive": ATTRIBUTE}).watched()
    with pytest.raises(UnsupportedError, match=why.rstrip(".")) as caught:
        _ = seen.sensitivity
    assert seen.ledger.diagnostics.sensitivity is None
    assert "\n" not in str(caught.value)


def test_a_loss_of_the_program_that_is_stated_is_measured():
    def own(outputs, targets):
        return nn.functional.cross_entropy(outputs, targets, reduction="none", label_smoothing=0.3)

    seen, _ = with_loss(smooth).but(options={"sensitive": Sensitive(ATTRIBUTE, loss=own)}).watched()
    assert seen.sensitivity.steps == seen.ledger.steps


def test_loops_that_cannot_be_seen_are_refused_before_they_start():
    made = private(clipping="per_layer")
    with pytest.raises(UnsupportedError, match="sensitive needs flat clipping"):
        rt.watch(*made[:3], sensitive=ATTRIBUTE)
    made = private(reading(num_workers=1))
    with pytest.raises(UnsupportedError, match="num_workers=0"):
        rt.watch(*made[:3], sensitive=ATTRIBUTE)
    with pytest.raises(UnsupportedError, match="AttributeRecorder"):
        rt.watch(nn.Linear(4, 2), None, DataLoader(records()), sensitive=ATTRIBUTE)
    made = private()
    with pytest.raises(ParameterError, match="SensitiveAttribute"):
        rt.watch(*made[:3], sensitive="age")
    with rt.watch(*made[:3]) as ledger:
        run(*made, epochs=1)
    with pytest.raises(ParameterError, match="given to watch"):
        _ = ledger.sensitivity


def test_steps_that_are_not_measured_count_with_the_most_that_clipping_allows():
    found = []
    for one_in in (1, 3):
        made = private(norm=NORM)
        torch.manual_seed(5)
        with rt.watch(*made[:3], sensitive=Sensitive(ATTRIBUTE, every=one_in)) as ledger:
            run(*made, epochs=2)
        found.append(ledger.sensitivity)
    exact, sampled = found
    assert exact.steps == sampled.steps
    assert exact.squared_change < sampled.squared_change
    assert exact.mask_term < sampled.mask_term
    assert exact.published_squared_change < sampled.published_squared_change <= 4.0 * exact.steps + 1e-6
    assert sampled.published_squared_change >= 4.0 * (exact.steps - -(-exact.steps // 3)) - 4.0
