"""A field that somebody adds to a request is in every door without another line: tried in a copy of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEFORE = "    secret_bits: tuple[float, ...] = asked(NUMBERS, OF_SECRETS, ())\n"
PLANTED = """\
    planted_level: float | None = asked(NUMBER, "A level that nobody needs.", None)
    planted_word: Method | None = asked(METHOD, "A word that nobody needs; default: none at all.", None)
"""
LOOK = """
import contextlib, importlib.util, io, json, sys
from pathlib import Path
from reticent.cli import main
from reticent.dashboard.layout import page
from reticent.dashboard.requests import assess_of
from reticent.dashboard.state import SETTINGS, State
from reticent.verbs import Assess
from reticent.verbs.taken import as_command, as_program

root = Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("pages", root / "docs" / "pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
state = State.of({"mechanism": "gaussian", "planted_level": "12,5%", "planted_word": "clt"})
asked = assess_of(State.of_address(state.address()))
with contextlib.redirect_stdout(io.StringIO()) as help, contextlib.suppress(SystemExit):
    main(["risk", "dpsgd", "--help"])
print(json.dumps({
    "help": " ".join(help.getvalue().split()),
    "page": repr(page(local=True)),
    "choices": list(SETTINGS["planted_word"].choices.items()),
    "asked": [asked.planted_level, asked.planted_word],
    "taken": [as_command(asked), as_program(asked)],
    "schema": Assess.schema()["properties"],
    "reference": pages.requests(),
}))
"""


def test_it_is_an_option_on_the_page_in_the_schema_and_in_the_reference(tmp_path: Path) -> None:
    """Two more fields of what may be asked about any release."""
    package = tmp_path / "reticent"
    package.mkdir()
    for each in (ROOT / "src" / "reticent").iterdir():
        (package / each.name).symlink_to(each)
    (package / "verbs").unlink()
    shutil.copytree(ROOT / "src" / "reticent" / "verbs", package / "verbs")
    file = package / "verbs" / "risks.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    text = text.replace("import NUMBERS, Request, asked", "import NUMBER, NUMBERS, Request, asked")
    file.write_text(text.replace(BEFORE, PLANTED + BEFORE), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command, where = [sys.executable, "-c", LOOK, str(ROOT)], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=where)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "--planted-level FLOAT A level that nobody needs." in found["help"]
    assert "--planted-word TEXT A word that nobody needs; default: none at all. One of exact," in found["help"]
    assert "id='field-planted_level'" in found["page"]
    assert "A level that nobody needs." in found["page"]
    assert "A word that nobody needs; default: none at all." in found["page"]
    assert found["choices"][:2] == [["own", "none at all"], ["exact", "exact"]]
    assert found["asked"] == [0.125, "clt"]
    command, program = found["taken"]
    assert "--planted-level 0.125 --planted-word clt" in command
    assert "planted_level=0.125,\n    planted_word='clt'," in program
    assert found["schema"]["planted_level"] == {"type": "number", "description": "A level that nobody needs."}
    assert "clt" in found["schema"]["planted_word"]["enum"]
    assert "planted_level" in found["reference"]
    assert "A word that nobody needs" in found["reference"]
