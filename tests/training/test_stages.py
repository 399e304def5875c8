"""Schedules: noise, rate and clip norm that change along a run, as they are run, recorded, accounted and certified."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.records.ledger import RunLedger
from reticent.training import Settings, StopTraining, load_run, train
from reticent.training.hooks import StepHook
from reticent.training.setup import make_settings
from tests.training.small import BASE, Recorder, configured, stepped

pytestmark = pytest.mark.usefixtures("quick_documents")

PLAIN = BASE | {"batch_size": None, "sample_rate": 0.05, "steps": 12, "learning_rate": 0.5}
STAGES = [
    {"at": 4, "noise_multiplier": 1.5, "max_grad_norm": 0.5},
    {"at": 8, "noise_factor": 0.5, "sample_rate": 0.1},
]


config = partial(configured, PLAIN)


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    return train(config(schedule=STAGES), tmp_path_factory.mktemp("runs") / "run")


def test_every_stage_is_recorded_as_it_ran(staged) -> None:
    size = staged.ledger.data.dataset_size
    found = [(s.steps, s.noise_multiplier, s.max_grad_norm, s.sample_rate) for s in staged.ledger.every_segment]
    assert found == [(4, 2.0, 1.0, 0.05), (4, 1.5, 0.5, 0.05), (4, 1.0, 0.5, 0.1)]
    divisors = [s.divisor / size for s in staged.ledger.every_segment]
    assert divisors == pytest.approx([0.05, 0.05, 0.1], rel=1e-12, abs=0)
    mechanism = staged.ledger.mechanism()
    assert isinstance(mechanism, Ledger)
    found = [(p.noise_multiplier, p.sample_rate, p.steps) for p in mechanism.parts]
    assert found == [(2.0, 0.05, 4), (1.5, 0.05, 4), (1.0, 0.1, 4)]
    parts = Ledger((DPSGD(2.0, 0.05, 4), DPSGD(1.5, 0.05, 4), DPSGD(1.0, 0.1, 4)))
    told, alone = (rt.assess(release, "worst-case", method="clt")[0] for release in (staged, parts))
    assert rt.advantage(told.curve) == pytest.approx(rt.advantage(alone.curve), rel=1e-9, abs=0)
    with pytest.raises(UnsupportedError, match="only equal steps"):
        staged.ledger.equal_steps()


class Huge(nn.Module):
    """Its gradients are long, whatever its weights are; and these stay 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 2, bias=False)
        nn.init.zeros_(self.layer.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1e3 * self.layer(x)


def test_the_loop_really_changes_rate_noise_norm_and_divisor() -> None:
    """Gradients of one known length: the sums show the clip norm, zeros show the noise, batch sizes the rate."""

    def released(noise: float, later: float) -> tuple[list[float], list[int]]:
        settings, seen = (
            Settings(noise, 1.0, 0.1, 100.0, 6, stages=((3, Settings(later, 0.25, 0.5, 10.0, 6)),)),
            Recorder(),
        )
        record = stepped(Huge(), settings, torch.ones(4000, 1), torch.zeros(4000, dtype=torch.long), seen)
        return [float(update.gradient.double().norm()) for update in seen.updates], list(record.batch_sizes)

    lengths, sizes = released(0.0, 0.0)
    expected = [n / 100.0 for n in sizes[:3]] + [0.25 * n / 10.0 for n in sizes[3:]]
    assert lengths == pytest.approx(expected, rel=1e-4, abs=0)
    assert all(300 < n < 500 for n in sizes[:3])
    assert all(1800 < n < 2200 for n in sizes[3:])
    noisy, sizes = released(0.0, 1e6)  # noise deviation 1e6 * 0.25 / 10 in the second half only
    assert max(noisy[:3]) < 10.0
    assert 5e2 < np.mean(noisy[3:]) < 2e5


def test_the_file_reads_back_and_a_run_of_equal_steps_has_one_segment(staged, tmp_path) -> None:
    assert RunLedger.from_json(staged.ledger.to_json()) == staged.ledger
    plain = train(config(), tmp_path / "plain").ledger
    assert json.loads(plain.to_json())["segments"] == [{"noise_multiplier": 2.0, "steps": 12}]
    assert plain.mechanism() == plain.equal_steps()
    same = train(config(schedule=[{"at": 4, "noise_factor": 1.0}, {"at": 8, "sample_rate": 0.1}]), tmp_path / "run")
    assert len(same.ledger.segments) == 2
    assert not list(same.ledger.contradictions())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"schedule": [{"at": 4}]}, "must say what changes"),
        ({"schedule": [{"at": 4, "noise_multiplier": 1.0}, {"at": 4, "noise_multiplier": 2.0}]}, "at must grow"),
        ({"schedule": [{"at": 4, "batch_size": 9}]}, "batch_size cannot be mixed"),
        ({"steps": None, "epochs": 1, "schedule": [{"at": 4, "sample_rate": 0.1}]}, "steps must be given"),
        (
            {"sampler": "shuffled", "sample_rate": None, "batch_size": 9, "schedule": [{"at": 4, "noise_factor": 2}]},
            "only max_grad_norm",
        ),
        (
            {"noise_multiplier": None, "target": {"mu": 1}, "schedule": [{"at": 4, "noise_multiplier": 2}]},
            "noise_factor",
        ),
        ({"sensitive": {"group": "mean radius"}, "schedule": [{"at": 4, "noise_factor": 2}]}, "equal steps only"),
        ({"schedule": [{"at": 4, "noise_multiplier": 1, "noise_factor": 2}]}, "only one of"),
        ({"schedule": [{"at": 0, "noise_factor": 2}]}, "schedule.0.at"),
    ],
)
def test_what_is_not_proven_or_makes_no_sense_ends_in_one_line(more, words) -> None:
    with pytest.raises(ArtifactError, match=words) as caught:
        config(**more)
    assert "\n" not in str(caught.value)


def test_a_stage_after_the_end_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"schedule\.at must be below 12"):
        make_settings(config(schedule=[{"at": 12, "noise_factor": 2.0}]), 400)


def test_a_target_scales_the_whole_schedule() -> None:
    asked = {"noise_multiplier": None, "target": {"advantage": 0.1}, "steps": 100}
    settings = make_settings(config(**asked, schedule=[{"at": 50, "noise_factor": 0.5}]), 400)
    first, second = settings.noise_multiplier, settings.stages[0][1].noise_multiplier
    assert second == pytest.approx(0.5 * first)
    found = rt.assess(Ledger((DPSGD(first, 0.05, 50), DPSGD(second, 0.05, 50))))[0]
    assert 0.0999 < rt.advantage(found.curve) <= 0.1


class Stop(StepHook):
    def before_step(self, step) -> None:
        if step.index == 6:
            raise StopTraining


def test_a_run_that_stops_early_has_the_stages_that_ran(tmp_path) -> None:
    ledger = load_run(train(config(schedule=STAGES), tmp_path / "run", hooks=[Stop()]).path).ledger
    assert [(s.steps, s.noise_multiplier) for s in ledger.segments] == [(4, 2.0), (2, 1.5)]
    assert ledger.steps == 6
    assert facts.STOPPED_EARLY in ledger.faults
    assert not list(ledger.contradictions())


def test_a_clip_norm_that_changes_counts_against_the_smallest(tmp_path) -> None:
    """A change R of a gradient moves the sum by R over the clip norm of its step, in units of the noise."""
    schedule = [{"at": 4, "max_grad_norm": 0.1}]
    shuffled = config(sample_rate=None, batch_size=40, sampler="shuffled", schedule=schedule)
    mechanism = train(shuffled, tmp_path / "run").ledger.mechanism()
    assert isinstance(mechanism, DPSGD)
    assert (mechanism.max_grad_norm, mechanism.steps) == (0.1, 12)


def test_a_run_is_shown_in_a_few_lines(staged) -> None:
    text = repr(staged.ledger)
    assert max(map(len, text.splitlines())) <= 80
    head = "run on breast-cancer: 12 noisy steps, poisson batches, sample rate 0.05, noise multiplier 2,"
    assert " ".join(text.split()).startswith(head)
    changed, *warned = [line for line in text.splitlines()[1:] if not line.startswith(" ")]
    assert changed == "the first stage is shown; later ones differ"
    assert warned == [f"warning: {warning.key}" for warning in staged.ledger.faults]
