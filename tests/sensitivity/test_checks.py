"""Every mistake ends in one clear line, and none in a number: some of these once gave one, and too small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reticent.kernel.errors import NumericalError, ParameterError, ReticentError
from reticent.mechanisms.sensitivity import Scope
from reticent.sensitivity import GradientSensitivity, Precision, SensitiveAttribute
from reticent.sensitivity.recorder import AttributeRecorder, AuditSet
from reticent.training.config import parse_config

_AGE = SensitiveAttribute.number(0, 0.0, 1.0, 3)


X, Y = torch.randn(8, 6, generator=torch.Generator().manual_seed(3)), torch.arange(8) % 2
I = np.arange(8)  # noqa: E741
_BUDGET = {"audit": AuditSet(X, Y), "budget": 1e-12}


def _dense() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def _layered() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.Flatten(), nn.Linear(12, 2))


def _recorder(model: nn.Module, **options: object) -> AttributeRecorder:
    return AttributeRecorder(model, options.pop("attribute", _AGE), **{"noise_multiplier": 1.0, **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SensitiveAttribute(1, np.eye(2)), "columns must be a tuple"),
        (lambda: SensitiveAttribute((1.5,), np.eye(2)), "columns must be a tuple of whole numbers"),
        (lambda: SensitiveAttribute((-1,), np.eye(2)), "columns must be one or more distinct positions >= 0"),
        (lambda: SensitiveAttribute((0, 0), np.eye(2)), "distinct positions"),
        (lambda: SensitiveAttribute((), np.zeros((2, 0))), "one or more"),
        (lambda: SensitiveAttribute((1,), [[0.0], [1.0]]), "values must be an array of numbers"),
        (lambda: SensitiveAttribute((1,), np.array([["a"], ["b"]])), "values must be an array of numbers"),
        (lambda: SensitiveAttribute((1,), np.array([0.0, 1.0])), "two or more rows of 1 columns"),
        (lambda: SensitiveAttribute((1,), np.zeros((1, 1))), "two or more rows of 1 columns"),
        (lambda: SensitiveAttribute((1,), np.array([[0.0], [np.nan]])), "values must be finite"),
        (lambda: SensitiveAttribute.number(0, 1.0, 1.0, 3), "at least two different rows"),
        (lambda: SensitiveAttribute.number(0, 0.0, 1.0, 1), "count must be at least 2"),
        (lambda: AuditSet(X[:0], Y[:0]), "audit"),
        (lambda: AuditSet(X, Y[:2]), "audit"),
        (lambda: _recorder(_dense()).record(), "steps must be at least 1"),
        (lambda: _observed(attribute=SensitiveAttribute.number(6, 0, 1, 2)), "columns must be below 6"),
        (lambda: _recorder(_dense()).observe(torch.zeros(8, 7), Y, I), "features must be 6 numbers per record"),
    ],
)
def test_arguments_that_are_none(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def _observed(**options: object) -> AttributeRecorder:
    recorder = _recorder(_dense(), **options)
    recorder.observe(X, Y, I)
    return recorder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        (_BUDGET | {"precision": Precision.SINGLE}, r"precision must be Precision\.DOUBLE where a budget is kept"),
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
        recorder.observe(*change(X, Y, I))
    assert recorder.steps == 0


@pytest.mark.parametrize("build", [_dense, _layered])
def test_a_mean_loss_is_refused_and_a_gradient_that_is_not_finite_is_no_zero(build):
    """A mean would shrink every gradient by the number of completions."""
    with pytest.raises(ParameterError, match="loss must be one number per record"):
        _recorder(build(), loss=cross_entropy).observe(X, Y, I)
    for bad in (float("nan"), float("inf")):
        broken = X.clone()
        broken[5, 3] = bad
        with pytest.raises(NumericalError, match="not finite"):
            _recorder(build()).observe(broken, Y, I)


def test_a_budget_too_small_for_one_step():
    recorder = _recorder(_dense(), **_BUDGET)
    assert not recorder.observe(X, Y, I)
    with pytest.raises(ParameterError, match="budget must be larger: the first step alone exceeds it"):
        recorder.record()


def test_a_budget_needs_an_audit_in_the_configuration_too():
    document = {"data": {"name": "breast-cancer"}, "model": {"kind": "logistic"}, "noise_multiplier": 1.0}
    document |= {"sample_rate": 0.1, "steps": 2, "max_grad_norm": 1.0, "learning_rate": 0.1}
    for scope in (Scope.SAMPLED_BATCH, Scope.WHOLE_DATA):
        whole = document | {"sensitive": {"group": "age", "scope": scope.value, "budget": 1.0}}
        if scope is Scope.WHOLE_DATA:
            parse_config(whole)
            continue
        with pytest.raises(ReticentError, match="budget is for scope audit-set or whole-data"):
            parse_config(whole)


def test_blocks_leave_the_gradient_mode_of_the_caller():
    for _ in GradientSensitivity(_dense(), _AGE).blocks(X, Y):
        assert torch.is_grad_enabled()
