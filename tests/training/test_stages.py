"""Schedules: noise, rate and clip norm that change along a run, as they are run, recorded, accounted and certified."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.document.ledger_rules import contradictions
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.records.ledger import RunLedger
from reticent.training import RunContext, Settings, fit, load_run, parse_config, train
from reticent.training.randomness import SystemSource
from reticent.training.setup import make_settings
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("quick_documents")

PLAIN = {
    "data": {"name": "breast-cancer"},
    "model": {"kind": "logistic"},
    "noise_multiplier": 2.0,
    "sample_rate": 0.05,
    "steps": 12,
    "learning_rate": 0.5,
}
STAGES = [
    {"at": 4, "noise_multiplier": 1.5, "max_grad_norm": 0.5},
    {"at": 8, "noise_factor": 0.5, "sample_rate": 0.1},
]


def config(**more):
    return parse_config({**PLAIN, **more})


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    return train(config(schedule=STAGES), tmp_path_factory.mktemp("runs") / "run")


def test_every_stage_is_recorded_as_it_ran(staged) -> None:
    size = staged.ledger.data.dataset_size
    found = [(s.steps, s.noise_multiplier, s.max_grad_norm, s.sample_rate) for s in staged.ledger.every_segment]
    assert found == [(4, 2.0, 1.0, 0.05), (4, 1.5, 0.5, 0.05), (4, 1.0, 0.5, 0.1)]
    assert [s.divisor for s in staged.ledger.every_segment] == pytest.approx(
        [0.05 * size, 0.05 * size, 0.1 * size], rel=1e-12, abs=0
    )
    mechanism = staged.ledger.mechanism()
    assert isinstance(mechanism, Ledger)
    assert [(p.noise_multiplier, p.sample_rate, p.steps) for p in mechanism.parts] == [
        (2.0, 0.05, 4),
        (1.5, 0.05, 4),
        (1.0, 0.1, 4),
    ]
    parts = Ledger((DPSGD(2.0, 0.05, 4), DPSGD(1.5, 0.05, 4), DPSGD(1.0, 0.1, 4)))
    told, alone = (rt.assess(release, "worst-case", method="clt")[0] for release in (staged, parts))
    assert rt.advantage(told.curve) == pytest.approx(rt.advantage(alone.curve), rel=1e-9, abs=0)


def test_the_loop_really_changes_rate_noise_norm_and_divisor() -> None:
    """Gradients of one known length: the sums show the clip norm, zeros show the noise, batch sizes the rate."""
    x, y = torch.ones(4000, 1), torch.zeros(4000, dtype=torch.long)

    class Huge(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 2, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 1e3 * self.layer(x)

    def released(noise: float, later: float) -> tuple[list[np.ndarray], list[int]]:
        model = Huge()
        nn.init.zeros_(model.layer.weight)
        settings = Settings(noise, 1.0, 0.1, 100.0, 6, stages=((3, Settings(later, 0.25, 0.5, 10.0, 6)),))
        seen: list[np.ndarray] = []

        class Watch:
            def start(self, context) -> None: ...
            def before_step(self, step) -> None:
                nn.init.zeros_(model.layer.weight)

            def after_step(self, step, update) -> None:
                seen.append(update.gradient.double().numpy().copy())

            def finish(self) -> None: ...

        context = RunContext(settings, model, x, y)
        record = fit(context, lambda p: torch.optim.SGD(p, lr=0.0), SystemSource(), SystemSource(), hooks=(Watch(),))
        return seen, list(record.batch_sizes)

    gradients, sizes = released(0.0, 0.0)
    lengths = [float(np.linalg.norm(g)) for g in gradients]
    assert lengths == pytest.approx(
        [n / 100.0 for n in sizes[:3]] + [0.25 * n / 10.0 for n in sizes[3:]], rel=1e-4, abs=0
    )
    assert all(300 < n < 500 for n in sizes[:3])
    assert all(1800 < n < 2200 for n in sizes[3:])
    noisy, sizes = released(0.0, 1e6)  # noise deviation 1e6 * 0.25 / 10 in the second half only
    assert max(np.linalg.norm(g) for g in noisy[:3]) < 10.0
    assert 5e2 < np.mean([np.linalg.norm(g) for g in noisy[3:]]) < 2e5


def test_the_file_reads_back_and_a_run_of_equal_steps_has_one_segment(staged, tmp_path) -> None:
    again = RunLedger.from_json(staged.ledger.to_json())
    assert again == staged.ledger
    plain = train(config(), tmp_path / "plain")
    assert json.loads(plain.ledger.to_json())["segments"] == [{"noise_multiplier": 2.0, "steps": 12}]
    assert plain.ledger.mechanism() == plain.ledger.equal_steps()


@pytest.mark.slow
def test_command_line_reads_certificate_and_verify_agree(staged, tmp_path, capsys) -> None:
    path = staged.path / "ledger.json"

    def said(*words: str) -> dict:
        code, out, err = run(capsys, *words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    risk = said("risk", "ledger", str(path), "--delta", "1e-5")
    certificate = rt.certify(staged)
    epsilon = certificate.certificate.assessments[0].epsilon_at_delta["1e-05"].value
    assert risk["assessments"][0]["epsilon_at_delta"]["1e-05"]["value"] == pytest.approx(epsilon, rel=1e-6, abs=0)
    assert list(risk["warnings"]) == [w.name for w in certificate.certificate.warnings]
    assert risk["mechanism"] == certificate.certificate.mechanism
    assert certificate.verify().accepted
    found = said("calibrate", "ledger", str(path), "--target", "advantage=0.05")
    scaled = tmp_path / "scaled.json"
    scaled.write_text(json.dumps(found["mechanism"]))
    advantage = said("risk", "ledger", str(scaled))["assessments"][0]["advantage"]["value"]
    assert 0.0499 < advantage <= 0.05
    assert rt.assess(scaled)[0].adversary.name == "worst-case"


def test_forged_stages_are_refused(staged) -> None:
    document = json.loads(staged.ledger.to_json())
    for change in (
        lambda segments: segments[1].update(steps=5),
        lambda segments: segments[2].update(sample_rate=0.0),
        lambda segments: segments.pop(),
    ):
        forged = json.loads(json.dumps(document))
        change(forged["segments"])
        with pytest.raises(ArtifactError, match=r"one entry per step|sample_rate"):
            RunLedger.from_json(json.dumps(forged))


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
        parse_config({k: v for k, v in {**PLAIN, **more}.items() if v is not None})
    assert "\n" not in str(caught.value)


def test_a_stage_after_the_end_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"schedule\.at must be below 12"):
        make_settings(config(schedule=[{"at": 12, "noise_factor": 2.0}]), 400)


def test_a_target_scales_the_whole_schedule() -> None:
    asked = {"noise_multiplier": None, "target": {"advantage": 0.1}, "steps": 100}
    asked["schedule"] = [{"at": 50, "noise_factor": 0.5}]
    settings = make_settings(parse_config({k: v for k, v in {**PLAIN, **asked}.items() if v is not None}), 400)
    first, second = settings.noise_multiplier, settings.stages[0][1].noise_multiplier
    assert second == pytest.approx(0.5 * first)
    found = rt.assess(Ledger((DPSGD(first, 0.05, 50), DPSGD(second, 0.05, 50))))[0]
    assert 0.0999 < rt.advantage(found.curve) <= 0.1


def test_a_run_that_stops_early_has_the_stages_that_ran(tmp_path) -> None:
    from reticent.training.hooks import StopTraining

    class Stop:
        def start(self, context) -> None: ...
        def before_step(self, step) -> None:
            if step.index == 6:
                raise StopTraining

        def after_step(self, step, update) -> None: ...
        def finish(self) -> None: ...

    run = train(config(schedule=STAGES), tmp_path / "run", hooks=[Stop()])
    assert [(s.steps, s.noise_multiplier) for s in run.ledger.segments] == [(4, 2.0), (2, 1.5)]
    assert load_run(run.path).ledger.steps == 6


def test_attacks_that_need_equal_steps_refuse_by_name(staged) -> None:
    with pytest.raises(UnsupportedError, match="only equal steps"):
        staged.ledger.equal_steps()


def test_a_clip_norm_that_changes_counts_against_the_smallest(tmp_path) -> None:
    """A change R of a gradient moves the sum by R over the clip norm of its step, in units of the noise."""
    run = train(
        parse_config(
            {
                **{k: v for k, v in PLAIN.items() if k != "sample_rate"},
                "batch_size": 40,
                "sampler": "shuffled",
                "schedule": [{"at": 4, "max_grad_norm": 0.1}],
            }
        ),
        tmp_path / "run",
    )
    mechanism = run.ledger.mechanism()
    assert isinstance(mechanism, DPSGD)
    assert (mechanism.max_grad_norm, mechanism.steps) == (0.1, 12)


@pytest.mark.slow
def test_lint_reads_the_ledger_of_a_run_and_names_what_the_certificate_names(staged, tmp_path, capsys) -> None:
    found = rt.lint(staged)
    assert [row[0] for row in found.rows()] == [w.name for w in rt.certify(staged).certificate.warnings]
    document = json.loads(staged.ledger.to_json())
    document["segments"][0].update(noise_multiplier=0.0, divisor=99.0)
    forged = tmp_path / "ledger.json"
    forged.write_text(json.dumps(document))
    code, out, _ = run(capsys, "lint", forged)
    assert code == 1
    assert "segments is not what the configuration makes" in out
    assert "no-noise" in out
    code, _, err = run(capsys, "calibrate", "ledger", forged, "--target", "advantage=0.1")
    assert code == 2
    assert err.count("\n") == 1


_OTHER = "is not what the configuration makes"


@pytest.mark.parametrize(
    ("change", "where", "reason"),
    [
        (lambda d: d["segments"][0].update(noise_multiplier=9.0), "segments", _OTHER),
        (lambda d: d["segments"][1].update(noise_multiplier=3.0), "segments", _OTHER),
        (lambda d: d["segments"][2].update(sample_rate=0.01), "segments", _OTHER),
        (lambda d: d["segments"][2].update(max_grad_norm=2.0), "segments", _OTHER),
        (lambda d: d["segments"][1].update(divisor=99.0), "segments", _OTHER),
        (lambda d: (d["segments"][1].update(steps=5), d["segments"][2].update(steps=3)), "segments", _OTHER),
        (lambda d: d.update(segments=[{"noise_multiplier": 2.0, "steps": 12}]), "segments", _OTHER),
        (lambda d: d["config"].update(schedule=[]), "segments", _OTHER),
        (lambda d: d["config"].pop("schedule"), "segments", _OTHER),
        (lambda d: d["config"]["schedule"].reverse(), "config.schedule.at", "must be growing from stage to stage"),
        (lambda d: d["config"].update(schedule=[{"at": 10**400}]), "config.schedule", "must be "),
        (lambda d: d["config"].update(schedule={"at": 1}), "config.schedule", "must be "),
    ],
)
def test_segments_that_contradict_the_schedule_are_named(staged, change, where, reason) -> None:
    document = json.loads(staged.ledger.to_json())
    assert not list(contradictions(RunLedger.model_validate(document)))
    change(document)
    assert "digest" in dict(contradictions(RunLedger.model_validate(document)))
    assert dict(contradictions(RunLedger.model_validate(document).sealed()))[where].startswith(reason)


def test_a_run_that_stopped_early_or_has_equal_stages_is_as_its_schedule_says(staged, tmp_path) -> None:
    document = json.loads(staged.ledger.to_json())
    del document["diagnostics"]["batch_sizes"][8:], document["diagnostics"]["clipped"][8:]
    rates = {"sampler": {**document["sampler"], "sample_rate": 0.05}, "divisor": document["segments"][0]["divisor"]}
    fewer = [{k: v for k, v in part.items() if k not in ("sample_rate", "divisor")} for part in document["segments"]]
    stopped = RunLedger.model_validate({**document, **rates, "segments": fewer[:2]}).sealed()
    assert not list(contradictions(stopped))
    assert facts.STOPPED_EARLY in stopped.faults
    same = train(config(schedule=[{"at": 4, "noise_factor": 1.0}, {"at": 8, "sample_rate": 0.1}]), tmp_path / "run")
    assert len(same.ledger.segments) == 2
    assert not list(contradictions(same.ledger))


def test_verify_and_lint_refuse_segments_that_contradict_the_schedule(staged, tmp_path, capsys) -> None:
    """The numbers would follow from the forged segments; only the configuration gives them away."""
    document = json.loads(staged.ledger.to_json())
    document["segments"][1]["noise_multiplier"] = 3.0
    forged = RunLedger.model_validate(document).sealed()
    with pytest.raises(ArtifactError, match="segments is not what the configuration makes"):
        rt.certify(forged)
    (tmp_path / "ledger.json").write_text(forged.to_json())
    named = json.loads(rt.lint(tmp_path / "ledger.json").to_json())
    assert (named["schema"], named["faults"][0]["fault"]) == ("reticent.lint/1", "ledger.segments")
    code, out, _ = run(capsys, "lint", tmp_path / "ledger.json")
    assert code == 1
    assert "segments is not what the configuration makes" in out


def test_a_run_and_an_assessment_are_shown_in_a_few_lines(staged) -> None:
    text = repr(staged.ledger)
    assert max(map(len, text.splitlines())) <= 80
    head = "run on breast-cancer: 12 noisy steps, poisson batches, sample rate 0.05, noise multiplier 2,"
    assert " ".join(text.split()).startswith(head)
    changed, *warned = [line for line in text.splitlines()[1:] if not line.startswith(" ")]
    assert changed == "the first stage is shown; later ones differ"
    assert warned == [f"warning: {warning.key}" for warning in staged.ledger.faults]
    worst = rt.assess(rt.Gaussian(2.0), "worst-case")[0]
    assert repr(worst) == "worst-case, add-remove: advantage at most 0.1975 (bound)"
    assert worst._repr_html_() == f"<pre>{worst}</pre>"


def test_measuring_every_third_step_gives_a_larger_record(tmp_path) -> None:
    asked = {"group": "mean radius", "scope": "whole-data"}
    found = []
    for every in (1, 3):
        more = {"sensitive": {**asked, "every": every}, "randomness": "reproducible", "steps": 4}
        run = train(config(**more), tmp_path / str(every))
        found.append(run.sensitivity())
    exact, sampled = found
    assert exact.mask_term < sampled.mask_term
    assert exact.squared_change < sampled.squared_change
    assert sampled.squared_change >= 2 * 4.0
