"""``lint`` of whatever says what was run; what a ledger that lies there, and an audit of a loop, ask for."""

from __future__ import annotations

import json

import pytest

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.samplers import FixedSize, Shuffled


def test_a_ledger_is_replaced_only_where_that_is_said(tmp_path):
    torch = pytest.importorskip("torch")
    with rt.watch(torch.nn.Linear(2, 1)) as seen:
        seen.step(noise_multiplier=1.0)
    seen.save(tmp_path / "ledger.json")
    with pytest.raises(ArtifactError, match="already exists; choose another name, or say overwrite=True"):
        seen.save(tmp_path / "ledger.json")
    with pytest.raises(ArtifactError, match="already exists"):
        seen.ledger.save(tmp_path / "ledger.json")
    seen.save(tmp_path / "ledger.json", overwrite=True)
    seen.ledger.save(tmp_path / "ledger.json", overwrite=True)


def test_lint_reads_events_and_mechanisms(tmp_path):
    dp_event = pytest.importorskip("dp_accounting").dp_event
    from reticent.interop.documents import event_to_json

    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.1))
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event_to_json(dp_event.SelfComposedDpEvent(step, 100))))
    found = rt.lint(path)
    assert found.faults == (facts.DECLARED,)
    assert found.title() == "100 noisy steps, 2 warnings"
    assert "nobody saw" in str(found)
    shuffled = rt.DPSGD(0.0, 0.1, 5, sampler=Shuffled())
    assert rt.lint(shuffled).faults == (facts.NO_NOISE, facts.SHUFFLED, facts.DECLARED)
    assert rt.lint(rt.DPSGD(1.0, 0.1, 5, sampler=FixedSize())).faults == (facts.FIXED_SIZE, facts.DECLARED)
    assert facts.CHANGED_NOISE in rt.lint(rt.Ledger((rt.Gaussian(1.0), rt.Gaussian(2.0)))).faults
    (tmp_path / "odd.json").write_text('{"class_name": "SomethingElse"}')
    with pytest.raises((ArtifactError, UnsupportedError)):
        rt.lint(tmp_path / "odd.json")


def test_auditing_a_loop_wants_a_claim():
    pytest.importorskip("torch")
    with pytest.raises(ParameterError, match="claim must be DP-SGD"):
        rt.audit_loop(print, rt.Gaussian(1.0))
