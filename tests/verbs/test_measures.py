"""Numbers of whatever is at hand, names as other papers have them, numbers of numpy."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import reticent as rt
from reticent.calibration.targets import TARGETS
from reticent.kernel import risk
from reticent.kernel.errors import ArtifactError, ParameterError

RUN = rt.DPSGD(2.0, 1.0, 5)
NUMBERS = [
    (rt.advantage, ()),
    (rt.bayes_security, ()),
    (rt.epsilon_at_delta, (1e-5,)),
    (rt.delta_at_epsilon, (0.5,)),
    (rt.success, (0.3,)),
    (rt.tpr_at_fpr, (0.01,)),
    (rt.mu, ()),
]


@pytest.mark.parametrize(("number", "at"), NUMBERS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_number_of_anything_is_that_of_its_curve(number, at, tmp_path):
    (tmp_path / "run.json").write_text(
        json.dumps({"kind": "dpsgd", "noise_multiplier": 2, "sample_rate": 1, "steps": 5})
    )
    found = rt.assess(RUN)
    wanted = getattr(risk, number.__name__)(found[0].curve, *at)
    for what in (found[0].curve, found[0], found, RUN, tmp_path / "run.json", str(tmp_path / "run.json")):
        assert number(what, *at) == pytest.approx(wanted, rel=1e-9, abs=0)


def test_a_number_of_a_weaker_attacker_is_its_own():
    found = rt.assess(RUN, "relaxed")["relaxed"]
    assert rt.advantage(found) == pytest.approx(found.measure(rt.advantage).value, rel=1e-12, abs=0)
    assert rt.advantage(found) < rt.advantage(RUN)


def test_numbers_are_on_the_safe_side():
    sampled = rt.DPSGD(1.1, 0.01, 100)
    found = rt.assess(sampled)[0]
    assert rt.epsilon_at_delta(sampled, 1e-5) == pytest.approx(
        found.measure(risk.epsilon_at_delta, 1e-5).value, rel=1e-9, abs=0
    )
    assert rt.bayes_security(sampled) <= found.measure(risk.bayes_security).upper * (1.0 + 1e-9)
    security = found.measure(rt.bayes_security)
    assert security.lower <= security.value <= security.upper


def test_a_number_needs_its_place_and_takes_it_by_name():
    assert rt.success(RUN, prior=0.3) == pytest.approx(rt.success(RUN, 0.3), rel=1e-9, abs=0)
    with pytest.raises(TypeError, match="delta"):
        rt.epsilon_at_delta(RUN)
    with pytest.raises(ParameterError, match="delta"):
        rt.epsilon_at_delta(RUN, 2.0)
    with pytest.raises(ParameterError, match="2 assessments"):
        rt.advantage(rt.assess(RUN, "relaxed"))
    with pytest.raises(ArtifactError, match="cannot be read"):
        rt.advantage("nothing.json")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("MIA", "membership"),
        ("membership_inference", "membership"),
        ("lira", "membership"),
        ("aia", "attribute"),
        ("gmip", "membership-game"),
        ("strong adversary", "worst-case"),
    ],
)
def test_an_attacker_of_another_paper_is_named(typed, meant):
    with pytest.raises(ParameterError, match=f"did you mean {meant}"):
        rt.assess(RUN, typed)


def test_a_hint_names_what_is_shown_to_people():
    with pytest.raises(ParameterError) as caught:
        rt.assess(RUN, "somebody")
    assert "one of worst-case, relaxed, mixed, membership, membership-game, attribute" in str(caught.value)
    assert "norm-only" not in str(caught.value)
    assert rt.assess(RUN, "norm-only")  # kept for reproduction


@pytest.mark.slow
@pytest.mark.parametrize("target", ["advantage=0.1", "epsilon=1@1e-5", "tpr=0.01@0.001", "success=0.6@0.5"])
def test_a_comparison_takes_seconds(target):
    run = rt.dpsgd(noise_multiplier=1.1, batch_size=64, dataset_size=6400, epochs=10, num_parameters=1000)
    begun = time.process_time()
    assert len(rt.compare(run, target=target)) == 5
    assert time.process_time() - begun < 10.0


MADE = {
    "gaussian": lambda x: rt.Gaussian(x).noise_multiplier,
    "dpsgd": lambda x: rt.DPSGD(2.0, x, 5).sample_rate,
    "keyword": lambda x: rt.dpsgd(noise_multiplier=x, sample_rate=0.1, steps=3).noise_multiplier,
    "guarantee": lambda x: rt.Guarantee(1.0, x).stated_delta,
    "filter": lambda x: rt.GaussianFilter(x).budget,
    "runs": lambda x: rt.Geometric(1.0 + x).mean,
    "attacker": lambda x: rt.Mixed(x).relaxed_probability,
    "target": lambda x: TARGETS["epsilon"](x, 1e-5).value,
}


@pytest.mark.parametrize("name", MADE)
def test_a_number_of_numpy_becomes_one_of_python(name: str) -> None:
    """Python computes with a float32 in its seven digits."""
    assert type(MADE[name](np.float32(0.7))) is float


def test_seven_digits_do_not_make_a_bound_too_small() -> None:
    """The mu of three releases is the root of 3 over the noise: it ended 5e-8 below."""
    noise = np.float32(0.7)
    assert rt.mu(rt.Gaussian(noise, 3)) >= 3**0.5 / float(noise) * (1.0 - 1e-12)
    prior, fpr = np.float32(0.3), np.float32(0.01)
    found = rt.ppv(rt.Gaussian(1.3), prior, fpr)
    assert found == pytest.approx(rt.ppv(rt.Gaussian(1.3), float(prior), float(fpr)), rel=1e-12, abs=0)


def test_a_whole_number_beyond_floating_point_is_refused_in_the_usual_form() -> None:
    with pytest.raises(ParameterError, match="noise_multiplier must be a finite number >= 0"):
        rt.Gaussian(10**400)


@pytest.mark.parametrize("alpha", ["0.1", ["0.1", "0.2"], None, [[0.1], [0.1, 0.2]], 2, float("nan")])
def test_a_curve_takes_numbers_alone(alpha):
    curve = rt.assess(rt.Gaussian(2.0))[0].curve
    for read in (curve, curve.beta, curve.power):
        with pytest.raises(ParameterError, match=r"alpha must be numbers in \[0, 1\]"):
            read(alpha)
