"""``audit_loop``: anybody's training loop, seen from outside, in processes of its own."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from benchmarks import planted_bugs
from reticent.attacks.loop import audit_loop, find_loop
from reticent.attacks.mechanics import MechanicsReport, audit_mechanics
from reticent.attacks.participation import Check
from reticent.kernel.errors import ParameterError, UnsupportedError, WorkerError
from reticent.kernel.mechanisms import DPSGD
from reticent.samplers import Shuffled
from tests.attacks import loops

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=20, batch_size=20, dataset_size=200)


@pytest.mark.slow
def test_a_loop_in_worker_processes_is_judged():
    """One that seeds its own noise is accused of it; progress counts the runs."""
    seen, loop = [], planted_bugs.FAULTS["fixed seed"]()
    report = audit_loop(loop, CLAIM, significance=1e-6, workers=1, progress=lambda *now: seen.append(now))
    assert "noise across runs" in {check.name for check in report.failed}
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert len(seen) < seen[-1][1]  # it stops at the first test that fails


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (loops.hangs, r"^no run of the loop has ended for 0\.5 s$"),
        pytest.param(loops.broken, "RuntimeError: no luck at all", marks=pytest.mark.slow),
        pytest.param(loops.dies, "died", marks=pytest.mark.slow),
    ],
)
def test_a_loop_that_fails_in_its_process_is_one_line(loop, words):
    with pytest.raises(WorkerError, match=words) as stop:
        audit_loop(loop, CLAIM, workers=1, timeout=0.5 if loop is loops.hangs else None)
    assert "\n" not in str(stop.value)


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_a_correct_opacus_loop_is_not_accused_and_its_whole_epochs_are_cut():
    claim = DPSGD(noise_multiplier=1.0, sample_rate=0.2, steps=8, batch_size=12, dataset_size=60)
    report = audit_mechanics(loops.of_opacus, claim, significance=1e-6)
    assert not report.accused, report.failed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_opacus_loop_that_draws_fixed_batches_is_accused():
    report = audit_mechanics(partial(loops.of_opacus, poisson=False), CLAIM)
    assert {check.name for check in report.failed} & {"once per epoch", "gaps"}


def test_loops_that_show_nothing_or_too_little_are_refused():
    def few(model, data, claim):
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    for loop, words in ((lambda *_: None, "none on the model's parameters"), (few, "at least claim.steps = 20")):
        with pytest.raises(ParameterError, match="optimizer steps") as stop:
            audit_mechanics(loop, CLAIM)
        assert words in str(stop.value)
    with pytest.raises(UnsupportedError, match="Poisson"):
        audit_loop(few, DPSGD(1.0, 0.1, 20, batch_size=20, dataset_size=200, sampler=Shuffled()))


def test_functions_are_found_by_name():
    assert find_loop("os:getcwd")() is not None
    for name in ("os", "os:", ":x", "os:nowhere", "os:sep", "no_such_module:x"):
        with pytest.raises(ParameterError, match="function"):
            find_loop(name)


def test_a_report_prints_as_its_verdict_and_a_line_for_each_test():
    report = MechanicsReport(
        (Check("noise scale", 1e-9, "noise is 0.5 times the claimed size"), Check("<b>", 0.4, "nothing & more")),
        0.01,
        2,
        3,
        3,
    )
    assert str(report).splitlines() == [
        "REFUTED: the loop does not do what it claims; p-value 2e-09 for all tests.",
        "What failed fits this fault best: the noise is smaller or larger than claimed.",
        "FAILED: noise scale (p-value 1e-09): noise is 0.5 times the claimed size",
        "<b> (p-value 0.4): nothing & more",
    ]
    page = report._repr_html_()
    assert page.startswith("<table><caption>REFUTED")
    assert "<td>FAILED: noise scale</td><td>1e-09</td>" in page
    assert "<b>" not in page
    assert str(MechanicsReport((Check("noise scale", 0.5, "x"),), 0.01, 1, 1, 1)).startswith(
        "NOT REFUTED at significance 0.01"
    )
