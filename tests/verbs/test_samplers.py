"""Every sampler at every door that takes one: each knows it with all its fields, or refuses it by name."""

from __future__ import annotations

import inspect
import shlex
from typing import Any

import pytest

import reticent as rt
from reticent.cli.certify import certify as certify_command
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.registry import parameters_of
from reticent.kernel.samplers import SAMPLERS
from reticent.kernel.samplers.base import runnable
from reticent.verbs import Assess
from reticent.verbs.taken import as_command, as_program
from tests.cli.calling import run
from tests.laws.leaves import needed

SIZES = {"noise_multiplier": 2.0, "batch_size": 10, "dataset_size": 40, "epochs": 2}
RUNS: dict[str, dict[str, Any]] = {
    **{name: {"sampler": name, **needed(kind)} for name, kind in SAMPLERS.items()},
    "truncated-poisson": {"sampler": "truncated-poisson", "max_batch_size": 14},
    "two draws": {"sampler": "poisson", "draws_per_step": 2},
    "two uses": {"sampler": "random-allocation", "uses_per_epoch": 2},
}
WARNED = {"shuffled": "shuffled", "cyclic": "in-order", "fixed-size": "fixed-size"}


def mechanism(name: str) -> DPSGD:
    return rt.dpsgd(**{**SIZES, **RUNS[name]})


def test_every_sampler_is_in_the_table_and_every_field_of_one_at_each_door() -> None:
    assert {RUNS[name]["sampler"] for name in RUNS} == set(SAMPLERS)
    own = {key for fields in RUNS.values() for key in fields}
    assert own <= {p.name for p in parameters_of(DPSGD)}
    assert own <= {str(p.name) for p in certify_command.params}
    assert own <= set(inspect.signature(rt.dpsgd).parameters)


@pytest.mark.parametrize("name", RUNS)
def test_options_files_and_the_dashboard_ask_about_the_run_of_the_library(name: str, capsys) -> None:
    def typed(*words: str) -> Assess:
        code, out, _ = run(capsys, *words, "--dry-run")
        assert code == 0
        return Assess.from_json(out)

    given = {**SIZES, **RUNS[name]}
    options = [word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    request = typed("risk", "dpsgd", *options)
    assert request.mechanism == mechanism(name)
    warned = {one.key for one in rt.lint(mechanism(name)).faults} - {"parameters-declared"}
    assert [key for key in warned if key.endswith("-not-poisson")] == [
        f"{WARNED[one]}-not-poisson" for one in WARNED if one == name
    ]
    pytest.importorskip("dash")
    from reticent.dashboard.requests import assess_of
    from reticent.dashboard.state import State

    state = {key: str(value) for key, value in given.items()}
    shown = assess_of(State.of({"by": "data", **state, "dimension": "", "attackers": "worst-case"}))
    assert shown.mechanism == mechanism(name)
    assert typed(*shlex.split(as_command(shown))[1:]).mechanism == mechanism(name)
    assert f"'sampler': '{RUNS[name]['sampler']}'" in as_program(shown)


def test_who_knows_less_of_the_draws_learns_less() -> None:
    names = ("random-allocation", "allocated-once", "shuffled", "truncated-poisson")
    found = {name: rt.assess(mechanism(name))[0].measure(rt.advantage).upper for name in names}
    assert found["random-allocation"] < found["allocated-once"] < found["shuffled"]
    assert found["random-allocation"] < found["truncated-poisson"] < found["shuffled"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_loop_and_a_configuration_name_only_what_can_be_accounted_for(sampler: str) -> None:
    torch = pytest.importorskip("torch")
    from reticent.training.config import parse_config

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if sampler in ("poisson", "fixed-size", "shuffled"):
        rt.watch(model, optimizer, sampler=sampler)
    else:
        with pytest.raises(ParameterError, match=r"poisson, fixed-size or shuffled.*rt\.random_allocation"):
            rt.watch(model, optimizer, sampler=sampler)
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
    else:
        with pytest.raises(ArtifactError, match="random-allocation"):
            parse_config(config)
