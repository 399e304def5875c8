"""Numbers of whatever is at hand, names as other papers have them, saving twice, lint of events."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import reticent as rt
from reticent import facts
from reticent.calibration.targets import TARGETS
from reticent.kernel import risk
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.samplers import FixedSize, Shuffled
from tests.cli.calling import run

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
        ("mia", "membership"),
        ("MIA", "membership"),
        ("membership_inference", "membership"),
        ("lira", "membership"),
        ("aia", "attribute"),
        ("gmip", "membership-game"),
        ("strong adversary", "worst-case"),
        ("membrship", "membership"),
    ],
)
def test_an_attacker_of_another_paper_is_named(typed, meant, capsys):
    with pytest.raises(ParameterError, match=f"did you mean {meant}"):
        rt.assess(RUN, typed)
    code, _, err = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--adversary", typed)
    assert code == 2
    assert f"did you mean {meant}?" in err


def test_a_hint_names_what_is_shown_to_people():
    with pytest.raises(ParameterError) as caught:
        rt.assess(RUN, "somebody")
    named = str(caught.value).split("one of ")[1].split(",")[0:6]
    assert [name.strip() for name in named] == [
        "worst-case",
        "relaxed",
        "mixed",
        "membership",
        "membership-game",
        "attribute",
    ]
    assert "norm-only" not in str(caught.value)
    assert rt.assess(RUN, "norm-only")  # kept for reproduction


def test_another_certificate_is_replaced_only_where_that_is_said(tmp_path):
    one, other = (rt.certify(rt.Gaussian(noise), created="2026-01-01", adversary="worst-case") for noise in (2.0, 3.0))
    one.save(tmp_path)
    one.save(tmp_path)  # the same is written anew
    with pytest.raises(ArtifactError, match="holds a different certificate"):
        other.save(tmp_path)
    assert rt.verify(tmp_path / "certificate.json").accepted
    files = other.save(tmp_path, overwrite=True)
    assert json.loads(files.complete.read_text())["mechanism"]["noise_multiplier"] == 3
    assert rt.verify(files.page).accepted


def test_a_signature_does_not_outlive_what_it_signed(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    one, other = (rt.certify(rt.Gaussian(noise), created="2026-01-01", adversary="worst-case") for noise in (2.0, 3.0))
    files = one.save(tmp_path, key=Ed25519PrivateKey.generate())
    assert files.signature.exists()
    other.save(tmp_path, overwrite=True)
    assert not files.signature.exists()


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


def test_lint_reads_events_and_mechanisms(tmp_path, capsys):
    dp_event = pytest.importorskip("dp_accounting").dp_event
    from reticent.interop.documents import event_to_json

    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.1))
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event_to_json(dp_event.SelfComposedDpEvent(step, 100))))
    found = rt.lint(path)
    assert found.faults == (facts.DECLARED,)
    assert found.title() == "100 noisy steps, 2 warnings"
    code, out, _ = run(capsys, "lint", path)
    assert code == 0
    assert "nobody saw" in out
    shuffled = rt.DPSGD(0.0, 0.1, 5, sampler=Shuffled())
    assert rt.lint(shuffled).faults == (facts.NO_NOISE, facts.SHUFFLED, facts.DECLARED)
    assert rt.lint(rt.DPSGD(1.0, 0.1, 5, sampler=FixedSize())).faults == (facts.FIXED_SIZE, facts.DECLARED)
    assert facts.CHANGED_NOISE in rt.lint(rt.Ledger((rt.Gaussian(1.0), rt.Gaussian(2.0)))).faults
    (tmp_path / "odd.json").write_text('{"class_name": "SomethingElse"}')
    with pytest.raises((ArtifactError, UnsupportedError)):
        rt.lint(tmp_path / "odd.json")


def test_auditing_a_loop_without_torch_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None; import reticent as rt\n"
        "from reticent.kernel.errors import UnsupportedError\n"
        "claim = rt.dpsgd(noise_multiplier=1.0, batch_size=5, dataset_size=50, epochs=1)\n"
        "try:\n    rt.audit_loop(print, claim)\n"
        "except UnsupportedError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'reticent[train]'" in done.stdout


def test_auditing_a_loop_wants_a_claim():
    pytest.importorskip("torch")
    with pytest.raises(ParameterError, match="claim must be DP-SGD"):
        rt.audit_loop(print, rt.Gaussian(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["advantage=0.1", "epsilon=1@1e-5", "tpr=0.01@0.001", "success=0.6@0.5"])
def test_a_comparison_takes_seconds(target):
    run = rt.dpsgd(noise_multiplier=1.1, batch_size=64, dataset_size=6400, epochs=10, num_parameters=1000)
    begun = time.process_time()
    assert len(rt.compare(run, target=target)) == 5
    assert time.process_time() - begun < 10.0


def test_the_gaussian_curve_is_read_as_before():
    assert rt.advantage(GaussianTradeOff(1.0)) == pytest.approx(risk.advantage(GaussianTradeOff(1.0)), rel=1e-9, abs=0)


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
