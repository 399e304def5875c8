"""Every mistake ends in one clear line, and none in a number: some of these once gave one, and too small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reticent.kernel.errors import NumericalError, ParameterError, ReticentError, UnsupportedError
from reticent.mechanisms.sensitivity import Scope
from reticent.sensitivity import GradientSensitivity, SensitiveAttribute
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.training.config import parse_config

_AGE = SensitiveAttribute.number(0, 0.0, 1.0, 3)


def _dense() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def _layered() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.Flatten(), nn.Linear(12, 2))


def _batch(records: int = 8) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    draw = torch.Generator().manual_seed(3)
    features = torch.randn(records, 6, generator=draw)
    return features, torch.randint(0, 2, (records,), generator=draw), np.arange(records)


def _recorder(model: nn.Module, **options: object) -> AttributeRecorder:
    return AttributeRecorder(model, options.pop("attribute", _AGE), **{"noise_multiplier": 1.0, **options})


@pytest.mark.parametrize(
    ("columns", "values", "message"),
    [
        (1, np.eye(2), "columns must be a tuple"),
        ((1.5,), np.array([[0.0], [1.0]]), "columns must be a tuple of whole numbers"),
        ((-1,), np.array([[0.0], [1.0]]), "columns must be one or more distinct positions >= 0"),
        ((0, 0), np.eye(2), "distinct positions"),
        ((), np.zeros((2, 0)), "one or more"),
        ((1,), [[0.0], [1.0]], "values must be an array of numbers"),
        ((1,), np.array([["a"], ["b"]]), "values must be an array of numbers"),
        ((1,), np.array([0.0, 1.0]), "two or more rows of 1 columns"),
        ((1,), np.array([[0.0], [np.nan]]), "values must be finite"),
        ((1,), np.array([[2.0], [2.0]]), "at least two different rows"),
    ],
)
def test_attributes_that_are_none(columns, values, message):
    with pytest.raises(ParameterError, match=message):
        SensitiveAttribute(columns, values)


def test_attributes_from_nothing():
    with pytest.raises(ParameterError, match="columns must be in 0 to 5"):
        SensitiveAttribute.observed([7], _batch()[0].numpy())
    with pytest.raises(ParameterError, match="parts"):
        SensitiveAttribute.jointly()
    with pytest.raises(ParameterError, match="two different rows"):
        SensitiveAttribute.number(0, 1.0, 1.0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"memory": 0}, "memory"),
        ({"budget": 1.0}, "budget must be given together with an audit set"),
        ({"method": "exact"}, "method must be a Diameter"),
        ({"precision": torch.float32}, "precision must be a Precision"),
        ({"audit": torch.zeros(3, 6)}, "audit must be an AuditSet"),
    ],
)
def test_options_of_the_recorder(options, message):
    with pytest.raises(ParameterError, match=message):
        _recorder(_dense(), **options)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Tanh(), "no trained parameter"),
        (_dense().requires_grad_(False), "no trained parameter"),
        (nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)), "mixes the records"),
        (nn.LSTM(6, 4, 2, dropout=0.5), "random"),
        (nn.MultiheadAttention(6, 2, dropout=0.1), "random"),
        (nn.Sequential(nn.Linear(6, 2), nn.RReLU()), "random"),
    ],
)
def test_models_without_a_gradient_per_record(model, message):
    with pytest.raises(UnsupportedError, match=message):
        _recorder(model)


def test_frozen_statistics_and_no_dropout_pass():
    frozen = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).eval()
    assert GradientSensitivity(frozen, _AGE).slack > 0.0
    assert GradientSensitivity(nn.LSTM(6, 4, 2, dropout=0.0), _AGE).slack > 0.0


@pytest.mark.parametrize("build", [_dense, _layered])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y, i: (x.numpy(), y, i), "features must be a torch tensor"),
        (lambda x, y, i: (x, y[:3], i), "with labels for as many records"),
        (lambda x, y, i: (x, y.float(), i), "labels must be whole numbers"),
        (lambda x, y, i: (x, y + 5, i), "labels must be in 0 to 1"),
        (lambda x, y, i: (x, y, i[:3]), "indices must be 8 whole numbers"),
        (lambda x, y, i: (x, y, i + 0.5), "indices must be 8 whole numbers"),
        (lambda x, y, i: (x, y, i == i), "indices must be 8 whole numbers"),
        (lambda x, y, i: (x, y, i - 1), "indices must be distinct positions >= 0"),
        (lambda x, y, i: (x, y, i * 0), "indices must be distinct positions >= 0"),
        (lambda x, y, i: (x[:, :0], y, i), "columns must be below 0"),
    ],
)
def test_batches_that_do_not_fit(build, change, message):
    recorder = _recorder(build())
    with pytest.raises(ParameterError, match=message):
        recorder.observe(*change(*_batch()))
    assert recorder.steps == 0


@pytest.mark.parametrize("build", [_dense, _layered])
def test_a_mean_loss_is_refused(build):
    """It would shrink every gradient by the number of completions."""
    x, y, i = _batch()
    with pytest.raises(ParameterError, match="loss must be one number per record"):
        _recorder(build(), loss=cross_entropy).observe(x, y, i)


@pytest.mark.parametrize("build", [_dense, _layered])
def test_a_gradient_that_is_not_finite_is_no_zero(build):
    x, y, i = _batch()
    for bad in (float("nan"), float("inf")):
        broken = x.clone()
        broken[5, 3] = bad
        with pytest.raises(NumericalError, match="not finite"):
            _recorder(build()).observe(broken, y, i)
        with pytest.raises(NumericalError, match="not finite"):
            GradientSensitivity(build(), _AGE).diameters(broken, y)


def test_a_column_beyond_the_features_and_a_wrong_width():
    x, y, i = _batch()
    with pytest.raises(ParameterError, match="columns must be below 6"):
        _recorder(_dense(), attribute=SensitiveAttribute.number(6, 0, 1, 2)).observe(x, y, i)
    with pytest.raises(ParameterError, match="features must be 6 numbers per record"):
        _recorder(_dense()).observe(torch.zeros(8, 7), y, i)


def test_audit_sets_without_records_and_records_without_steps():
    x, y, _ = _batch()
    with pytest.raises(ParameterError, match="audit"):
        AuditSet(x[:0], y[:0])
    with pytest.raises(ParameterError, match="audit"):
        AuditSet(x, y[:2])
    with pytest.raises(ParameterError, match="steps must be at least 1"):
        _recorder(_dense()).record()


def test_a_budget_too_small_for_one_step():
    x, y, i = _batch()
    recorder = _recorder(_dense(), audit=AuditSet(x, y), budget=1e-12)
    assert not recorder.observe(x, y, i)
    with pytest.raises(ParameterError, match="budget must be larger: the first step alone exceeds it"):
        recorder.record()


def test_a_budget_needs_an_audit_in_the_configuration_too():
    document = {"sensitive": {"group": "age", "scope": Scope.SAMPLED_BATCH.value, "budget": 1.0}}
    with pytest.raises(ReticentError, match="budget is for scope audit-set or whole-data"):
        parse_config(_config() | document)
    parse_config(_config() | {"sensitive": {"group": "age", "scope": "whole-data", "budget": 1.0}})


def _config() -> dict[str, object]:
    model = {"kind": "logistic"}
    settings = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 2, "max_grad_norm": 1.0, "learning_rate": 0.1}
    return {"data": {"name": "breast-cancer"}, "model": model, **settings}


def test_blocks_leave_the_gradient_mode_of_the_caller():
    x, y, _ = _batch()
    for _ in GradientSensitivity(_dense(), _AGE).blocks(x, y):
        assert torch.is_grad_enabled()
