"""Normalised gradients: with two labels one fixed vector for each record, whatever the weights are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.glir import glir_audit
from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.sensitivity import SensitiveAttribute
from reticent.training import RunContext, Settings, train
from reticent.training.factored import LinearModel, unit_rows
from reticent.training.sensitive import AttributeHook
from tests.sensitivity.cases import gradients_of
from tests.training.small import stepped

NORM = 0.7


def records(labels: int = 2, columns: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(5)
    rows = torch.randn(12, columns, generator=draw)
    rows[0] *= 1e-30  # its squares are nothing in single precision
    rows[1] *= 1e15
    rows[2] = 0.0
    return rows, torch.arange(12) % labels


def effect(layer: nn.Linear, rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """What each record adds to the sum, shape (records, parameters)."""
    model = LinearModel.of(layer, rows)
    assert model is not None
    found = []
    for row, label in zip(rows, labels, strict=True):
        _, sums = model.normalised(row[None], label[None], NORM)
        found.append(torch.cat([sums[p].flatten() for p in layer.parameters()]))
    return torch.stack(found)


def weights(columns: int, outputs: int, *, bias: bool, spread: float, seed: int) -> nn.Linear:
    layer = nn.Linear(columns, outputs, bias=bias)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(spread * torch.randn(p.shape, generator=draw))
    return layer


class TestTwoLabels:
    @pytest.mark.parametrize("bias", [False, True])
    def test_one_vector_whatever_the_weights(self, bias: bool) -> None:
        """Logits of 0, of 1, and of a million, where the gradient itself has long vanished."""
        rows, labels = records()
        layers = [weights(6, 2, bias=bias, spread=s, seed=n) for n, s in enumerate((0.0, 1.0, 30.0, 1e6, -1e6))]
        effects = [effect(layer, rows, labels) for layer in layers]
        for other in effects[1:]:
            assert torch.equal(other, effects[0])

    def test_it_is_the_record_with_the_sign_of_its_label(self) -> None:
        """Every length but zero is the clip norm, and none is longer."""
        rows, labels = records()
        found = effect(weights(6, 2, bias=False, spread=1e6, seed=3), rows, labels).double()
        signs = torch.where(labels == 1, 1.0, -1.0).double() / math.sqrt(2.0)
        wanted = NORM * torch.stack([signs, -signs], dim=1)[:, :, None] * unit_rows(rows.double())[:, None, :]
        assert found.numpy() == pytest.approx(wanted.flatten(1).numpy(), rel=1e-5, abs=1e-6)
        lengths = found.norm(dim=1)
        assert lengths.numpy() == pytest.approx(np.where(np.arange(12) == 2, 0.0, NORM), rel=2e-6, abs=0)
        assert float(lengths.max()) <= NORM

    def test_with_a_bias_a_record_of_zeros_moves_the_bias_alone(self) -> None:
        rows, labels = records()
        moved = effect(weights(6, 2, bias=True, spread=1.0, seed=1), rows, labels)[2]
        assert moved[:12].abs().max() == 0.0
        assert float(moved[12:].double().norm()) == pytest.approx(NORM, rel=2e-6, abs=0)


SPREADS = ((1, 2.0), (2, 2.0), (1, 1e5))


class TestSeveralLabels:
    def test_the_direction_turns_with_the_weights(self) -> None:
        """Extreme logits, too, have a direction."""
        rows, labels = records(labels=3)
        one, two, far = (effect(weights(6, 3, bias=False, spread=s, seed=n), rows, labels)[3:] for n, s in SPREADS)
        assert float(((one * two).sum(dim=1) / NORM**2).min()) < 0.98
        for found in (one, two, far):
            assert found.double().norm(dim=1).numpy() == pytest.approx(np.full(9, NORM), rel=2e-6, abs=0)

    def test_it_is_the_gradient_over_its_length(self) -> None:
        rows, labels = records(labels=3)
        layer = weights(6, 3, bias=True, spread=0.5, seed=4)
        wanted = gradients_of(layer, rows, labels)[3:]
        wanted *= NORM / wanted.norm(dim=1, keepdim=True)
        assert effect(layer, rows, labels)[3:].numpy() == pytest.approx(wanted.numpy(), rel=1e-4, abs=1e-6)


def test_rows_of_any_length_have_a_unit() -> None:
    rows = torch.tensor([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]], dtype=torch.float64)
    assert unit_rows(rows).numpy() == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]]), rel=1e-12, abs=0)


class TestRuns:
    def test_the_loop_releases_the_class_means(self, training) -> None:
        """Without noise and with full batches a step is the sum of the signed units over the divisor."""
        layer = nn.Linear(5, 2, bias=False)
        before = layer.weight.detach().clone()
        settings = Settings(0.0, NORM, 1.0, 12.0, 1, physical_batch_size=7, normalise=True)
        record = stepped(layer, settings, *training, rate=1.0)
        rows, signs = training[0].double(), torch.where(training[1] == 1, 1.0, -1.0).double()
        mean = (signs[:, None] * rows / rows.norm(dim=1, keepdim=True)).sum(dim=0) * NORM / math.sqrt(2) / 12.0
        moved = (layer.weight.detach() - before).double()
        assert moved[0].numpy() == pytest.approx(-mean.numpy(), rel=1e-4, abs=1e-6)
        assert moved[1].numpy() == pytest.approx(mean.numpy(), rel=1e-4, abs=1e-6)
        assert record.factored
        assert record.batch_sizes == (60,)

    @pytest.mark.parametrize(
        "changes",
        [{"model": {"kind": "mlp", "widths": [3]}}, {"sensitive": {"group": "x"}}, {"augmentation": {"times": 2}}],
    )
    def test_what_it_is_not_for(self, make_config, changes) -> None:
        with pytest.raises(ArtifactError, match="normalise"):
            make_config(**({"clipping": "normalise", "model": {"kind": "logistic"}} | changes))

    @pytest.mark.parametrize(
        "model",
        [
            nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2)),
            nn.Sequential(nn.Linear(5, 2), nn.Tanh()),
            nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 2)),
        ],
    )
    def test_models_without_such_a_layer_are_refused(self, training, model) -> None:
        with pytest.raises(UnsupportedError, match="last layer is linear"):
            stepped(model, Settings(1.0, 1.0, 0.2, 12.0, 1, normalise=True), *training)

    def test_attacks_that_clip_refuse_it(self, make_config, tmp_path) -> None:
        config = make_config(model={"kind": "logistic"}, clipping="normalise", trace={"every": 1})
        run = train(config, tmp_path / "run")
        with pytest.raises(UnsupportedError, match="normalised"):
            glir_audit(run)

    def test_a_recorder_refuses_it(self, training) -> None:
        hook = AttributeHook(SensitiveAttribute.number(0, low=-1.0, high=1.0, count=2))
        context = RunContext(Settings(1.0, 1.0, 0.2, 12.0, 1, normalise=True), nn.Linear(5, 2), *training)
        with pytest.raises(UnsupportedError, match="normalise"):
            hook.start(context)
