"""The sensitivity recorder attached by ``rt.watch``: equal to brute force on real loops of Opacus, or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.adversaries.attribute.terms import mask_term
from reticent.errors import ParameterError, UnsupportedError
from reticent.sensitivity import SensitiveAttribute
from reticent.watching.sensitive import Sensitive
from tests.watching.loops import BATCH, NOISE, RECORDS, network, private, records, run

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
    for at, drawn in zip(weights, batches, strict=True):
        for p, value in zip(params, at, strict=True):
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
    bare = getattr(model, "_module", model)
    weights, batches = [], []
    with rt.watch(model, optimizer, loader, sensitive=wanted) as ledger:
        watching = type(loader.batch_sampler)
        keeping = {"__iter__": _keeping(watching, weights, batches, bare)}
        loader.batch_sampler.__class__ = type(watching.__name__, (watching,), keeping)
        run(*made, **how)
    return ledger, weights, batches


def _keeping(watching, weights, batches, bare):
    def kept(self):
        for batch in watching.__iter__(self):
            batches.append(torch.tensor(list(batch), dtype=torch.long))
            weights.append([p.detach().clone() for p in bare.parameters()])
            yield batch

    return kept


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


def test_virtual_steps_are_measured_whole():
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    data = records()
    found = []
    for physical in (None, 4):
        model, optimizer, loader, criterion = private(norm=NORM)
        torch.manual_seed(3)
        with rt.watch(model, optimizer, loader, sensitive=ATTRIBUTE) as ledger:
            if physical is None:
                run(model, optimizer, loader, criterion, epochs=1)
            else:
                managed = BatchMemoryManager(data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer)
                with managed as pieces:
                    run(model, optimizer, pieces, criterion, epochs=1)
        found.append(ledger.sensitivity)
    assert len(data) == RECORDS
    assert found[0].steps == found[1].steps
    assert math.isclose(found[0].squared_change, found[1].squared_change, rel_tol=0.5)


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


def refused(loop, **options) -> str:
    made = private(**options)
    with rt.watch(*made[:3], sensitive=ATTRIBUTE) as ledger:
        loop(*made)
    with pytest.raises(UnsupportedError) as caught:
        _ = ledger.sensitivity
    assert ledger.ledger.diagnostics.sensitivity is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stepped(model, optimizer, loader, criterion, change=lambda x: x, loss=None, every=1):
    for index, (features, labels) in enumerate(loader):
        if index % every == 0:
            optimizer.zero_grad()
        (loss or criterion)(model(change(features)), labels).backward()
        if (index + 1) % every == 0:
            optimizer.step()


def test_features_that_the_loop_changes_are_not_measured():
    assert "other features" in refused(lambda *made: stepped(*made, change=lambda x: x + 0.01))


def test_another_loss_than_stated_is_noticed():
    smooth = nn.CrossEntropyLoss(label_smoothing=0.3)
    assert "not that of the stated loss" in refused(lambda *made: stepped(*made, loss=smooth))

    def own(outputs, targets):
        return nn.functional.cross_entropy(outputs, targets, reduction="none", label_smoothing=0.3)

    made = private()
    with rt.watch(*made[:3], sensitive=Sensitive(ATTRIBUTE, loss=own)) as ledger:
        stepped(*made, loss=smooth)
    assert ledger.sensitivity.steps == ledger.ledger.steps


def test_labels_that_the_loop_changes_are_noticed():
    def flipped(outputs, targets):
        return nn.functional.cross_entropy(outputs, 1 - targets)

    assert "not that of the stated loss" in refused(lambda *made: stepped(*made, loss=flipped))


def test_accumulated_batches_and_changed_noise_are_refused():
    assert "added up" in refused(lambda *made: stepped(*made, every=2), poisson_sampling=False)

    def louder(model, optimizer, loader, criterion):
        stepped(model, optimizer, loader, criterion)
        optimizer.noise_multiplier = 2.0
        stepped(model, optimizer, loader, criterion)

    assert "noise or clip norm changed" in refused(louder)


def test_loops_that_cannot_be_seen_are_refused_before_they_start():
    made = private(clipping="per_layer")
    with pytest.raises(UnsupportedError, match="sensitive needs flat clipping"):
        rt.watch(*made[:3], sensitive=ATTRIBUTE)
    made = private(DataLoader(records(), batch_size=BATCH, num_workers=1))
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
    for every in (1, 3):
        made = private(norm=NORM)
        torch.manual_seed(5)
        with rt.watch(*made[:3], sensitive=Sensitive(ATTRIBUTE, every=every)) as ledger:
            run(*made, epochs=2)
        found.append(ledger.sensitivity)
    exact, sampled = found
    assert exact.steps == sampled.steps
    assert exact.squared_change < sampled.squared_change
    assert exact.mask_term < sampled.mask_term
    assert exact.published_squared_change < sampled.published_squared_change <= 4.0 * exact.steps + 1e-6
    assert sampled.published_squared_change >= 4.0 * (exact.steps - -(-exact.steps // 3)) - 4.0
