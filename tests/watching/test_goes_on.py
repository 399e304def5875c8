"""A watch never ends a training: what it cannot follow voids its ledger, and the weights are those without it."""

from __future__ import annotations

import contextlib
import math

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError, UnsupportedError
from reticent.records.ledger import RunLedger
from reticent.watching import live, models, optimisers
from reticent.watching.detectors.draws import Drawing, Draws
from reticent.watching.detectors.ghost import GhostClipping
from reticent.watching.detectors.noise import DrawnNoise
from reticent.watching.detectors.seeds import Seeds
from reticent.watching.detectors.weights import Weights
from reticent.watching.recorder import Recorder
from reticent.watching.starts import fresh
from reticent.watching.steps import SeenStep
from tests.watching.loops import NOISE, network, plain_step, private, records, run, void, watched


def failing(*_, **__):
    raise ZeroDivisionError


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("norm", [math.inf, -1.0, 0.0, 1e-300, 1e300])
def test_a_clip_norm_that_is_none(norm, mode):
    """A norm that bounds nothing was an error of pydantic's at the end of the training."""
    made = private(mode=mode)
    made[0].max_grad_norm = made[1].max_grad_norm = norm
    made[1].noise_multiplier = 0.0 if norm < 0.0 else 1.1  # torch draws nothing else
    seen = watched(*made, how={"epochs": 1})
    assert void(seen) or norm in (1e-300, 1e300)
    assert not list(seen.ledger.contradictions())
    assert rt.certify(seen).verify().accepted


@pytest.mark.parametrize("norm", ["1.0", "one", None, math.nan])
def test_a_clip_norm_that_is_no_number_is_an_error_of_opacus(norm):
    made = private()
    made[1].max_grad_norm = norm
    with pytest.raises((TypeError, RuntimeError), match=r"unsupported operand|found std nan"):
        watched(*made)


LOOKS = [
    (optimisers, "waiting"),
    (optimisers, "count_clipped"),
    (optimisers, "release_of"),
    (DrawnNoise, "look"),
    (Recorder, "add"),
    (Drawing, "used"),
    (Seeds, "coins"),
    (Weights, "keep"),
    (Weights, "written"),
    (Draws, "take"),
    (Draws, "fresh"),
    (models, "device_of"),
    (RunLedger, "sealed"),
    (GhostClipping, "clipped"),
]


AT_THE_END = [(Weights, "written"), (models, "device_of"), (RunLedger, "sealed")]
"""Without these no ledger can be written."""


@pytest.mark.parametrize(("where", "name"), LOOKS)
def test_a_look_that_fails(where, name, monkeypatch, capsys):
    """Whatever goes wrong in the watch: all steps are taken, and no number follows from a part of them."""
    made = private(mode="ghost" if where is GhostClipping else "hooks")
    taken = []
    with rt.watch(*made[:3]) as seen:
        monkeypatch.setattr(where, name, failing)
        run(*made, epochs=1, after=taken.append)
    monkeypatch.undo()
    assert len(taken) == 6
    assert "ZeroDivisionError" in capsys.readouterr().err
    if (where, name) in AT_THE_END:
        with pytest.raises(UnsupportedError, match="nothing is proven of this loop"):
            rt.certify(seen)
    else:
        assert facts.NOT_FOLLOWED in seen.ledger.faults
        assert void(seen)
        assert not list(seen.ledger.contradictions())
    with rt.watch(*made[:3]) as second:
        run(*made, epochs=1)
    assert void(second)


def test_positions_that_are_lists():
    """Whether a record is drawn twice was asked of a set of them."""

    class Nested(torch.utils.data.Dataset):
        def __getitem__(self, at):
            return records()[at[0]]

    loader = DataLoader(Nested(), batch_sampler=[[[at], [at + 1]] for at in range(0, 20, 2)])
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rt.watch(model, optimizer, loader) as seen:
        for _features, _labels in loader:
            optimizer.step()
            seen.step(noise_multiplier=1.0)
    assert len(seen) == 10


def test_a_logger_that_fails_loses_its_line(capsys):
    made = private()
    seen = watched(*made, log=failing, log_every=1)
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert not void(seen)


def test_a_risk_that_cannot_be_computed_is_at_most_one(monkeypatch, capsys):
    monkeypatch.setattr(live, "quick_advantage", failing)
    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1)
        assert seen.risk().advantage == 1.0


def test_a_watch_without_steps_says_so_when_it_is_asked():
    made = private()
    with rt.watch(*made[:3]) as seen:
        pass
    with pytest.raises(ParameterError, match="at least one step, or"):
        rt.certify(seen)


@pytest.mark.parametrize("written", [True, False])
def test_weights_that_are_written_while_a_watch_sees_no_step(written):
    """It is entered again, and the ledger begins at the weights before: weights from a generator, as it said."""
    made = private(model=fresh(network()))
    with rt.watch(*made[:3]) as seen:
        if written:
            next(iter(made[0].parameters())).data[0, 0] += 0.5
    with seen:
        run(*made)
    assert void(seen) == written
    assert ("start-weights" in seen.ledger.vouches()) != written


@pytest.mark.parametrize("wrapped", [True, False])
def test_steps_of_which_no_noise_was_seen_are_in_the_ledger(wrapped):
    """Nothing was recorded, and the optimizer moved the weights: what follows is no training of its own."""
    model, optimizer, loader, _ = private()
    if not wrapped:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rt.watch(model, optimizer, loader) as seen:
        for _features, _labels in loader:
            getattr(optimizer, "original_optimizer", optimizer).step()
    assert void(seen)
    assert seen.ledger.steps == 6
    assert facts.UNRECORDED_STEPS in seen.ledger.faults
    assert not list(seen.ledger.contradictions())


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e-200, 1e200])
def test_numbers_that_no_step_has(value):
    step = SeenStep(value, value, value, value, None, None, 1, None)
    assert 0.0 <= step.noise_multiplier <= 1e100
    assert step.sample_rate is not None
    assert 0.0 < step.sample_rate <= 1.0
    bounds = 0.0 < value < math.inf
    assert (SeenStep(1.1, value, 1.0, None, None, None, 1, None).noise_multiplier == 1.1) == bounds
    for number in (step.clip_norm, step.divisor):
        assert number is None or 0.0 < number < math.inf


def test_a_step_that_failed_hides_no_later_one():
    """Of a loop of one's own, whose steps nobody else counts."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    features, labels = records().tensors

    def fails():
        raise ArithmeticError

    with rt.watch(model, optimizer) as seen:
        for recorded in (True, False, True):
            plain_step(model, features, labels, NOISE, 1.0)
            with contextlib.suppress(ArithmeticError):
                optimizer.step(fails)
            optimizer.step()
            if recorded:
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
    assert facts.UNRECORDED_STEPS in seen.ledger.faults
