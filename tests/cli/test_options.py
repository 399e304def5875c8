"""A bad value for every option of the verbs: one line that names it, exit code 2, and nothing printed or written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from reticent.cli import app
from tests.cli.calling import run

RUN = ["--noise-multiplier", "2", "--sample-rate", "0.1", "--steps", "3"]
VERBS = {
    "risk gaussian": ["--noise-multiplier", "2"],
    "risk laplace": ["--noise-multiplier", "2"],
    "risk dpsgd": RUN,
    "risk randomised-response": ["--flip-probability", "0.3"],
    "risk matrix": ["--noise-multiplier", "2", "--steps", "4"],
    "calibrate dpsgd": ["--target", "advantage=0.1", *RUN[2:]],
    "compare dpsgd": ["--target", "advantage=0.1", *RUN[2:]],
    "certify": ["dpsgd", *RUN, "--out", "there"],
    "keygen": ["key"],
    "plan-audit": ["--claimed-mu", "0.5", "--true-mu", "1"],
    "audit": ["scores.npz"],
    "gate": ["no.json", "--policy", "policy.yaml"],
    "verify": ["no.json"],
    "audit-loop": ["no:thing", "--claim", "no.yaml"],
}
NEVER = {"--help", "--plan", "--save-scores", "--html", "--out", "--public", "--markdown", "--junit"}  # any path does
FREE = {"--subject", "--issuer", "--purpose", "--recipients", "--controls", "--means"}  # any text does


def options_of(verb: str) -> list[Any]:
    command: Any = app
    for word in verb.split():
        command = command.get_command(click.Context(command), word)
    return [p for p in command.params if p.opts[0].startswith("--") and p.opts[0] not in NEVER | FREE]


def bad_values(option: Any) -> list[str]:
    if option.is_flag:
        return []
    if option.type is click.FLOAT:
        return ["nan", "-1"]
    return ["x", "-1"] if option.type is click.INT else ["zzz"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    limits = "limits: [{measure: mu, at_most: 1.0}]"
    (tmp_path / "policy.yaml").write_text(f"schema: reticent.policy/1\nper: record\n{limits}\n")
    rng = np.random.default_rng(0)
    np.savez("scores.npz", member=rng.normal(1, 1, 40), non_member=rng.normal(0, 1, 40))
    return tmp_path


LONG = {"risk laplace", "risk randomised-response", "risk matrix", "compare dpsgd"}  # as another mechanism or verb


@pytest.mark.parametrize("verb", [pytest.param(v, marks=pytest.mark.slow if v in LONG else ()) for v in VERBS])
def test_a_bad_value_ends_in_one_line(verb: str, here: Path, capsys) -> None:
    known = {path: path.read_bytes() for path in here.iterdir()}
    tried = 0
    for option in options_of(verb):
        for value in bad_values(option):
            if option.opts[0] == "--epsilon" and value == "-1":
                continue  # delta has a meaning there
            words = [*verb.split(), *VERBS[verb]]
            if option.opts[0] in words:
                place = words.index(option.opts[0])
                del words[place : place + 2]
            code, out, err = run(capsys, *words, option.opts[0], value)
            said = (option.opts[0], value, out[:200], err)
            assert code == 2, said
            assert (out, err.count("\n")) == ("", 1), said
            assert isinstance(option.type, click.Path) or option.opts[0] in err, said
            tried += 1
    assert tried > 0 or verb == "keygen"
    assert {path: path.read_bytes() for path in here.iterdir()} == known


def leaves(command: Any = app, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), *words, name)


@pytest.mark.parametrize("nothing", ["", "a\0b"])
def test_no_path_of_any_verb_is_empty(nothing: str, here: Path, capsys) -> None:
    known, tried = set(here.iterdir()), 0
    for words, verb in leaves():
        places = [one for one in verb.params if isinstance(one, click.Argument)]
        for path in (one for one in verb.params if isinstance(one.type, click.Path)):
            typed = ["x"] * places.index(path) + [nothing] if path in places else [f"{path.opts[0]}={nothing}"]
            code, out, err = run(capsys, *words, *typed)
            assert (code, out, err.count("\n")) == (2, "", 1), (words, path.name, err)
            assert "must be a path" in err
            tried += 1
    assert tried > 40
    assert set(here.iterdir()) == known
