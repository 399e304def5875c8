"""A watch never ends a training: what it cannot follow voids its ledger, and the weights are those without it."""

from __future__ import annotations

import pytest

import reticent as rt
from reticent import facts
from reticent.kernel.errors import UnsupportedError
from reticent.records.ledger import RunLedger
from reticent.watching import live, models, optimisers
from reticent.watching.detectors.draws import Drawing, Draws
from reticent.watching.detectors.ghost import GhostClipping
from reticent.watching.detectors.noise import DrawnNoise
from reticent.watching.detectors.seeds import Seeds
from reticent.watching.detectors.weights import Weights
from reticent.watching.recorder import Recorder
from tests.watching.loops import void, watched
from tests.watching.programs import private, run


def failing(*_, **__):
    raise ZeroDivisionError


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
