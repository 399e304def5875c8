"""The best of several runs that are really trained: how they are drawn, what is written, and what an attacker gains."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import reticent as rt
from reticent.certificates.build import public
from reticent.kernel.errors import ArtifactError, NumericalError, ParameterError
from reticent.kernel.proofs import Status
from reticent.mechanisms import OneOf
from reticent.mechanisms.one_of import drawn_from
from reticent.training import load_run, rundir, selecting
from reticent.training.run import Fitted
from reticent.training.selecting import parse_selection, plan_selection, select
from reticent.training.sweep import make_grid
from tests.training.small import BASE

SETTINGS = BASE | {"data": {"name": "breast-cancer", "train_size": 60}}
RATES = {"learning_rate": [0.1, 1.0]}
NOISES = {"noise_multiplier": [1.0, 4.0], "learning_rate": [0.1, 1.0]}
TOY = {"data": {"name": "breast-cancer"}, "batch_size": 57}


def planned(axes=RATES, base=SETTINGS, **asked):
    stated = {"runs": "geometric", "mean_runs": 3, **asked}
    return plan_selection(make_grid(base, axes, "x"), parse_selection(stated, "x"))


def test_settings_that_release_the_same_are_one_run_and_others_are_a_list() -> None:
    one = planned()
    assert one.release == rt.Selection(rt.DPSGD(2.0, 0.2, 3), rt.Geometric(3))
    several = planned(NOISES)
    assert several.release.base == OneOf((rt.DPSGD(1.0, 0.2, 3), rt.DPSGD(4.0, 0.2, 3)), (2, 2))
    scored = planned(score="train", score_noise=5.0)
    assert scored.release.base == rt.Ledger((rt.DPSGD(2.0, 0.2, 3), rt.Gaussian(5.0)))


def test_the_best_is_written_and_nothing_else(tmp_path) -> None:
    plan = planned(NOISES, mean_runs=4)
    before = datetime.now(UTC)
    found = select(plan, tmp_path / "run", rng=np.random.default_rng(3))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    run = load_run(tmp_path / "run")
    assert {path.name for path in run.path.iterdir()} == {"ledger.json", "manifest.json", "weights.safetensors"}
    assert list(run.ledger.contradictions()) == []
    assert run.ledger.mechanism() == plan.release
    assert run.config in [cell.config for cell in plan.cells]
    tested = run.ledger.utility.test_accuracy * run.ledger.data.test_size
    assert found.score == pytest.approx(tested, rel=1e-9, abs=0)
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(run.ledger.created) <= datetime.now(UTC)


def without_training(monkeypatch, plan, run: Callable[[int], tuple[Any, float]]) -> list[Any]:
    """Runs that cost nothing: ``run`` says of a setting what a run is, and its score. Which are written comes back."""
    written: list[Any] = []
    places = {id(cell.config): place for place, cell in enumerate(plan.cells)}

    def fitted(config, *_):
        known, score = run(places[id(config)])
        ledger = SimpleNamespace(known=known, utility=SimpleNamespace(test_accuracy=score), sealed=lambda: ledger)
        ledger.model_copy = lambda **_: ledger
        return Fitted(None, ledger, 30)

    monkeypatch.setattr(selecting, "fitted", fitted)
    monkeypatch.setattr(selecting, "make_settings", lambda *_: None)
    monkeypatch.setattr(selecting, "mechanism_record", lambda _: None)
    monkeypatch.setattr(selecting, "SelectionRecord", lambda **_: None)
    monkeypatch.setattr(rundir, "new_run", lambda *_: nullcontext())
    monkeypatch.setattr(rundir, "write_run", lambda _, ledger, model: written.append(ledger.known))
    monkeypatch.setattr(rundir, "load_run", lambda _: None)
    return written


def count_runs(monkeypatch, plan):
    """The settings that are trained, in order, and the number of the run that is written."""
    seen = SimpleNamespace(settings=[])
    seen.written = without_training(
        monkeypatch, plan, lambda place: (seen.settings.append(place) or len(seen.settings) - 1, 0.0)
    )
    return seen


@pytest.mark.parametrize("runs", ["geometric", "negative-binomial", "poisson", "fixed"])
def test_how_many_runs_there_are_has_the_stated_law(runs, monkeypatch, tmp_path) -> None:
    plan, numbers, settings = planned(NOISES, runs=runs, mean_runs=4), [], Counter()
    for seed in range(600):
        seen = count_runs(monkeypatch, plan)
        select(plan, tmp_path / "run", rng=np.random.default_rng(seed))
        numbers.append(len(seen.settings))
        settings.update(seen.settings)
    one = float(plan.asked.law().first(np.array([1.0]))[0])  # F'(0): how likely a single run is
    assert np.mean(numbers) == pytest.approx(4.0, rel=0.15)
    assert np.mean(np.equal(numbers, 1)) == pytest.approx(one, abs=0.06)
    assert (runs == "poisson") == (0 in numbers)
    shares = [settings[place] / settings.total() for place in range(4)]
    assert shares == pytest.approx([0.25] * 4, abs=0.05)  # the list, uniformly, in every run


def test_runs_with_equal_scores_win_by_a_coin(monkeypatch, tmp_path) -> None:
    plan, first = planned(runs="fixed", mean_runs=2), 0
    for seed in range(400):
        seen = count_runs(monkeypatch, plan)
        select(plan, tmp_path / "run", rng=np.random.default_rng(seed))
        first += seen.written == [0]
    assert 150 < first < 250


def test_the_draws_come_from_the_operating_system(monkeypatch, tmp_path) -> None:
    plan, seeds, real = planned(), [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda *seed: seeds.append(seed) or real(*seed))
    count_runs(monkeypatch, plan)
    select(plan, tmp_path / "run")
    assert seeds == [()]


def test_a_run_that_diverged_is_the_worst_and_never_an_error_of_its_own(monkeypatch, tmp_path) -> None:
    deep = SETTINGS | {"model": {"kind": "mlp", "widths": [4], "activation": "relu"}}
    plan = planned({"learning_rate": [0.1, 1e30]}, deep, runs="fixed", mean_runs=8)
    found = select(plan, tmp_path / "run", rng=np.random.default_rng(1))
    assert found.run.config.learning_rate == 0.1
    lost = planned({"learning_rate": [1e30]}, deep, runs="fixed", mean_runs=2)
    with pytest.raises(NumericalError, match="diverged in the best run"):
        select(lost, tmp_path / "lost")
    assert not (tmp_path / "lost").exists()


@pytest.mark.parametrize(
    ("axes", "base", "asked", "words"),
    [
        ({"data.train_size": [40, 50]}, {}, {}, "every run uses the same records"),
        (RATES, {"randomness": "reproducible"}, {}, "runs with one seed are not independent"),
        (RATES, {"trace": {"every": 1}}, {}, "trace must be left out with selection"),
        (RATES, {"target": {"epsilon": 1.0, "delta": 1e-5}, "noise_multiplier": None}, {}, "calibrate --selection"),
        (RATES, {"data": {"name": "breast-cancer", "train_fraction": 1.0}}, {}, "no test records|train_fraction"),
        (RATES, {"records_per_user": 2}, {"score": "train", "score_noise": 3.0}, "one answer is counted for each"),
        ({"records_per_user": [1, 2]}, {}, {}, "the same in every setting"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused_before_anything_is_drawn(axes, base, asked, words) -> None:
    with pytest.raises((ParameterError, ArtifactError), match=words):
        planned(axes, {k: v for k, v in (SETTINGS | base).items() if v is not None}, **asked)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"runs": "geometrical"}, "geometric"),
        ({"mean_runs": None}, "mean_runs is missing"),
        ({"mean_runs": 0.5}, "mean must be from 1"),
        ({"shape": 1.0}, "left out unless runs is negative-binomial"),
        ({"score": "train"}, "score_noise goes with score: train"),
        ({"score_noise": 2.0}, "score_noise goes with score: train"),
        ({"seed": 1}, "unknown key 'seed'"),
    ],
)
def test_what_is_no_selection_ends_in_one_line(asked, words) -> None:
    stated = {"runs": "geometric", "mean_runs": 3, **asked}
    with pytest.raises(ArtifactError, match=words):
        parse_selection({key: value for key, value in stated.items() if value is not None}, "x")


def test_the_score_on_training_records_has_the_noise_that_is_counted(monkeypatch, tmp_path) -> None:
    plan = planned(score="train", score_noise=7.0, runs="fixed", mean_runs=1)
    count_runs(monkeypatch, plan)
    drawn = [select(plan, tmp_path / "run").score for _ in range(800)]
    assert np.std(drawn) == pytest.approx(7.0, rel=0.15)
    assert np.mean(drawn) == pytest.approx(30.0, abs=1.4)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selected") / "run"
    plan = planned(NOISES, SETTINGS | TOY, score="train", score_noise=5.0)
    select(plan, folder)
    return plan, folder


@pytest.mark.usefixtures("quick_documents")
def test_the_certificate_is_of_the_selection_and_verifies(released) -> None:
    plan, folder = released
    found = rt.certify(folder)
    assert found.verify().accepted
    assert found.certificate.mechanism["kind"] == "selection"
    shown = public(found.certificate)
    assert rt.verify(shown).accepted
    alone = rt.WorstCase().assess(plan.release).measure(rt.epsilon_at_delta, 1e-5).value
    worst = found.certificate.assessments[0]
    stated = worst.epsilon_at_delta["1e-05"].value
    assert stated == pytest.approx(alone, rel=1e-4, abs=0)
    said = {one.key: one.status for one in worst.conditions}
    checked = [said[key] for key in ("independent-runs", "best-only", "counted-scores")]
    assert checked == [Status.CHECKED] * 3
    assert said["hidden-runs"] == Status.ASSUMED
    stated = json.loads((folder / "ledger.json").read_text())["selection"]
    assert set(stated) == {"mechanism", "settings", "score", "score_noise"}, "and not how many runs there were"


def rate_at_most(hits: int, of: int) -> float:
    return float(beta.ppf(1e-4, hits, of - hits + 1)) if hits else 0.0


def advantage_of_attack(plan, mus, monkeypatch, tmp_path, trials=3000) -> float:
    """The gain, with confidence, of who sees a winner that was chosen by how much it tells.

    The real ``select`` draws, ranks and picks; only the training is replaced: by a normal number.
    """
    rng, flagged = np.random.default_rng(5), []
    for present in (0.0, 1.0):

        def one(place, present=present):
            mu, x = mus[place], present * mus[place] + rng.normal()
            return (mu, x), 1e9 * abs(x - 0.5 * mu)  # scores are rounded

        released = without_training(monkeypatch, plan, one)
        for _ in range(trials):
            select(plan, tmp_path / "run", rng=rng)
        flagged.append(sum(mu * (x - 0.5 * mu) > 0.0 for mu, x in released))
    return rate_at_most(flagged[1], trials) + rate_at_most(trials - flagged[0], trials) - 1.0


def test_an_attack_from_below_needs_the_selection_and_its_worst_setting(monkeypatch, tmp_path) -> None:
    """The curve of one run would be a false certificate of the winner, and so would that of the gentle setting."""
    plan = planned({"learning_rate": [0.1, 1.0]}, mean_runs=5)
    reached = advantage_of_attack(plan, [0.25, 1.0], monkeypatch, tmp_path)
    strong, gentle = rt.Gaussian(1.0), rt.Gaussian(4.0)
    listed, geometric = drawn_from([gentle, strong]), rt.Geometric(5)
    one, others, best, most = (
        rt.WorstCase().assess(what).measure(rt.advantage).value
        for what in (listed, *(rt.Selection(base, geometric) for base in (gentle, listed, strong)))
    )
    assert 1.3 * one < reached < best < most
    assert others < reached


def test_a_list_of_equal_settings_is_each_of_them() -> None:
    """And the curve of a list is between those of its settings, at each epsilon their mean."""
    one, other = rt.Gaussian(2.0), rt.Gaussian(4.0)
    curves = [rt.WorstCase().assess(what).curve for what in (one, other, drawn_from([one, other, other]))]
    epsilons = np.array([0.0, 0.2, 0.5, 1.0])
    first, second, both = (curve.delta(epsilons) for curve in curves)
    np.testing.assert_allclose(both, (first + 2.0 * second) / 3.0, rtol=1e-9)
    assert drawn_from([one, one]) == one
    with pytest.raises(ParameterError, match="none of them twice"):
        OneOf((one, one), (1, 1))
    assert math.isclose(sum(OneOf((one, other), (1, 2)).weights), 3)
