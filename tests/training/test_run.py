"""A run and its ledger: what is written is what happened."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import reticent as rt
from reticent import facts
from reticent.data.purchase import generate_baskets
from reticent.facts.steps import MOST_STEPS
from reticent.kernel.errors import ArtifactError, DataError, NumericalError, ParameterError, ReticentError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import Status
from reticent.kernel.samplers import Poisson
from reticent.records.ledger import RunLedger
from reticent.samplers import RandomAllocation
from reticent.training import StopTraining, load_config, load_run, train
from reticent.training.hooks import StepHook
from reticent.training.run import cost_of
from reticent.training.setup import make_settings
from tests.data.purchase_file import write_table
from tests.training.small import configured, flat

NEEDS_FILES = pytest.mark.skipif(not os.environ.get("RETICENT_DATA"), reason="RETICENT_DATA is not set")


def final(run) -> np.ndarray:
    return flat(run.weights().values())


def test_ledger_tells_what_happened(make_config, dataset, recorder, tmp_path):
    run = train(make_config(), tmp_path / "run", hooks=[recorder], dataset=dataset)
    ledger = run.ledger
    assert recorder.finished
    assert ledger.steps == ledger.counted == 15 == len(recorder.steps)
    assert ledger.diagnostics.batch_sizes == tuple(len(s.indices) for s in recorder.steps)
    assert len(set(ledger.diagnostics.batch_sizes)) > 3
    assert ledger.diagnostics.clipped == tuple(int((u.norms > 1.0).sum()) for u in recorder.updates)
    assert ledger.divisor == pytest.approx(12.0, rel=1e-12, abs=0)
    assert ledger.first.sample_rate == pytest.approx(0.2, rel=1e-12, abs=0)
    assert ledger.num_parameters == 5 * 4 + 4 + 4 * 2 + 2
    assert ledger.data.dataset_size == 60
    assert ledger.data.content_hash == dataset.content_hash
    known, torch_here = ledger.environment.versions, torch.__version__.partition("+")[0]
    assert known["torch"].partition("+")[0] == torch_here  # metadata may not name the build
    assert known["reticent"] == rt.__version__
    assert ledger.environment.seeds.noise == ledger.environment.seeds.sampling == 3
    known = {"max_grad_norm": 1.0, "num_parameters": 34, "batch_size": 12, "dataset_size": 60}
    assert ledger.mechanism() == DPSGD(1.0, 12 / 60, 15, sampler=Poisson(), **known)


def test_accuracy_is_that_of_the_final_weights(make_config, dataset, tmp_path):
    run = train(make_config(), tmp_path / "run", dataset=dataset)
    model = run.model()
    for indices, stated in (
        (dataset.train, run.ledger.diagnostics.train_accuracy),
        (dataset.test, run.ledger.utility.test_accuracy),
    ):
        guesses = model(torch.from_numpy(dataset.features[indices])).argmax(dim=1).numpy()
        assert stated == pytest.approx(np.mean(guesses == dataset.labels[indices]), rel=1e-12, abs=0)


def test_learns_without_noise(make_config, dataset, tmp_path):
    config = make_config(noise_multiplier=0.0, steps=100, learning_rate=1.0, trace={"every": 30, "masks": True})
    run = train(config, tmp_path / "run", dataset=dataset)
    assert run.ledger.diagnostics.train_accuracy > 0.9
    assert facts.NO_NOISE in run.ledger.faults
    assert run.config == config


def test_a_seed_is_repeated_and_fresh_randomness_never(make_config, dataset, tmp_path):
    asked = ({"seed": 3}, {"seed": 3}, {"seed": 4}, {"randomness": "fresh"}, {"randomness": "fresh"})
    runs = [train(make_config(**one), tmp_path / f"run{i}", dataset=dataset) for i, one in enumerate(asked)]
    weights = [final(run).tobytes() for run in runs]
    assert weights[0] == weights[1]
    assert len(set(weights)) == 4
    assert facts.REPRODUCIBLE_NOISE in runs[0].ledger.faults
    for run in runs[3:]:
        assert facts.REPRODUCIBLE_NOISE not in run.ledger.faults
        assert run.ledger.environment.seeds.noise is run.ledger.environment.seeds.sampling is None
    assert runs[3].ledger.diagnostics.batch_sizes != runs[4].ledger.diagnostics.batch_sizes


class Meddler(StepHook):
    """Draws random numbers, runs the model and its gradients, and leaves it in another mode."""

    def start(self, context) -> None:
        self.context = context
        torch.manual_seed(0)

    def before_step(self, step) -> None:
        torch.randn(7)
        model = self.context.model.eval()
        if len(step.labels):
            torch.nn.functional.cross_entropy(model(step.features), step.labels).backward()

    def after_step(self, step, update) -> None:
        torch.manual_seed(step.index)
        update.gradient.zero_()

    def finish(self) -> None:
        torch.randn(3)


def test_hooks_leave_training_bit_identical(make_config, dataset, tmp_path):
    torch.manual_seed(99)
    before = torch.get_rng_state()
    alone = train(make_config(), tmp_path / "alone", dataset=dataset)
    watched = train(make_config(), tmp_path / "watched", hooks=[Meddler()], dataset=dataset)
    assert np.array_equal(final(alone), final(watched))
    assert alone.ledger.diagnostics.batch_sizes == watched.ledger.diagnostics.batch_sizes
    assert alone.ledger.diagnostics.clipped == watched.ledger.diagnostics.clipped
    assert torch.equal(before, torch.get_rng_state())


class EndAt(StepHook):
    def __init__(self, step: int, how: type[BaseException] = StopTraining) -> None:
        self.step, self.how = step, how

    def before_step(self, step) -> None:
        if step.index == self.step:
            raise self.how


def test_a_hook_can_stop_a_run_and_the_plan_is_accounted(make_config, dataset, tmp_path):
    run = train(make_config(), tmp_path / "run", hooks=[EndAt(4)], dataset=dataset)
    assert run.ledger.steps == 4
    assert run.ledger.counted == 15
    assert run.ledger.equal_steps().steps == 4
    assert run.ledger.mechanism().steps == 15
    assert facts.STOPPED_EARLY in run.ledger.faults
    assert "planned-steps" not in run.ledger.vouches()  # the hook may have looked at the records
    with pytest.raises(ParameterError, match="at least one step"):
        train(make_config(), tmp_path / "none", hooks=[EndAt(0)], dataset=dataset)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("sampler", "warning"), [("fixed-size", facts.FIXED_SIZE), ("shuffled", facts.SHUFFLED)])
def test_other_samplers_are_recorded_and_warned_of(make_config, dataset, tmp_path, sampler, warning):
    ledger = train(make_config(sampler=sampler), tmp_path / "run", dataset=dataset).ledger
    assert set(ledger.diagnostics.batch_sizes) == {12}
    assert ledger.equal_steps() == ledger.mechanism()
    assert ledger.mechanism().sampler.name == sampler
    assert warning in ledger.faults
    assert all(str(w.text).endswith(".") for w in ledger.faults)


def test_a_record_in_three_steps_of_each_epoch(make_config, dataset, tmp_path):
    """60 records in epochs of five steps, which hold 36 each, and by so many sums are divided."""
    drawn = {"name": "random-allocation", "uses_per_epoch": 3}
    run = train(make_config(sampler=drawn, steps=None, epochs=2), tmp_path / "run", dataset=dataset)
    ledger, sizes = RunLedger.from_json(run.ledger.to_json()), run.ledger.diagnostics.batch_sizes
    assert (sum(sizes[:5]), sum(sizes[5:]), len(sizes)) == (180, 180, 10)
    assert (ledger.divisor, ledger.asked["sampler"]) == (36.0, drawn)
    assert ledger.mechanism().sampler == RandomAllocation(5, uses_per_epoch=3)
    assert not list(ledger.contradictions())
    assert ledger.vouches()["allocation-draws"] is Status.CHECKED
    stated = rt.dpsgd(
        noise_multiplier=1.0, batch_size=12, dataset_size=60, epochs=2, sampler="random-allocation", uses_per_epoch=3
    )
    assert rt.advantage(rt.assess(ledger)) == pytest.approx(rt.advantage(rt.assess(stated)), rel=1e-9, abs=0)
    told = rt.certify(ledger).certificate.mechanism
    assert (told["sampler"], told["uses_per_epoch"]) == ("random-allocation", 3)
    config = make_config(sampler=drawn, steps=None, epochs=2)
    assert cost_of(config, dataset, make_settings(config, 60)).batch_size == pytest.approx(36.0, rel=1e-9, abs=0)
    with pytest.raises(ParameterError, match="uses_per_epoch must be at most the steps of an epoch"):
        train(make_config(sampler=drawn | {"uses_per_epoch": 6}), tmp_path / "six", dataset=dataset)


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({"epochs": 2, "steps": None}, 10),
        ({"epochs": 2, "steps": None, "sampler": "shuffled", "batch_size": 25}, 6),
        ({"epochs": 2, "steps": None, "sampler": "random-allocation", "batch_size": 25}, 6),
        ({"sample_rate": 0.3, "batch_size": None, "epochs": 3, "steps": None}, 10),
    ],
)
def test_epochs_become_steps(make_config, changes, steps):
    assert make_settings(make_config(**changes), 60).steps == steps


def test_the_size_is_public_only_where_it_was_used(make_config, dataset, tmp_path):
    fixed = train(make_config(sample_rate=0.2, batch_size=None, divisor=10.0), tmp_path / "a", dataset=dataset).ledger
    assert fixed.divisor == 10.0
    assert facts.SIZE_PUBLIC not in fixed.faults
    assert facts.SIZE_PUBLIC in train(make_config(), tmp_path / "b", dataset=dataset).ledger.faults


def test_ledger_round_trip_and_strictness(make_config, dataset, tmp_path):
    ledger = train(make_config(), tmp_path / "run", dataset=dataset).ledger
    assert RunLedger.from_json(ledger.to_json()) == ledger
    document = json.loads(ledger.to_json())
    for change, complaint in (
        ({"segments": [document["segments"][0] | {"steps": 14}]}, "one entry per step"),
        ({"segments": [document["segments"][0] | {"noise_multiplier": -1.0}]}, "noise_multiplier"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"schema": "reticent.ledger/1"}, "expected reticent.ledger/2"),
    ):
        with pytest.raises(ArtifactError, match=complaint):
            RunLedger.from_json(json.dumps(document | change))


def test_an_interrupted_run_leaves_nothing(make_config, dataset, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(make_config(), tmp_path / "run", hooks=[EndAt(3, KeyboardInterrupt)], dataset=dataset)
    assert list(tmp_path.iterdir()) == []


def test_a_long_ledger_takes_linear_time_and_a_longer_one_is_refused(make_config, dataset, tmp_path):
    ledger, steps = train(make_config(), tmp_path / "run", dataset=dataset).ledger, 100_000
    diagnostics = ledger.diagnostics.model_copy(update={"batch_sizes": (5,) * steps, "clipped": (1,) * steps})
    segments = (ledger.segments[0].model_copy(update={"steps": steps}),)
    long = ledger.model_copy(update={"diagnostics": diagnostics, "segments": segments})
    started = time.process_time()
    text = long.to_json()
    assert RunLedger.from_json(text) == long
    long.public()
    assert time.process_time() - started < 1.5
    with pytest.raises(ReticentError, match="at most 1000000 items"):
        RunLedger.from_json(text.replace("[5, 5", "[" + "5, " * MOST_STEPS + "5", 1))


def test_another_copy_of_a_file_is_found_by_its_fingerprint(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_DATA", str(tmp_path))
    folder = tmp_path / "purchase100"
    folder.mkdir()
    write_table(generate_baskets(120, seed=1), folder / "dataset_purchase")
    run = train(configured(data={"name": "purchase-100", "train_size": 40}), tmp_path / "run")
    (folder / "dataset_purchase").rename(folder / "older copy")
    write_table(generate_baskets(120, seed=2), folder / "dataset_purchase")
    assert run.dataset().content_hash == run.ledger.data.content_hash
    (folder / "older copy").unlink()
    with pytest.raises(DataError, match="records or split differ from those of the run"):
        run.dataset()


@pytest.mark.parametrize(
    ("name", "accuracy", "seconds"),
    [("demo", 0.85, 60), pytest.param("adult", 0.83, 240, marks=[pytest.mark.slow, NEEDS_FILES])],
)
def test_shipped_configurations_train_in_minutes(tmp_path, name, accuracy, seconds):
    run = train(load_config(Path(__file__).parents[2] / "configs" / f"{name}.yaml"), tmp_path / "run")
    assert run.ledger.utility.test_accuracy > accuracy
    assert run.ledger.diagnostics.seconds < seconds
    assert load_run(tmp_path / "run").dataset().content_hash == run.ledger.data.content_hash


def test_divergence_and_infinite_gradients_release_nothing(make_config, dataset, tmp_path):
    wild = make_config(learning_rate=1e30, model={"kind": "mlp", "widths": [4, 4], "activation": "relu"})
    with pytest.raises(NumericalError, match="not finite"):
        train(wild, tmp_path / "run", dataset=dataset)
    huge = replace(dataset, features=np.where(np.arange(80)[:, None] == 7, np.float32(3e38), dataset.features))
    config = make_config(model={"kind": "logistic"}, sample_rate=1.0, batch_size=None)
    with pytest.raises(NumericalError, match="cannot be clipped"):
        train(config, tmp_path / "run", dataset=huge)
    assert list(tmp_path.iterdir()) == []
