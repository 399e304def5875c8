"""A field that somebody adds to a request is in every door without another line: tried on doors that are read anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

import reticent
from reticent.dashboard import server  # with all that doors load: only they are loaded twice
from tests.cli.calling import run
from tests.docs.follow import pages

DOORS = ("reticent.verbs", "reticent.cli", "reticent.dashboard")
BEFORE = "    secret_bits: tuple[float, ...] = asked(NUMBERS, OF_SECRETS, ())\n"
PLANTED = """\
    planted_level: float | None = asked(NUMBER, "A level that nobody needs.", None)
    planted_word: Method | None = asked(METHOD, "A word that nobody needs; default: none at all.", None)
"""


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The verbs, with two more fields of what may be asked about any release; all doors are read again when named."""
    assert server
    for door in DOORS:
        monkeypatch.setattr(reticent, door.rpartition(".")[2], sys.modules[door])  # as it is put back
    with patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.startswith(DOORS)]:
            del sys.modules[name]
        spec = find_spec("reticent.verbs.risks")
        assert spec is not None
        file = Path(str(spec.origin))
        text = file.read_text(encoding="utf-8")
        assert text.count(BEFORE) == 1
        text = text.replace("import NUMBERS, Request, asked", "import NUMBER, NUMBERS, Request, asked")
        risks = sys.modules[spec.name] = module_from_spec(spec)
        exec(compile(text.replace(BEFORE, PLANTED + BEFORE), file, "exec"), vars(risks))  # noqa: S102
        yield import_module("reticent.verbs")


def test_it_is_an_option_on_the_page_in_the_schema_and_in_the_reference(
    planted: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, requests, state, taken = (
        import_module(f"reticent.{name}")
        for name in ("dashboard.layout", "dashboard.requests", "dashboard.state", "verbs.taken")
    )
    monkeypatch.setattr("tests.cli.calling.main", import_module("reticent.cli").main)
    help = " ".join(run(capsys, "risk", "dpsgd", "--help")[1].split())
    assert "--planted-level FLOAT A level that nobody needs." in help
    assert "--planted-word TEXT A word that nobody needs; default: none at all. One of exact," in help
    page = repr(layout.page(local=True))
    assert "id='field-planted_level'" in page
    assert "A level that nobody needs." in page
    assert "A word that nobody needs; default: none at all." in page
    choices = [*state.SETTINGS["planted_word"].choices.items()]
    assert choices[:2] == [("own", "none at all"), ("exact", "exact")]
    said = state.State.of({"mechanism": "gaussian", "planted_level": "12,5%", "planted_word": "clt"})
    asked = requests.assess_of(state.State.of_address(said.address()))
    assert (asked.planted_level, asked.planted_word) == (0.125, "clt")
    assert "--planted-level 0.125 --planted-word clt" in taken.as_command(asked)
    assert "planted_level=0.125,\n    planted_word='clt'," in taken.as_program(asked)
    schema = planted.Assess.schema()["properties"]
    assert schema["planted_level"] == {"type": "number", "description": "A level that nobody needs."}
    assert "clt" in schema["planted_word"]["enum"]
    monkeypatch.setattr(pages, "verbs", planted)
    assert "- `planted_level` (optional): A level that nobody needs." in pages.requests()
    assert "A word that nobody needs" in pages.requests()
