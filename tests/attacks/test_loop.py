"""``audit_loop``: anybody's training loop, seen from outside, in processes of its own."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.attacks.loop import audit_loop, find_loop
from reticent.attacks.mechanics import MechanicsReport, audit_mechanics
from reticent.attacks.participation import Check
from reticent.kernel.errors import ParameterError, UnsupportedError, WorkerError
from reticent.kernel.mechanisms import DPSGD
from reticent.samplers import Shuffled

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=20, batch_size=20, dataset_size=200)

LOOPS = """
import os

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy


def clipped_sum(model, x, y, limit):
    def loss(weights, a, b):
        return cross_entropy(functional_call(model, weights, (a[None],)), b[None])

    weights = dict(model.named_parameters())
    each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y).values()
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each]).norm(dim=0)
    return [torch.einsum("b,b...->...", (limit / norms.clamp(min=1e-12)).clamp(max=1.0), g) for g in each]


def plain(model, data, claim, learning_rate=0.1):
    x, y = data.tensors
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for _ in range(claim.steps):
        drawn = torch.rand(len(x)) < claim.sample_rate
        empty = [torch.zeros_like(p) for p in model.parameters()]
        sums = clipped_sum(model, x[drawn], y[drawn], claim.max_grad_norm) if drawn.any() else empty
        for p, s in zip(model.parameters(), sums):
            noise = claim.noise_multiplier * claim.max_grad_norm * torch.randn_like(p)
            p.grad = (s + noise) / claim.batch_size
        optimizer.step()


def seeded(model, data, claim):
    torch.manual_seed(0)
    plain(model, data, claim)


def broken(model, data, claim):
    raise RuntimeError("no luck\\nat all")


def dies(model, data, claim):
    os.kill(os.getpid(), 9)


def hangs(model, data, claim):
    import time
    time.sleep(3600)
"""


@pytest.fixture
def loops(tmp_path, monkeypatch):
    (tmp_path / "some_loops.py").write_text(LOOPS)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("some_loops", None)
    import some_loops

    return some_loops


def opacus_loop(model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
    from opacus import PrivacyEngine

    loader = DataLoader(data, batch_size=claim.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=claim.noise_multiplier,
        max_grad_norm=claim.max_grad_norm,
    )
    for _ in range(-(-claim.steps // len(loader))):  # whole epochs
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@pytest.mark.slow
def test_a_loop_in_worker_processes_is_judged(loops):
    """One that seeds its own noise is accused of it; progress counts the runs."""
    seen = []
    report = audit_loop(loops.seeded, CLAIM, significance=1e-6, workers=1, progress=lambda *now: seen.append(now))
    assert "noise across runs" in {check.name for check in report.failed}
    assert [done for done, _ in seen] == list(range(1, seen[-1][1] + 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [("broken", "RuntimeError: no luck at all"), ("dies", "died")],
)
def test_a_loop_that_fails_in_its_process_is_one_line(loops, name, words):
    with pytest.raises(WorkerError) as stop:
        audit_loop(getattr(loops, name), CLAIM, workers=1)
    assert words in str(stop.value)
    assert "\n" not in str(stop.value)


def test_a_loop_that_hangs_is_given_up_in_one_line(loops):
    with pytest.raises(WorkerError, match=r"^no run of the loop has ended for 0\.5 s$"):
        audit_loop(loops.hangs, CLAIM, workers=1, timeout=0.5)


@pytest.mark.slow  # by default: the loop of Opacus below
def test_a_correct_plain_loop_is_not_accused(loops):
    report = audit_mechanics(loops.plain, CLAIM, significance=1e-6)
    assert not report.accused, report.failed


@pytest.mark.filterwarnings("ignore:Secure RNG", "ignore:Full backward hook", "ignore:Optimal order")
def test_a_correct_opacus_loop_is_not_accused_and_its_whole_epochs_are_cut():
    report = audit_mechanics(opacus_loop, CLAIM, significance=1e-6)
    assert not report.accused, report.failed


@pytest.mark.slow
def test_an_opacus_loop_that_draws_fixed_batches_is_accused():
    import warnings

    def fixed(model: nn.Module, data: TensorDataset, claim: DPSGD) -> None:
        from opacus import PrivacyEngine

        loader = DataLoader(data, batch_size=claim.batch_size, shuffle=True)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=claim.noise_multiplier,
            max_grad_norm=claim.max_grad_norm,
            poisson_sampling=False,
        )
        for _ in range(-(-claim.steps // len(loader))):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit_mechanics(fixed, CLAIM)
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


def test_the_package_exports_its_names():
    import reticent.attacks

    assert set(reticent.attacks.__all__) <= set(dir(reticent.attacks))
    for name in reticent.attacks.__all__:
        assert getattr(reticent.attacks, name) is not None
    with pytest.raises(AttributeError, match="nothing_here"):
        reticent.attacks.nothing_here  # noqa: B018


def test_a_report_prints_as_its_verdict_and_a_line_for_each_test():
    report = MechanicsReport(
        (Check("noise scale", 1e-9, "noise is 0.5 times the claimed size"), Check("<b>", 0.4, "nothing & more")), 0.01
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
    assert str(MechanicsReport((Check("noise scale", 0.5, "x"),), 0.01)).startswith("NOT REFUTED at significance 0.01")
