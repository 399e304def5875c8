"""The membership game keeps the size of the data: answered under replacement, refused elsewhere."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reticent.adversaries import Attribute, MembershipGame, Relaxed
from reticent.calibration import Advantage, NoiseMultiplier, calibrate
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.certificates.verify import verify
from reticent.cli import main
from reticent.kernel.adversaries import Method, WorstCase, assess, assess_answerable
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
CASE = DPSGD(0.42426, 1.0, 2, num_parameters=100, batch_size=1)
COMMAND = "risk dpsgd --noise-multiplier 0.42426 --sample-rate 1 --steps 2 --batch-size 1 --dimension 100"
COMPARE = "compare dpsgd --target advantage=0.3 --sample-rate 0.5 --steps 2 --batch-size 5 --dimension 9 --json"


def run(command: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    return int(ended.value.code or 0)


def simulated_advantage(rng: np.random.Generator, games: int) -> tuple[float, float]:
    """Definition 3.1 of LEEMANN2023 with one record, drawn from 100 orthonormal gradients; and its standard error.

    The attacker sees both noisy releases, or their mean, and plays the likelihood ratio of "x' was drawn, then
    used" against "anybody was used".
    """
    noise = CASE.noise_multiplier / math.sqrt(CASE.steps)
    correct = []
    for member in (True, False):
        seen = noise * rng.standard_normal((games, 100))
        used = np.zeros(games, dtype=int) if member else rng.integers(0, 100, games)
        seen[np.arange(games), used] += 1.0
        scores = seen / noise**2  # the target is record 0; all gradients have length 1
        correct.append((scores[:, 0] > np.logaddexp.reduce(scores, axis=1) - math.log(100.0)) == member)
    hits, rejections = (float(np.mean(side)) for side in correct)
    return hits + rejections - 1.0, math.sqrt((hits * (1 - hits) + rejections * (1 - rejections)) / games)


def test_case_of_the_referee_beats_add_remove_and_not_replacement() -> None:
    """The "bound" .9044 of add/remove, against a simulation of .9254."""
    found, error = simulated_advantage(np.random.default_rng(19), 20_000)
    assert found == pytest.approx(0.9254, abs=4 * error + 4e-4)
    assert found - 4 * error > WorstCase().assess(CASE, ADD).measure(advantage).value > 0.90
    result = MembershipGame().assess(CASE)
    assert result.neighbouring is REPLACE
    assert found + 4 * error < result.measure(advantage).value == pytest.approx(0.99914, abs=1e-5)


@pytest.mark.parametrize("method", [Method.EXACT, Method.PROVEN, Method.PUBLISHED])
@pytest.mark.parametrize("relation", [ADD, ZERO])
@pytest.mark.parametrize("mechanism", [CASE, DPSGD(1.0, 0.1, 1, num_parameters=9, batch_size=5), Gaussian(1.0)])
def test_other_relations_are_refused_in_one_line(mechanism, relation, method) -> None:
    with pytest.raises(UnsupportedError, match=f"replace only, not {relation.value}") as caught:
        MembershipGame().assess(mechanism, relation, method)
    assert "\n" not in str(caught.value)


def test_what_is_not_stated_is_left_to_each_adversary() -> None:
    results = assess(CASE, [WorstCase(), Relaxed(), MembershipGame(), Attribute(gradient_change=0.1)])
    relations = {(r.adversary.name, r.neighbouring) for r in results}
    assert relations == {
        ("worst-case", ADD),
        ("relaxed", ADD),
        ("membership-game", REPLACE),
        ("attribute", REPLACE),
        ("worst-case", REPLACE),
    }


def test_a_stated_relation_leaves_the_game_out_by_name() -> None:
    results, skipped = assess_answerable(CASE, [WorstCase(), MembershipGame()], ADD)
    assert [r.adversary.name for r in results] == ["worst-case"]
    assert "replace only" in skipped["membership-game"]


def test_certificates_play_it_under_replacement() -> None:
    certificate = certify(
        CASE, Declaration(subject="case", created="2026-01-01"), adversaries=(WorstCase(), MembershipGame())
    )
    relations = {(a.adversary, a.neighbouring) for a in certificate.assessments}
    assert ("membership-game", "replace") in relations
    assert ("worst-case", "replace") in relations
    assert ("worst-case", "add-remove") in relations
    assert verify(certificate).accepted


def test_calibration_and_the_worst_case_beside_it_use_replacement() -> None:
    release = DPSGD(1.0, 0.1, 5, num_parameters=100, batch_size=10)
    answer = calibrate(release, NoiseMultiplier(), Advantage(0.2), MembershipGame())
    assert answer.neighbouring is REPLACE
    assert answer.worst_case().value == pytest.approx(
        WorstCase().assess(answer.mechanism, REPLACE).measure(advantage).value, rel=1e-9, abs=0
    )
    with pytest.raises(UnsupportedError, match="replace only"):
        calibrate(release, NoiseMultiplier(), Advantage(0.2), MembershipGame(), ADD)


def test_command_line(capsys) -> None:
    assert run(f"{COMMAND} --adversary membership-game --json") == 0
    answered = json.loads(capsys.readouterr().out)["assessments"]
    assert {(a["adversary"], a["neighbouring"]) for a in answered} == {
        ("membership-game", "replace"),
        ("worst-case", "replace"),
    }
    assert run(f"{COMMAND} --adversary membership-game --neighbouring add-remove") == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.strip().endswith("replace only, not add-remove")
    assert len(error.strip().splitlines()) == 1


def test_compare_names_the_relation_and_compares_within_it_only(capsys) -> None:
    assert run(f"{COMPARE} --adversary worst-case --adversary membership --adversary membership-game") == 0
    rows = {row["adversary"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["membership"]["noise_ratio"] == pytest.approx(1.0, rel=1e-3, abs=0)
    assert rows["membership-game"]["neighbouring"] == "replace"
    assert rows["membership-game"]["noise_ratio"] is None
