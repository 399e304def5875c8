"""Every door that takes a sampler, with every sampler: each knows it, or refuses it by name."""

from __future__ import annotations

import inspect
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reticent as rt
from reticent.certificates.document.schema import Certificate
from reticent.cli.certify import certify as certify_command
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.registry import parameters_of
from reticent.kernel.samplers import SAMPLERS
from reticent.kernel.samplers.base import runnable
from reticent.mechanisms.codec import mechanism_of, mechanism_record
from reticent.samplers import TruncatedPoisson
from tests.cli.calling import run
from tests.laws.leaves import BY_NAME, needed

pytestmark = pytest.mark.usefixtures("quick_documents")

SIZES = {"noise_multiplier": 2.0, "batch_size": 10, "dataset_size": 40, "epochs": 2}
RUNS: dict[str, dict[str, Any]] = {
    **{name: {"sampler": name, **needed(kind)} for name, kind in SAMPLERS.items()},
    "truncated-poisson": {"sampler": "truncated-poisson", "max_batch_size": 14},
    "two draws": {"sampler": "poisson", "draws_per_step": 2},
    "two uses": {"sampler": "random-allocation", "uses_per_epoch": 2},
}
EACH = pytest.mark.parametrize("name", RUNS)


def mechanism(name: str, **changes: object) -> DPSGD:
    return rt.dpsgd(**{**SIZES, **RUNS[name], **changes})


def options(name: str, **more: object) -> list[str]:
    given = {**SIZES, **RUNS[name], **more}
    return [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]


def test_every_sampler_is_in_the_table_and_every_field_of_one_at_each_door() -> None:
    assert {RUNS[name]["sampler"] for name in RUNS} == set(SAMPLERS)
    own = {key for fields in RUNS.values() for key in fields}
    assert own <= {p.name for p in parameters_of(DPSGD)}
    assert own <= {str(p.name) for p in certify_command.params}
    assert own <= set(inspect.signature(rt.dpsgd).parameters)


@EACH
def test_risk_says_what_the_library_says(name: str, capsys) -> None:
    code, out, _ = run(capsys, "risk", "dpsgd", *options(name), "--adversary", "worst-case", "--json")
    assert code == 0
    document = json.loads(out)
    assert mechanism_of(document["mechanism"]) == mechanism(name)
    assert document["assessments"][0]["advantage"]["value"] is not None


@EACH
def test_a_record_is_read_back(name: str, tmp_path: Path, capsys) -> None:
    document = mechanism_record(mechanism(name))
    assert mechanism_of(json.loads(json.dumps(document))) == mechanism(name)
    (tmp_path / "m.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "risk", "ledger", tmp_path / "m.json", "--adversary", "worst-case", "--json")
    assert (code, mechanism_of(json.loads(out)["mechanism"])) == (0, mechanism(name))
    code, out, _ = run(capsys, "lint", tmp_path / "m.json")
    assert code == 0
    words = {
        "shuffled": "shuffled-not-poisson",
        "cyclic": "in-order-not-poisson",
        "fixed-size": "fixed-size-not-poisson",
    }
    for sampler, fault in words.items():
        assert (fault in out) is (name == sampler)


@EACH
def test_calibrate(name: str) -> None:
    once = mechanism(name, epochs=1)
    found = rt.calibrate(once, advantage=0.3)
    assert found[0].achieved.value <= 0.3
    assert replace(found.mechanism, noise_multiplier=2.0) == once


@EACH
def test_certify_verify_and_gate(name: str, tmp_path: Path, capsys) -> None:
    made = rt.certify(mechanism(name), adversary="worst-case", created="2026-11-01")
    assert mechanism_of(made.certificate.mechanism) == mechanism(name)
    path = tmp_path / "certificate.json"
    path.write_text(made.certificate.model_dump_json(by_alias=True))
    assert isinstance(made.certificate, Certificate)
    assert run(capsys, "verify", path)[0] == 0
    accepted = ", ".join(CONDITIONS)
    worst = made.certificate.assessments[0].advantage.value
    assert worst is not None
    for most, expected in ((worst * 1.01, 0), (worst * 0.99, 1)):
        (tmp_path / "policy.yaml").write_text(
            "schema: reticent.policy/1\nper: record\n"
            f"limits: [{{measure: advantage, at_most: {most}}}]\n"
            f"accept_conditions: [{accepted}]\n"
        )
        assert run(capsys, "gate", path, "--policy", tmp_path / "policy.yaml")[0] == expected
    document = json.loads(path.read_text())
    other = "cyclic" if RUNS[name]["sampler"] != "cyclic" else "poisson"
    document["mechanism"]["sampler"] = other
    path.write_text(json.dumps(document))
    code, _, _ = run(capsys, "verify", path)
    assert code in (1, 2)


@EACH
def test_the_dashboard(name: str, capsys) -> None:
    pytest.importorskip("dash")
    from reticent.dashboard.requests import assess_of
    from reticent.dashboard.state import State
    from reticent.verbs.taken import as_command, as_program

    sizes = {key: str(value) for key, value in SIZES.items()}
    more = {key: str(value) for key, value in RUNS[name].items()}
    state = State.of({"by": "data", **sizes, "dimension": "", "attackers": "worst-case", **more})
    request = assess_of(state)
    assert request.mechanism == mechanism(name)
    command = shlex.split(as_command(request))
    code, out, _ = run(capsys, *command[1:], "--json")
    assert (code, mechanism_of(json.loads(out)["mechanism"])) == (0, mechanism(name))
    assert f"'sampler': '{RUNS[name]['sampler']}'" in as_program(request)


@EACH
def test_events_of_dp_accounting(name: str) -> None:
    """What is written is read back with at least as much risk."""
    pytest.importorskip("dp_accounting")
    from reticent.interop.dp_events import from_dp_event, to_dp_event

    again = from_dp_event(to_dp_event(mechanism(name)))
    ours, theirs = (rt.advantage(rt.assess(m)[0].curve) for m in (mechanism(name), again))
    assert theirs >= ours * (1.0 - 1e-4)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_loop_declares_only_what_can_be_accounted_for(sampler: str) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if sampler in ("poisson", "fixed-size", "shuffled"):
        rt.watch(model, optimizer, sampler=sampler)
        return
    with pytest.raises(ParameterError, match=r"poisson, fixed-size or shuffled.*rt\.random_allocation"):
        rt.watch(model, optimizer, sampler=sampler)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_configuration_names_what_the_loop_draws(sampler: str) -> None:
    pytest.importorskip("torch")
    from reticent.kernel.errors import ArtifactError
    from reticent.training.config import parse_config

    config = {
        "data": {"name": "breast-cancer"},
        "model": {"kind": "logistic"},
        "noise_multiplier": 2.0,
        "batch_size": 64,
        "steps": 6,
        "learning_rate": 0.5,
        "sampler": sampler,
    }
    if sampler in runnable():
        assert parse_config(config).sampler == SAMPLERS[sampler]()
        return
    with pytest.raises(ArtifactError, match="random-allocation"):
        parse_config(config)


@pytest.mark.parametrize("sampler", ["truncated-poisson", *(kind.name for kind in BY_NAME)])
def test_opacus_noise(sampler: str) -> None:
    pytest.importorskip("opacus")
    from reticent.interop.opacus import get_noise_multiplier

    asked = {"target_epsilon": 1.0, "target_delta": 1e-5, "sample_rate": 0.25, "epochs": 1}
    if sampler == "truncated-poisson":
        with pytest.raises((ParameterError, UnsupportedError), match="dataset_size"):
            get_noise_multiplier(**asked, sampler=TruncatedPoisson(9))
        return
    noise = get_noise_multiplier(**asked, sampler=SAMPLERS[sampler]())
    run_of = rt.dpsgd(noise_multiplier=noise, sample_rate=0.25, epochs=1, sampler=sampler)
    assert rt.epsilon_at_delta(rt.assess(run_of)[0].curve, 1e-5) <= 1.0 + 1e-9
